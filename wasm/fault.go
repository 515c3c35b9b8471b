package wasm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// FaultKind is what a guest did wrong. The zero value is no fault.
type FaultKind uint8

// The kinds of faults. All but FaultInput and FaultHost are the module's doing.
const (
	FaultTrap    FaultKind = iota + 1 // an instruction that can not be executed: unreachable, division by zero
	FaultMemory                       // an access outside its memory
	FaultFuel                         // more instructions than its budget
	FaultTime                         // longer than the wall clock allows
	FaultDepth                        // calls nested too deeply
	FaultExit                         // it ended itself (proc_exit)
	FaultRefused                      // edge_v1_buffer answered 0: no room for a frame of this size
	FaultFrame                        // a pointer or length that does not lie in its memory
	FaultRecord                       // a record that breaks the format
	FaultOutput                       // records beyond the limits
	FaultInput                        // the caller's batch is beyond the limits; the guest was not called
	FaultHost                         // a bug in one of our own functions that the guest called; logged with its stack
)

var faultNames = [...]string{"none", "trap", "memory", "fuel", "time", "depth", "exit", "refused", "frame", "record", "output", "input", "host"}

// String returns a short stable code.
func (k FaultKind) String() string {
	if int(k) >= len(faultNames) {
		return fmt.Sprintf("fault%d", k)
	}
	return faultNames[k]
}

// Fault says why a guest's call counts for nothing. The instance is back at its snapshot.
type Fault struct {
	Kind   FaultKind
	Detail string // for people; may quote the first line that the guest wrote to its standard error

	// Event is the index in the batch of the event whose input or records are to blame, -1 when that is not known
	// for certain. Run the events one at a time to find out.
	Event int

	// Progress is the index that the guest says it was working on, -1 if it says nothing credible. A hint for
	// messages only: the guest may lie.
	Progress int

	stale bool // the function object holds a huge stack: a new instance is needed
}

func (f *Fault) Error() string {
	var s strings.Builder
	s.WriteString("run module: ")
	s.WriteString(f.Kind.String())
	if f.Event >= 0 {
		fmt.Fprintf(&s, " at event %d", f.Event)
	}
	s.WriteString(": ")
	s.WriteString(f.Detail)
	return s.String()
}

func fault(k FaultKind, format string, args ...any) *Fault {
	return &Fault{Kind: k, Detail: fmt.Sprintf(format, args...), Event: -1, Progress: -1}
}

func faultAt(k FaultKind, event int, format string, args ...any) *Fault {
	f := fault(k, format, args...)
	f.Event = event
	return f
}

// classify turns the error of a call into a fault. wazero answers with our own fault when a host function panicked
// with it, with texts for what a guest does, and with whatever else a host function panicked with: that is a bug of
// ours and must not look like the guest's.
func classify(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	text := err.Error()
	line, _, _ := strings.Cut(text, "\n")
	if _, cause, ok := strings.Cut(line, " failed: "); ok && strings.HasPrefix(line, "start ") {
		line = cause // wazero's words around the fault of a start function
	}
	var bug runtime.Error
	cause, guest := strings.CutPrefix(line, "wasm error: ")
	switch {
	case errors.As(err, &bug):
	case cause == "stack overflow": // the compiler's answer has no prefix, the interpreter's has
		f = fault(FaultDepth, "more stack than the runtime allows: recurse less deeply")
		f.stale = true
		return f
	case guest && cause == "out of bounds memory access":
		return fault(FaultMemory, "%s", cause)
	case guest:
		return fault(FaultTrap, "%s", cause)
	}
	return fault(FaultHost, "BUG: %s", line)
}
