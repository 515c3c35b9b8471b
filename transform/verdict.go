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
	Verdicts []Verdict          // one an event, in the events' order
	Messages []envelope.Message // grouped by event, in the events' order

	arena []byte         // payloads of the built-in envelope, subjects, and what is kept of single runs
	outs  []*wasm.Output // one a guest call of this batch: each owns the bytes of its records
	calls int            // how many of outs are in use
}

func (r *Rendered) reset(events int) {
	r.Messages = r.Messages[:0]
	r.arena = r.arena[:0]
	r.calls = 0
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
