package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"edge/envelope"
	"edge/publisher"
)

// way is the method that an event goes out by.
type way uint8

const (
	bySend way = iota
	byWrite
	byDeliver
)

// nature is what an event is made for.
type nature uint8

const (
	sound  nature = iota // must be accepted
	large                // may be refused while a limit is lowered
	poison               // must be refused, and never travel
)

// fate is how an event has ended.
type fate uint8

const (
	open fate = iota
	accepted
	permanent
	unresolved // refused again and again after an attempt without an answer: stored at most once
)

// unresolvedAfter is how many refusals in a row end an event that may be stored, as the agent does.
const unresolvedAfter = 5

// event is one event and what has become of it. It belongs to the lane.
//
// Invariant: at most one attempt is open, but for those of a Write that was cancelled. A fate, once set, stays.
type event struct {
	msg    envelope.Message
	nature nature
	way    way

	open     bool // an attempt is under way
	doubt    bool // an attempt was unknown
	refusals int  // permanent answers since then
	fate     fate
	sequence uint64
	again    bool               // accepted as a duplicate
	history  []publisher.Result // of all attempts
}

// settle takes the result of an attempt. The error says which promise it breaks. It is pure but for e.
//
// lowers: a limit is lowered at times. direct: a message is sent once in an attempt, as single mode does; batches
// may send it again singly inside one attempt, so that it is its own duplicate.
func (e *event) settle(r publisher.Result, lowers, direct bool) error {
	e.history = append(e.history, r)
	if !e.open {
		return errors.New("a result without an attempt")
	}
	e.open = false
	if e.fate != open {
		return errors.New("a result after the end")
	}
	if (r.Err == nil) != (r.Outcome == publisher.Accepted) {
		return errors.New("an outcome and an error that do not fit")
	}
	switch r.Outcome {
	case publisher.Accepted:
		e.fate, e.sequence, e.again = accepted, r.Sequence, r.Duplicate
		switch {
		case e.nature == poison:
			return errors.New("poison was accepted")
		case r.Sequence == 0:
			return errors.New("accepted without a sequence")
		case direct && r.Duplicate && !e.doubt:
			return errors.New("a duplicate, although no earlier attempt may have been stored")
		}
	case publisher.Permanent:
		if e.nature == sound || e.nature == large && !lowers {
			e.fate = permanent
			return errors.New("refused, although nothing is wrong with it")
		}
		if publisher.Settle(e.doubt, r) == publisher.Permanent {
			e.fate = permanent
		} else if e.refusals++; e.refusals >= unresolvedAfter {
			e.fate = unresolved
		}
	case publisher.Unknown:
		e.doubt = true
		if e.nature == poison {
			return errors.New("poison may have travelled")
		}
	case publisher.Retryable, publisher.Fatal:
	default:
		return errors.New("no outcome")
	}
	return nil
}

// tell is what happened to an event, for messages.
func (e *event) tell() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s nature %d fate %d sequence %d duplicate %v:", e.id(), e.nature, e.fate, e.sequence, e.again)
	for _, r := range e.history {
		fmt.Fprintf(&b, "\n\t%v duplicate %v sequence %d: %v", r.Outcome, r.Duplicate, r.Sequence, r.Err)
	}
	return b.String()
}

func (e *event) id() string { return string(envelope.AppendMsgID(nil, e.msg.ID, e.msg.Copy)) }

// tally counts results as a Publisher's counters do.
type tally struct {
	outcome    [publisher.Fatal + 1]uint64
	duplicates uint64
	cancelled  uint64 // called unknown because their context ended; the publisher counts how they really end
}

// add counts a result, unless its message was never admitted.
func (t *tally) add(r *publisher.Result) {
	switch {
	case cancelled(r):
		t.cancelled++
	case admitted(r):
		t.outcome[r.Outcome]++
		if r.Duplicate {
			t.duplicates++
		}
	}
}

// cancelled tells whether a message was given up by Write or Deliver after it may have been sent.
func cancelled(r *publisher.Result) bool {
	var ended *publisher.EndedError
	return r.Outcome == publisher.Unknown && errors.As(r.Err, &ended) && ended.Err != nil
}

