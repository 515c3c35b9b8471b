package transform

import (
	"edge/envelope"
	"edge/wasm"
)

// Kind is what became of one event.
type Kind uint8

// The zero Kind is no verdict: Render replaces every one of them.
const (
	Emit   Kind = 1 + iota // Messages[First : First+Count] go out
	Drop                   // the module left the event out on purpose
	Reject                 // the event can never be rendered as it is: quarantine
)

// Verdict is the answer for one event of a batch.
type Verdict struct {
	Kind         Kind
	First, Count int             // range in Rendered.Messages, for Emit
	Reason       envelope.Reason // stable code, for Reject
	Detail       string          // for people, for Reject
}

// Rendered is the result of one batch. The caller owns it and reuses it; messages alias its memory and are
// valid until it is given to Render again.
type Rendered struct {
	Verdicts []Verdict          // one for each event that was rendered, in the events' order
	Messages []envelope.Message // grouped by event, in the events' order

	arena []byte         // payloads of the built-in envelope, subjects, and what is kept of single runs
	outs  []*wasm.Output // one a guest call of this batch: each owns the bytes of its records
	calls int            // how many of outs are in use
	size  int            // bytes of Messages
}

// Size is the number of bytes that the messages hold together.
func (r *Rendered) Size() int { return r.size }

// keepBytes is how much memory of one piece is kept for the next batch: an unusual one is given back.
const keepBytes = 1 << 20

func (r *Rendered) reset(events int) {
	clear(r.Messages) // they may hold on to memory that is given back here
	r.Messages = r.Messages[:0]
	if cap(r.arena) > keepBytes {
		r.arena = nil
	}
	r.arena = r.arena[:0]
	for _, o := range r.outs[:r.calls] {
		o.Trim(keepBytes)
	}
	r.calls, r.size = 0, 0
	if cap(r.Verdicts) < events {
		r.Verdicts = make([]Verdict, events)
	}
	r.Verdicts = r.Verdicts[:events]
	clear(r.Verdicts)
}

// output returns the next unused output of this batch.
func (r *Rendered) output() *wasm.Output {
	if r.calls == len(r.outs) {
		r.outs = append(r.outs, new(wasm.Output))
	}
	r.calls++
	return r.outs[r.calls-1]
}

// keep copies b into the arena and returns the copy. Earlier results stay valid when the arena moves: they
// go on pointing into the array they were cut from.
func (r *Rendered) keep(b []byte) []byte {
	at := len(r.arena)
	r.arena = append(r.arena, b...)
	return r.arena[at:len(r.arena):len(r.arena)]
}

func (r *Rendered) reject(event int, reason envelope.Reason, detail string) {
	r.Verdicts[event] = Verdict{Kind: Reject, Reason: reason, Detail: detail}
}
