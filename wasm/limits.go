package wasm

import (
	"fmt"
	"time"

	"edge/wasm/admit"
)

// Limits bound one module and its instances. All must be positive; none has an "off". Begin with DefaultLimits.
type Limits struct {
	Module  int // bytes of the binary
	Memory  int // bytes of linear memory, rounded down to pages of 64 KiB
	Input   int // bytes of one event's data
	Output  int // bytes that one event's records hold together: subjects, headers, payloads
	Batch   int // bytes of one frame without its header, and again of all records of one run with theirs
	Headers int // header lines of one record
	Records int // records of one event
	Stack   int // estimated bytes of nested calls

	Fuel     int64         // units (instructions) for a run's first event
	FuelNext int64         // units more for each further event of the run
	FuelByte int64         // units more for each byte of the run's frame
	Time     time.Duration // wall clock per event of the run, and again per MiB of its frame; checked once a slice

	LoadFuel int64         // units for start function, _initialize and configuration together
	LoadTime time.Duration // wall clock for the same
}

// DefaultLimits returns the limits for a module that nobody has said anything special about. A Go guest wants
// 64 MiB of memory.
func DefaultLimits() Limits {
	return Limits{
		Module:  16 << 20,
		Memory:  16 << 20,
		Input:   1 << 20,
		Output:  1 << 20,
		Batch:   8 << 20,
		Headers: 16,
		Records: 256,
		Stack:   1 << 20,

		Fuel:     1 << 24, // 3 to 5 ms; a C guest needs some 2,000 units for 220 bytes of JSON, encoding/json in Go 300,000
		FuelNext: 1 << 16,
		FuelByte: 128,                   // a careful JSON scanner in C needs 20 to 35 units a byte, 97 at worst; without it 1 MiB would not pass
		Time:     50 * time.Millisecond, // ten times what the fuel takes on a quiet machine

		LoadFuel: 1 << 30, // 0.3 s; Go's runtime starts within a hundredth of it
		LoadTime: 10 * time.Second,
	}
}

// slice is how much fuel is handed out at a time, in units: about 0.3 ms between two turns of Go's scheduler, and
// one refill's cost (43 ns and a look at the clock) for a million instructions.
const slice = 1 << 20

const (
	maxBytes = 1 << 30 // of anything: offsets and sums of a frame fit into 32 bits
	maxFuel  = 1 << 40 // times the events of a frame it fits into 63 bits
)

// check answers an error that names the first limit that can not be meant.
func (l *Limits) check() error {
	var err error
	hold := func(name string, v, max int64) {
		if err == nil && (v <= 0 || v > max) {
			err = fmt.Errorf("limit %s is %d, it must be between 1 and %d", name, v, max)
		}
	}
	hold("module", int64(l.Module), maxBytes)
	hold("memory", int64(l.Memory), 4*maxBytes)
	hold("batch", int64(l.Batch), maxBytes)
	hold("input", int64(l.Input), int64(l.Batch))
	hold("output", int64(l.Output), int64(l.Batch))
	hold("headers", int64(l.Headers), 1<<16)
	hold("records", int64(l.Records), 1<<20)
	hold("stack", int64(l.Stack), 16<<20) // wazero's own ceiling is 50 MB
	hold("fuel", l.Fuel, maxFuel)
	hold("fuel of a further event", l.FuelNext, maxFuel)
	hold("fuel of a byte", l.FuelByte, 1<<20)
	hold("time", int64(l.Time), int64(time.Hour))
	hold("load fuel", l.LoadFuel, maxFuel)
	hold("load time", int64(l.LoadTime), int64(time.Hour))
	return err
}

func (l *Limits) admission() admit.Limits {
	a := admit.DefaultLimits()
	a.ModuleBytes = l.Module
	a.MemoryBytes = l.Memory
	a.StackBytes = l.Stack
	a.StartFuel = min(slice, l.LoadFuel)
	return a
}

// budget is what a run of n events in a frame of size bytes may spend.
func (l *Limits) budget(n, size int) (fuel int64, wall time.Duration) {
	return l.Fuel + int64(n-1)*l.FuelNext + int64(size)*l.FuelByte, time.Duration(n+size>>20) * l.Time
}
