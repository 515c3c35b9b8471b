package wasm

import (
	"testing"
	"time"
)

// A guest that spends step by step and asks when its counter is negative gets exactly its budget.
func TestMeter(t *testing.T) {
	f := func(budget, step, want int64) {
		t.Helper()
		var m meter
		now := time.Unix(0, 0)
		left, spent := m.start(budget, time.Second, now), int64(0)
		for {
			left -= step
			spent += step
			if m.spent(left) != spent {
				t.Fatalf("budget %d, step %d: the meter says %d, %d were spent", budget, step, m.spent(left), spent)
			}
			next, fault := m.refill(left, now)
			if fault != nil {
				if fault.Kind != FaultFuel {
					t.Fatal(fault)
				}
				break
			}
			if next < 0 || next > slice || m.granted > budget {
				t.Fatalf("budget %d, step %d: counter %d, granted %d", budget, step, next, m.granted)
			}
			left = next
		}
		if spent != want {
			t.Errorf("budget %d, step %d: stopped at %d, want %d", budget, step, spent, want)
		}
	}
	f(1, 1, 2)
	f(slice, 1, slice+1)
	f(slice*3, slice, slice*4)
	f(slice*3-1, slice, slice*3)
	f(slice*10, slice*4, slice*12)
	f(7, 1<<40, 1<<40)
}

func TestMeterClock(t *testing.T) {
	var m meter
	now := time.Unix(0, 0)
	left := m.start(1<<40, time.Second, now)
	f := func(left int64, at time.Duration, want FaultKind) {
		t.Helper()
		_, fault := m.refill(left, now.Add(at))
		if got := kindOfFault(fault); got != want {
			t.Errorf("at %v: %v, want %v", at, fault, want)
		}
	}
	f(left, time.Hour, 0) // nobody needed to ask
	f(-1, time.Second, 0)
	f(-1, time.Second+1, FaultTime)
	f(-(1 << 41), time.Hour, FaultFuel) // what is decided by the fuel does not depend on the clock
}

func kindOfFault(f *Fault) FaultKind {
	if f == nil {
		return 0
	}
	return f.Kind
}
