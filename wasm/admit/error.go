package admit

import (
	"fmt"
	"strings"
)

// Error says why a module was refused, and where.
type Error struct {
	Section string // "code", "import", ...; "module" when no section is to blame
	Func    int    // index of the function by the original's numbering, -1 when it is not about one
	Offset  int    // byte offset in the original binary, -1 when there is no one place
	Reason  string // what is wrong and, where it can be known, what to do
}

func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString("admit module: ")
	s.WriteString(e.Section)
	if e.Section != "module" {
		s.WriteString(" section")
	}
	if e.Func >= 0 {
		fmt.Fprintf(&s, ", function %d", e.Func)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&s, ", offset %#x", e.Offset)
	}
	s.WriteString(": ")
	s.WriteString(e.Reason)
	return s.String()
}
