package natstest

import (
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is one run of the server.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and reaped
}

// launch starts the binary with its output appended to log.
func launch(path string, args []string, log *os.File) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The kernel ties the child's life to the thread that made it, not to the process, so the thread is kept.
		runtime.LockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			// How it ended is of no interest: it was killed, or its log says why.
			_ = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.exited
		return nil, err
	}
	return p, nil
}

// kill ends the process at once and waits until it is gone. A paused process dies too.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone already
	<-p.exited
}

// stop asks the process to end and kills it if it does not.
func (p *process) stop() {
	const patience = 15 * time.Second // a server with streams ends within one
	if err := terminate(p.cmd.Process); err == nil {
		select {
		case <-p.exited:
			return
		case <-time.After(patience):
		}
	}
	p.kill()
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
