package wasm

import "time"

// meter is the budget of one call into the guest. The guest's code counts down what was granted and asks for more;
// here is decided whether it gets it.
//
// Invariant: 0 <= granted <= budget. Spent is granted less the guest's counter, which may be negative.
type meter struct {
	budget   int64 // units
	granted  int64
	time     time.Duration // for messages
	deadline time.Time
}

// start begins a budget and answers the first slice, which becomes the guest's counter.
func (m *meter) start(budget int64, time time.Duration, now time.Time) int64 {
	*m = meter{budget: budget, granted: min(slice, budget), time: time, deadline: now.Add(time)}
	return m.granted
}

// refill answers the new counter for one that is left, or why the guest must stop. What it spends before it asks
// depends on its code alone, so the fuel ends at the same instruction everywhere; the clock is looked at second.
func (m *meter) refill(left int64, now time.Time) (int64, *Fault) {
	if left >= 0 {
		return left, nil
	}
	over, rest := -left, m.budget-m.granted
	if over > rest {
		return 0, fault(FaultFuel, "more than its budget of %d units: do less per event or raise limits.fuel", m.budget)
	}
	if now.After(m.deadline) {
		return 0, fault(FaultTime, "still running after %v: do less per event or raise limits.time", m.time)
	}
	more := min(rest, over+slice)
	m.granted += more
	return more - over, nil
}

// spent answers the units that a call has used when left is its counter.
func (m *meter) spent(left int64) int64 { return m.granted - left }
