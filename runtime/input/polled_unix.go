//go:build unix

package input

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// polled reads a file that may be a pipe or a terminal, and can be woken while it waits.
type polled struct {
	f      *os.File
	fd     int
	r, w   *os.File // a pipe: closing w wakes
	waking sync.Once
}

func newPolled(f *os.File) (*polled, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &polled{f: f, fd: int(f.Fd()), r: r, w: w}, nil
}

// Read waits until there is something to read and returns it, or io.EOF at the end and after wake.
func (p *polled) Read(b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(p.r.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return 0, io.EOF
		}
		return p.f.Read(b) // ready, at its end, or something that cannot be polled
	}
}

// wake ends every Read, now and later, and tells whether it can.
func (p *polled) wake() bool {
	p.waking.Do(func() { p.w.Close() })
	return true
}

// close frees the pipe, not the file. No Read may be waiting.
func (p *polled) close() {
	p.wake()
	p.r.Close()
}
