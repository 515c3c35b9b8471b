package faults

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"edge/publisher"
)

// exact tells whether a Result names the very place of its message. One of a fast batch names the place of the batch's
// last message, which is not before.
func (p *plan) exact() bool {
	return p.mode != publisher.ModeFast && (p.mode != publisher.ModeAuto || p.cluster)
}

// judge returns what does not fit between the events' fates and the stream.
func judge(p *plan, all []message) (errs []error) {
	numbers := make(map[string]int, len(p.events))
	for i := range p.events {
		numbers[p.events[i].id()] = i
	}
	copies := make([]int, len(p.events))
	for _, m := range all {
		i, ok := numbers[m.id]
		if !ok {
			errs = append(errs, fmt.Errorf("sequence %d has id %q, which was never sent", m.sequence, m.id))
			continue
		}
		e := &p.events[i]
		copies[i]++
		if m.subject != string(e.msg.Subject) || !bytes.Equal(m.payload, e.msg.Payload) {
			errs = append(errs, fmt.Errorf("sequence %d on %s is not what was sent: %s", m.sequence, m.subject, e.tell()))
		}
		if e.fate == accepted && e.sequence != m.sequence && (p.exact() || e.sequence < m.sequence) {
			errs = append(errs, fmt.Errorf("it is at sequence %d: %s", m.sequence, e.tell()))
		}
	}
	for i, n := range copies {
		e := &p.events[i]
		switch {
		case e.fate == accepted && n == 1, e.fate == permanent && n == 0, e.fate == unresolved && n <= 1:
		default:
			errs = append(errs, fmt.Errorf("it is stored %d times: %s", n, e.tell()))
		}
	}
	return errs
}

// TestJudge: the judge of the stream itself.
func TestJudge(t *testing.T) {
	f := func(want int, m publisher.Mode, fates []fate, change func(all []message) []message) {
		t.Helper()
		p := newPlan(1, 3)
		p.mode = m
		var all []message
		for i, fate := range fates {
			e := &p.events[i]
			e.fate, e.sequence = fate, uint64(i+1)
			all = append(all, message{e.sequence, e.id(), string(e.msg.Subject), e.msg.Payload})
		}
		if got := judge(p, change(all)); len(got) != want {
			t.Errorf("%v, want %d", errors.Join(got...), want)
		}
	}
	const single, fast = publisher.ModeSingle, publisher.ModeFast
	yes := []fate{accepted, accepted, accepted}
	f(0, single, yes, func(all []message) []message { return all })
	f(1, single, yes, func(all []message) []message { return all[1:] })
	f(2, single, yes, func(all []message) []message { all[1].sequence = 9; return append(all, all[0]) })
	f(1, single, yes, func(all []message) []message { all[1].subject = "x"; return all })
	f(1, single, yes, func(all []message) []message { all[1].payload = nil; return all })
	f(1, single, yes, func(all []message) []message { return append(all, message{4, "x", "x", nil}) })
	f(1, single, []fate{accepted, permanent, accepted}, func(all []message) []message { return all })
	f(0, single, []fate{accepted, permanent, accepted}, func(all []message) []message { return append(all[:1], all[2]) })
	f(0, single, []fate{accepted, unresolved, accepted}, func(all []message) []message { return all })
	f(0, single, []fate{accepted, unresolved, accepted}, func(all []message) []message { return append(all[:1], all[2]) })
	f(1, single, []fate{accepted, open, accepted}, func(all []message) []message { return all })
	f(1, single, yes, func(all []message) []message { all[2].sequence = 2; return all })
	f(0, fast, yes, func(all []message) []message { all[2].sequence = 2; return all })
	f(1, fast, yes, func(all []message) []message { all[2].sequence = 4; return all })
}
