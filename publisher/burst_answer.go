package publisher

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
)

// note is an answer to a burst, parsed. Exactly one of these: it tells nothing; ack is a refusal, or nothing that can be
// read; or ack acknowledges count messages of a batch.
type note struct {
	idle  bool // about flow, or a gap that an acknowledgement will follow
	ack   ack
	batch string
	count uint64
}

// parseNote reads an answer to a burst:
//
//	{"stream":"EDGE","seq":4711,"batch":"ab-1","count":12}     stored so far; with a domain as any acknowledgement
//	{"error":{...},"stream":"EDGE","seq":0}                     a refusal, as for a message that went singly
//	{"type":"err","seq":3,"error":{...}}                        the same, in a fast batch
//	{"type":"ack","seq":3,"msgs":10}, {"type":"gap",...}        flow and gaps
func parseNote(w *want, h nats.Header, data []byte) note {
	var m struct {
		Type   string          `json:"type"`
		Stream string          `json:"stream"`
		Batch  string          `json:"batch"`
		Count  uint64          `json:"count"`
		Error  json.RawMessage `json:"error"`
	}
	if len(h) > 0 || json.Unmarshal(data, &m) != nil {
		return note{ack: parseAnswer(w, h, data)}
	}
	if m.Stream == "" && m.Error == nil && (m.Type == "ack" || m.Type == "gap") {
		return note{idle: true}
	}
	return note{ack: parseAck(w, data), batch: m.Batch, count: m.Count}
}

// answerBurst takes an answer to burst number. seq is that of the member whose subject it came on, 0 in an atomic batch.
func (p *Publisher) answerBurst(number uint64, seq uint32, m *nats.Msg) {
	w := p.want.Load()
	n := parseNote(w, m.Header, m.Data)

	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.live[number]
	if b == nil || (b.mode == ModeAtomic) != (seq == 0) || uint64(seq) > uint64(len(b.members)) || seq == 0 && !b.sealed {
		if n.ack.form == positive || seq == 0 {
			p.count.LateAcks++ // refusals of what was behind a refused message follow as a matter of course
		}
		return
	}
	p.silent = 0
	switch {
	case n.idle:
		return
	case n.ack.form == positive:
		p.storedLocked(w, b, &n)
	case b.mode == ModeAtomic:
		p.refusedAtomicLocked(w, b, &n.ack)
	default:
		p.refusedFastLocked(w, b, seq, &n.ack)
	}
	p.settleDenialsLocked()
	p.nextLocked()
}

// storedLocked takes the acknowledgement of burst b.
func (p *Publisher) storedLocked(w *want, b *burst, n *note) {
	all := uint64(len(b.members))
	id := string(appendBatchID(nil, p.random, b.number))
	r := classifyAck(w, &n.ack, false)
	allDuplicates := false
	switch {
	case n.batch != id, n.count > all, b.mode == ModeAtomic && (n.count != all || n.ack.seq < all):
		r = Result{Outcome: Unknown, Err: &UnexpectedAckError{Want: fmt.Sprintf("%v for %d messages of batch %s", w, all, id),
			Got: fmt.Sprintf("%s for %d messages of batch %q", place(n.ack.stream, n.ack.domain), n.count, n.batch)}}
	case b.mode == ModeFast && n.ack.seq == 0:
		allDuplicates = n.ack.stream == w.stream && (!w.known || n.ack.domain == w.domain)
	}
	if allDuplicates {
		// It stored nothing itself and names no sequence. Singly, each message learns its own.
		p.breakUpLocked(b, true, r.Err)
		return
	}
	if r.Outcome != Accepted {
		p.finishBurstLocked(b, r)
		notify(p.doubt)
		return
	}
	first := n.ack.seq
	if b.mode == ModeAtomic {
		first -= all - 1
	}
	p.trustLocked(first, n.ack.seq, b.session)
	for k, i := range b.members[:n.count] {
		if i < 0 {
			continue
		}
		r.Sequence = n.ack.seq
		if b.mode == ModeAtomic {
			r.Sequence = first + uint64(k)
		}
		p.finishLocked(i, r)
	}
	if n.count < all {
		p.breakUpLocked(b, false, nil) // nothing behind count is stored
	}
}

