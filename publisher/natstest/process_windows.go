package natstest

import (
	"errors"
	"os"
	"syscall"
)

var errNoSignals = errors.New("this system has no such signal: run the test on a unix system")

func dieWithParent() *syscall.SysProcAttr { return nil }
func terminate(*os.Process) error         { return errNoSignals }
func reload(*os.Process) error            { return errNoSignals }
func pause(*os.Process) error             { return errNoSignals }
func resume(*os.Process) error            { return errNoSignals }
