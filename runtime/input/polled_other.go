//go:build !unix

package input

import "os"

// polled is the file itself: there is no way here to wake a reader.
type polled struct{ *os.File }

func newPolled(f *os.File) (*polled, error) { return &polled{f}, nil }

func (p *polled) wake() bool { return false }
func (p *polled) close()     {}
