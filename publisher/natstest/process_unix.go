//go:build unix

package natstest

import (
	"os"
	"syscall"
)

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
func reload(p *os.Process) error    { return p.Signal(syscall.SIGHUP) }
func resume(p *os.Process) error    { return p.Signal(syscall.SIGCONT) }

func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(p)
}
