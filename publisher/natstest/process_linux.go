package natstest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// awaitStopped returns when every thread of the process stands still: a signal is only a request.
func awaitStopped(p *os.Process) error {
	const patience = 10 * time.Second
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			return err
		}
		// pid (name) state ...; the name may hold anything but the last parenthesis is ours.
		if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) && stat[i+2] == 'T' {
			return nil
		}
	}
	return fmt.Errorf("process %d did not stop within %v", p.Pid, patience)
}