// refusedAtomicLocked takes a refusal of the message that commits burst b.
func (p *Publisher) refusedAtomicLocked(w *want, b *burst, a *ack) {
	r := classifyAck(w, a, false)
	if contradicts(&r) {
		notify(p.doubt)
	}
	switch {
	case a.form == garbage, a.form == noResponders, a.status == 429 && a.errCode != codeManyAtomic:
		// It proves nothing, or nobody took the commit: no single message has a better chance now.
		p.finishBurstLocked(b, r)
		return
	case a.errCode == codeBatchTooLarge:
		p.longest = max(len(b.members)/2, minBurst) // the server has a lower limit than its default
	}
	p.breakUpLocked(b, !provesNothingStored(a, r.Outcome, p.profile.Replicas), r.Err)
}

// provesNothingStored tells whether the refusal of an atomic batch's last message means that nothing of the batch is
// stored. All but these are made before the first message is. On one replica the server stores them one after another
// and holds each against quotas, so that the last can be refused after the others are stored.
func provesNothingStored(a *ack, outcome Outcome, replicas int) bool {
	switch a.errCode {
	case codeQuota, codeStorage, codeNoTier:
		return replicas > 1
	case codeInProcess, codeHasDuplicate: // unknown for a single message, but here its id was looked up before anything else
		return true
	}
	return outcome != Unknown
}

// refusedFastLocked takes a refusal of one member of burst b. That copy is not stored.
func (p *Publisher) refusedFastLocked(w *want, b *burst, seq uint32, a *ack) {
	end := b.sealed && int(seq) == len(b.members) // then no acknowledgement will follow
	if i := b.members[seq-1]; i >= 0 {
		r := classifyAck(w, a, len(p.slots[i].headers) > 0)
		if contradicts(&r) {
			notify(p.doubt)
		}
		if aboutBatch(a.errCode) {
			p.leave(i)
			p.resendLocked(i, false)
		} else {
			p.finishLocked(i, r)
		}
	}
	if end && b.left > 0 {
		p.breakUpLocked(b, true, &SendError{Written: true, Err: errShort})
	}
}

// JetStream's numbers about batches.
const (
	codeQuota         = 10002
	codeStorage       = 10023
	codeNoTier        = 10120
	codeInProcess     = 10158
	codeAtomicOff     = 10174
	codeBatchTooLarge = 10199
	codeHasDuplicate  = 10201
	codeFastOff       = 10205
	codeFastPattern   = 10206
	codeFastID        = 10207
	codeFastUnknown   = 10208
	codeManyAtomic    = 10210
	codeManyFast      = 10211
)

// aboutBatch tells whether a refusal in a fast batch is about the batch: singly, the message can be stored.
func aboutBatch(errCode int) bool {
	switch errCode {
	case codeFastOff, codeFastPattern, codeFastID, codeFastUnknown, codeManyFast:
		return true
	}
	return false
}

// finishBurstLocked gives every remaining member of b the same outcome.
func (p *Publisher) finishBurstLocked(b *burst, r Result) {
	for _, i := range b.members {
		if i >= 0 {
			p.finishLocked(i, r)
		}
	}
}

// afterLookup tells whether the refusal r of a message's second send says that its first one is not stored either: on
// one replica the server looks up the id before it holds a message against quotas and the stream's limits.
func afterLookup(r *Result, replicas int) bool {
	e, ok := r.Err.(*AckError)
	if !ok || r.Outcome != Retryable || replicas != 1 {
		return false
	}
	return e.ErrCode == codeQuota || e.ErrCode == codeStorage || e.ErrCode == codeStoreFailed
}
