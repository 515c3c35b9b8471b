package transform

import (
	"errors"
	"fmt"

	"edge/envelope"
	"edge/wasm"
)

// DefaultPayload is the largest payload the built-in envelope makes, in bytes, when a configuration names no
// other: the guest interface allows the same 1 MiB an event, and it is the default max_payload of a NATS server.
const DefaultPayload = 1 << 20

// Config is what a Renderer needs. The zero Instance means the built-in envelope.
type Config struct {
	Template *envelope.Template // the sink's subject; nil when a module renders every subject
	Allow    []string           // subject patterns a message may go to; empty: whatever the stream covers
	Payload  int                // output limit of one event in bytes; 0: DefaultPayload
	Headers  int                // most headers of one message; 0: envelope.MaxHeaders

	Instance *wasm.Instance // owned by the Renderer from New on
	Limits   wasm.Limits    // of the instance: what a frame may hold
}

// Renderer renders the batches of one lane. It is not safe for concurrent use, and it owns its instance.
type Renderer struct {
	cfg    Config
	writer envelope.Writer
	inputs []wasm.Input // of the frame being built
	index  []int        // inputs[k] is event index[k] of the batch
	plans  []plan       // one an event: what was prepared before the guest was asked
	buf    []byte       // prefix, subject and meta bytes of the frame being built
	single wasm.Output  // of runs whose records are copied at once
}

// plan is what is known of an event's subject before a module has seen it.
type plan struct {
	subject []byte                // the template rendered; nil when there is none or it failed
	refusal *envelope.RejectError // why it failed
}

// New returns a Renderer. It starts nothing and checks nothing that configuration has not checked.
func New(cfg Config) *Renderer {
	if cfg.Payload == 0 {
		cfg.Payload = DefaultPayload
	}
	if cfg.Headers == 0 {
		cfg.Headers = envelope.MaxHeaders
	}
	return &Renderer{cfg: cfg}
}

// Close frees the instance, if there is one.
func (r *Renderer) Close() error {
	if r.cfg.Instance == nil {
		return nil
	}
	return r.cfg.Instance.Close()
}

// Render renders a batch from its beginning into out, which it resets first, until every event has its verdict or
// the messages hold budget bytes; out.Verdicts tells how far it came, which is at least one event. It stops between
// guest calls, so that one call may pass the budget: by the frame limit at most. The events' bytes must stay
// untouched until Render returns; out keeps none of them. An error means that the renderer itself is broken (an
// instance that could not return to its snapshot) and says nothing about the events: none of them has a verdict.
func (r *Renderer) Render(events []envelope.Event, budget int, out *Rendered) error {
	out.reset(len(events))
	done := 0
	for done < len(events) && (done == 0 || out.size < budget) {
		if r.cfg.Instance == nil {
			r.renderNative(&events[done], done, out)
			done++
			continue
		}
		n, err := r.renderFrame(events, done, budget, out)
		if err != nil {
			out.Verdicts = out.Verdicts[:0]
			return err
		}
		done += n
	}
	out.Verdicts = out.Verdicts[:done]
	return nil
}

func (r *Renderer) renderNative(e *envelope.Event, i int, out *Rendered) {
	at := len(out.arena)
	arena, err := r.cfg.Template.AppendSubject(out.arena, e)
	if err != nil {
		out.rejectError(i, err)
		return
	}
	subject := arena[at:len(arena):len(arena)]
	if err := r.checkSubject(subject); err != nil {
		out.rejectError(i, err)
		return
	}
	at = len(arena)
	arena, err = r.writer.AppendNative(arena, e, r.cfg.Payload)
	if err != nil {
		out.rejectError(i, err)
		return
	}
	out.arena = arena
	out.emit(i, envelope.Message{ID: e.ID, Subject: subject, Payload: arena[at:len(arena):len(arena)]})
}

// emit adds one message to event i, whose messages must be added one after the other.
func (r *Rendered) emit(i int, m envelope.Message) {
	v := &r.Verdicts[i]
	if v.Kind != Emit {
		*v = Verdict{Kind: Emit, First: len(r.Messages)}
	}
	m.Copy = v.Count
	v.Count++
	r.size += len(m.Subject) + len(m.Headers) + len(m.Payload)
	r.Messages = append(r.Messages, m)
}

// rejectError rejects event i with the reason that err carries.
func (r *Rendered) rejectError(i int, err error) {
	refusal := refusalOf(err)
	r.reject(i, refusal.Reason, refusal.Detail)
}

func refusalOf(err error) *envelope.RejectError {
	var refusal *envelope.RejectError
	if !errors.As(err, &refusal) {
		panic(fmt.Sprintf("BUG: event refused without a reason: %v", err))
	}
	return refusal
}

// Reasons that are born here; those of records, subjects and headers come from envelope.
const (
	ReasonNotAllowed envelope.Reason = "subject_not_allowed" // in none of the sink's allow_subjects
	ReasonNoSubject  envelope.Reason = "subject_missing"     // the module named none and the sink has no template
	ReasonTooLarge   envelope.Reason = "input_too_large"     // larger than a module may be given
	ReasonModule     envelope.Reason = "module_rejected"     // the module said no; the detail is its own
	reasonFault                      = "module_fault_"       // + the kind of fault
)

// checkSubject holds a concrete subject against the rules and the sink's own list. The error is a
// *envelope.RejectError.
func (r *Renderer) checkSubject(subject []byte) error {
	if err := envelope.CheckSubject(subject); err != nil {
		return err
	}
	if len(r.cfg.Allow) == 0 {
		return nil
	}
	for _, pattern := range r.cfg.Allow {
		if envelope.MatchSubject(pattern, subject) {
			return nil
		}
	}
	return &envelope.RejectError{Reason: ReasonNotAllowed, Detail: fmt.Sprintf(
		"%q is in none of the sink's allow_subjects: add it there or mend the template or module", subject)}
}
