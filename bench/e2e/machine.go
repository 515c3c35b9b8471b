package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processors is the time that all processors together have been busy, and idle, since the machine started.
type processors struct{ busy, idle time.Duration }

// readProcessors returns zeros where there is no /proc/stat.
func readProcessors() (p processors) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p
	}
	fields := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	for i, f := range fields[1:min(9, len(fields))] { // user nice system idle iowait irq softirq steal
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return processors{}
		}
		if d := time.Duration(ticks) * 10 * time.Millisecond; i == 3 || i == 4 {
			p.idle += d
		} else {
			p.busy += d
		}
	}
	return p
}

// othersBusy returns which part of the machine went to others between two looks, when agent and server have used ours.
// This program is one of the others; it works only where it feeds a pipe.
func othersBusy(before, after processors, ours time.Duration) float64 {
	busy, idle := after.busy-before.busy, after.idle-before.idle
	if busy+idle <= 0 {
		return 0
	}
	return max(0, float64(busy-ours)/float64(busy+idle))
}

// embeddedStore finds the store that the agent's own server has left under its data folder. A server keeps the streams
// of its one account in STORE/jetstream/$G.
func embeddedStore(data string) (store string, err error) {
	err = filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "$G" {
			store = filepath.Dir(filepath.Dir(path))
			return fs.SkipAll
		}
		return err
	})
	if err == nil && store == "" {
		err = fmt.Errorf("find the embedded server's store in %s: there is no folder $G", data)
	}
	return store, err
}
