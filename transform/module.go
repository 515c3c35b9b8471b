package transform

import (
	"errors"
	"fmt"

	"edge/envelope"
	"edge/wasm"
)

// eventsPerCall bounds one guest call. Beyond 64 events a call's own cost no longer shows (60 ns an event at 64,
// 65 at 256, measured with C), while the work that a fault repeats and the time the wall clock allows both grow.
const eventsPerCall = 64

// renderFrame makes one guest call for the events from next on, as many as a frame takes, and returns how many of
// them have a verdict now.
func (r *Renderer) renderFrame(events []envelope.Event, next, budget int, out *Rendered) (int, error) {
	if next == 0 {
		r.plans = append(r.plans[:0], make([]plan, len(events))...)
	}
	r.inputs, r.index, r.buf = r.inputs[:0], r.index[:0], r.buf[:0]
	size, end := 0, next
	for end < len(events) && len(r.inputs) < eventsPerCall {
		in, ok := r.prepare(&events[end], end, out)
		if !ok {
			end++
			continue
		}
		n := in.Size()
		if size > 0 && size+n > r.cfg.Limits.Batch {
			break // it opens the next frame
		}
		size += n
		r.inputs = append(r.inputs, in)
		r.index = append(r.index, end)
		end++
	}
	if len(r.inputs) == 0 {
		return end - next, nil
	}
	ran, err := r.call(events, budget, out)
	if err != nil {
		return 0, err
	}
	if ran < len(r.inputs) {
		end = r.index[ran] // it and what stands behind it come again
	}
	return end - next, nil
}

// prepare renders what a frame says of an event beside its body. It answers false when the event has been
// rejected already.
func (r *Renderer) prepare(e *envelope.Event, i int, out *Rendered) (wasm.Input, bool) {
	in := wasm.Input{IngestTime: e.IngestTime, EventTime: e.EventTime, ID: e.ID, Data: e.Body}
	if len(e.Body) > r.cfg.Limits.Input {
		out.reject(i, ReasonTooLarge, fmt.Sprintf("body of %d bytes, a module may be given %d: raise limits.input", len(e.Body), r.cfg.Limits.Input))
		return in, false
	}
	at := len(r.buf)
	buf, err := envelope.AppendPrefix(r.buf, e)
	if err != nil {
		out.rejectError(i, err)
		return in, false
	}
	in.Prefix = buf[at:len(buf):len(buf)]
	at = len(buf)
	buf = appendMeta(buf, e)
	in.Meta = buf[at:len(buf):len(buf)]
	r.buf = buf
	if r.cfg.Template != nil {
		at = len(out.arena)
		arena, err := r.cfg.Template.AppendSubject(out.arena, e)
		if err == nil {
			out.arena = arena
			in.Subject = arena[at:len(arena):len(arena)]
			r.plans[i].subject = in.Subject
		} else {
			r.plans[i].refusal = refusalOf(err) // the module may still name a subject of its own
		}
	}
	if n := in.Size(); n > r.cfg.Limits.Batch {
		out.reject(i, ReasonTooLarge, fmt.Sprintf("event of %d bytes with its envelope, a frame holds %d", n, r.cfg.Limits.Batch))
		return in, false
	}
	return in, true
}

// call runs the prepared frame, and on a fault runs its events one by one until the budget is used up. It returns
// how many events of the frame have a verdict.
func (r *Renderer) call(events []envelope.Event, budget int, out *Rendered) (int, error) {
	o := out.output()
	fault, err := r.run(r.inputs, o)
	if err != nil {
		return 0, err
	}
	if fault == nil {
		r.take(events, r.index, o.Records, out, false)
		return len(r.inputs), nil
	}
	if len(r.inputs) == 1 {
		out.rejectFault(r.index[0], fault)
		return 1, nil
	}
	defer r.single.Trim(keepBytes)
	for k := range r.inputs {
		if k > 0 && out.size >= budget {
			return k, nil
		}
		fault, err := r.run(r.inputs[k:k+1], &r.single)
		if err != nil {
			return 0, err
		}
		if fault != nil {
			out.rejectFault(r.index[k], fault)
			continue
		}
		r.take(events, r.index[k:k+1], r.single.Records, out, true)
	}
	return len(r.inputs), nil
}

// run tells a fault of the guest, which belongs to events, from an error of ours, which does not.
func (r *Renderer) run(in []wasm.Input, o *wasm.Output) (*wasm.Fault, error) {
	err := r.cfg.Instance.Run(in, o)
	if err == nil {
		return nil, nil
	}
	var fault *wasm.Fault
	if errors.As(err, &fault) {
		return fault, nil
	}
	return nil, fmt.Errorf("run module: %w", err)
}

// take turns the records of one call into verdicts. index maps the call's events to the batch's; copied says
// that the records' bytes do not outlive this call and must be kept.
func (r *Renderer) take(events []envelope.Event, index []int, records []wasm.Record, out *Rendered, copied bool) {
	next := 0
	for k, i := range index {
		first := next
		for next < len(records) && int(records[next].Index) == k {
			next++
		}
		r.takeEvent(&events[i], i, records[first:next], out, copied)
	}
	if next != len(records) {
		panic(fmt.Sprintf("BUG: %d records of a checked call belong to no event", len(records)-next))
	}
}

// takeEvent gives event i its verdict from its own records: all of its messages, or none.
func (r *Renderer) takeEvent(e *envelope.Event, i int, records []wasm.Record, out *Rendered, copied bool) {
	if len(records) == 0 {
		out.Verdicts[i] = Verdict{Kind: Drop}
		return
	}
	for k := range records {
		if records[k].Reject {
			out.undo(i)
			out.reject(i, ReasonModule, printable(records[k].Payload))
			return
		}
		m, err := r.message(e, i, &records[k])
		if err != nil {
			out.undo(i)
			out.rejectError(i, err)
			return
		}
		if copied {
			m.Subject, m.Headers, m.Payload = out.keep(m.Subject), out.keep(m.Headers), out.keep(m.Payload)
		}
		out.emit(i, m)
	}
}

// message checks one record and makes it a message. An empty subject means the sink's own. The error is a
// *envelope.RejectError.
func (r *Renderer) message(e *envelope.Event, i int, rec *wasm.Record) (envelope.Message, error) {
	m := envelope.Message{ID: e.ID, Subject: rec.Subject, Headers: rec.Headers, Payload: rec.Payload}
	if len(m.Subject) == 0 {
		switch p := r.plans[i]; {
		case p.subject != nil:
			m.Subject = p.subject
		case p.refusal != nil:
			return m, p.refusal
		default:
			return m, &envelope.RejectError{Reason: ReasonNoSubject, Detail: "the module named none: set the sink's subject or let the module name one"}
		}
	}
	if err := r.checkSubject(m.Subject); err != nil {
		return m, err
	}
	return m, envelope.CheckHeaders(m.Headers, r.cfg.Headers, envelope.MaxHeaderBytes)
}

// undo takes back the messages that event i has added so far.
func (r *Rendered) undo(i int) {
	if v := r.Verdicts[i]; v.Kind == Emit {
		for _, m := range r.Messages[v.First:] {
			r.size -= len(m.Subject) + len(m.Headers) + len(m.Payload)
		}
		r.Messages = r.Messages[:v.First]
	}
}

func (r *Rendered) rejectFault(i int, f *wasm.Fault) {
	r.reject(i, envelope.Reason(reasonFault+f.Kind.String()), f.Detail)
}