// admitted tells whether a result is of a message that was let in: the others are the words of Write and Deliver for
// what never was.
func admitted(r *publisher.Result) bool {
	if r.Outcome == publisher.Fatal {
		return !errors.As(r.Err, new(*publisher.FatalError))
	}
	var send *publisher.SendError
	if r.Outcome != publisher.Retryable || !errors.As(r.Err, &send) {
		return true
	}
	for _, err := range []error{publisher.ErrFull, publisher.ErrNotReady, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(send, err) {
			return false
		}
	}
	return !errors.As(send, new(*publisher.EndedError))
}

// check holds the tally of a publisher that has ended against its counters. A cluster may acknowledge a message twice,
// as its old leader and as its new one; what the stream holds tells whether it was stored twice.
func (t *tally) check(c *publisher.Counters, cluster bool) error {
	real := [...]uint64{publisher.Accepted: c.Accepted, publisher.Retryable: c.Retryable, publisher.Unknown: c.Unknown,
		publisher.Permanent: c.Permanent, publisher.Fatal: c.Fatal}
	var more uint64
	for o, n := range real {
		if n < t.outcome[o] {
			return fmt.Errorf("%d results are %v, the counter says %d", t.outcome[o], publisher.Outcome(o), n)
		}
		more += n - t.outcome[o]
	}
	if more != t.cancelled {
		return fmt.Errorf("the counters have %d attempts more than there were results, %d were cancelled: %+v, %+v", more, t.cancelled, c, t)
	}
	if c.Duplicates < t.duplicates || c.Duplicates > t.duplicates+t.cancelled {
		return fmt.Errorf("%d duplicates, the counter says %d", t.duplicates, c.Duplicates)
	}
	if c.ExtraAcks > 0 && !cluster || c.UnexpectedAcks+c.Replaced > 0 {
		return fmt.Errorf("acknowledgements that make no sense: %+v", c)
	}
	return nil
}

// TestSettle: the judge itself.
func TestSettle(t *testing.T) {
	bad := errors.New("bad")
	yes := publisher.Result{Outcome: publisher.Accepted, Sequence: 1}
	twin := publisher.Result{Outcome: publisher.Accepted, Sequence: 1, Duplicate: true}
	no := publisher.Result{Outcome: publisher.Permanent, Err: bad}
	later := publisher.Result{Outcome: publisher.Retryable, Err: bad}
	maybe := publisher.Result{Outcome: publisher.Unknown, Err: bad}
	f := func(n nature, lowers bool, want fate, broken bool, results ...publisher.Result) {
		t.Helper()
		e := event{nature: n}
		var err error
		for i, r := range results {
			e.open = true
			if err = e.settle(r, lowers, true); err != nil && i < len(results)-1 {
				t.Fatalf("result %d: %v", i, err)
			}
		}
		if (err != nil) != broken || e.fate != want {
			t.Errorf("fate %d, %v, want %d", e.fate, err, want)
		}
	}
	f(sound, false, accepted, false, yes)
	f(sound, false, accepted, false, later, yes)
	f(sound, false, accepted, false, maybe, later, twin)
	f(sound, false, accepted, false, maybe, yes)
	f(sound, false, accepted, true, twin)
	f(sound, false, accepted, true, later, twin)
	f(sound, false, accepted, true, yes, yes)
	f(sound, false, permanent, true, no)
	f(sound, false, accepted, true, publisher.Result{Outcome: publisher.Accepted})
	f(sound, false, open, true, publisher.Result{Outcome: publisher.Accepted, Err: bad})
	f(sound, false, open, true, publisher.Result{Err: bad})
	f(large, false, permanent, true, no)
	f(large, true, permanent, false, no)
	f(large, true, accepted, false, maybe, no, no, yes)
	f(large, true, unresolved, false, maybe, no, no, no, no, no)
	f(poison, false, permanent, false, later, no)
	f(poison, false, accepted, true, yes)
	f(poison, false, open, true, maybe)
	e := event{}
	if e.settle(yes, false, true) == nil {
		t.Error("a result without an attempt is let through")
	}
}
