package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"edge/envelope"
)

// This file parses /proc and appends what it found as members. The formats are those of proc(5); a line that is not
// as expected is an error where there is one such line, and left out where there are many.

type loadAverage struct {
	avg            [3]float64 // over 1, 5 and 15 minutes
	running, tasks uint64
}

func parseLoad(b []byte) (l loadAverage, err error) {
	_, err = fmt.Sscanf(string(b), "%f %f %f %d/%d", &l.avg[0], &l.avg[1], &l.avg[2], &l.running, &l.tasks)
	if err != nil {
		return l, fmt.Errorf("parse loadavg: %w", err)
	}
	return l, nil
}

func (l loadAverage) append(b []byte) []byte {
	for i, name := range [...]string{"avg_1m", "avg_5m", "avg_15m"} {
		b = envelope.AppendFloat(append(b, `,"`+name+`":`...), l.avg[i], 64)
	}
	return appendCount(appendCount(b, "running", l.running), "tasks", l.tasks)
}

// cpuTimes are the counters of all processors together, in ticks of 10 ms, and two counts of the scheduler.
type cpuTimes struct {
	ticks           [8]uint64
	switches, forks uint64
	have            bool
}

var tickNames = [8]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

func parseStat(b []byte) (c cpuTimes, err error) {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		switch {
		case len(f) == 0:
		case f[0] == "cpu" && len(f) >= 9:
			c.have = true
			for i := range c.ticks {
				if c.ticks[i], err = strconv.ParseUint(f[1+i], 10, 64); err != nil {
					return c, fmt.Errorf("parse stat: %w", err)
				}
			}
		case f[0] == "ctxt" && len(f) == 2:
			c.switches, err = strconv.ParseUint(f[1], 10, 64)
		case f[0] == "processes" && len(f) == 2:
			c.forks, err = strconv.ParseUint(f[1], 10, 64)
		}
		if err != nil {
			return c, fmt.Errorf("parse stat: %w", err)
		}
	}
	if !c.have {
		return c, fmt.Errorf("parse stat: no line of all processors")
	}
	return c, nil
}

func (c cpuTimes) total() (n uint64) {
	for _, t := range c.ticks {
		n += t
	}
	return n
}

func (c cpuTimes) append(b []byte) []byte {
	for i, name := range tickNames {
		if i != 1 && i != 5 { // nice and irq are 0 nearly everywhere
			b = appendCount(b, name, c.ticks[i])
		}
	}
	return appendCount(appendCount(b, "switches", c.switches), "forks", c.forks)
}

// memoryUse is in bytes.
type memoryUse struct{ total, free, available, cached, dirty uint64 }

func parseMemory(b []byte) (m memoryUse, err error) {
	want := map[string]*uint64{
		"MemTotal": &m.total, "MemFree": &m.free, "MemAvailable": &m.available, "Cached": &m.cached, "Dirty": &m.dirty,
	}
	for line := range bytes.Lines(b) {
		name, value, ok := strings.Cut(string(line), ":")
		v := want[name]
		if !ok || v == nil {
			continue
		}
		if *v, err = strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54); err != nil {
			return m, fmt.Errorf("parse meminfo: %s: %w", name, err)
		}
		*v *= 1024
	}
	if m.total == 0 {
		return m, fmt.Errorf("parse meminfo: no MemTotal")
	}
	return m, nil
}

func (m memoryUse) append(b []byte) []byte {
	b = appendCount(b, "total", m.total)
	b = appendCount(b, "free", m.free)
	b = appendCount(b, "available", m.available)
	b = appendCount(b, "cached", m.cached)
	b = appendCount(b, "dirty", m.dirty)
	return appendRate(b, "used_ratio", float64(m.total-min(m.available, m.total)), float64(m.total))
}

// disk is one block device; a sector has 512 bytes whatever the disk says.
type disk struct {
	name                       string
	reads, sectorsRead         uint64
	writes, sectorsWritten, ms uint64
}

// parseDisks leaves out devices that never did anything.
func parseDisks(b []byte) (disks []disk) {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 14 {
			continue
		}
		v, ok := parseUints(f[3:14])
		if !ok || v[0]+v[4] == 0 {
			continue
		}
		disks = append(disks, disk{f[2], v[0], v[2], v[4], v[6], v[9]})
	}
	return disks
}

func (d disk) append(b []byte) []byte {
	b = appendCount(b, "reads", d.reads)
	b = appendCount(b, "sectors_read", d.sectorsRead)
	b = appendCount(b, "writes", d.writes)
	b = appendCount(b, "sectors_written", d.sectorsWritten)
	return appendCount(b, "io_ms", d.ms)
}

// network is one interface: bytes, packets, errors and drops each way.
type network struct {
	name   string
	rx, tx [4]uint64
}

// parseNetwork leaves out interfaces that never did anything.
func parseNetwork(b []byte) (nets []network) {
	for line := range bytes.Lines(b) {
		name, rest, ok := strings.Cut(string(line), ":")
		if !ok {
			continue // the two lines of headings
		}
		v, ok := parseUints(strings.Fields(rest))
		if !ok || len(v) < 12 || v[0]+v[8] == 0 {
			continue
		}
		nets = append(nets, network{strings.TrimSpace(name), [4]uint64(v[:4]), [4]uint64(v[8:12])})
	}
	return nets
}

func (n network) append(b []byte) []byte {
	b = appendCount(b, "rx_bytes", n.rx[0])
	b = appendCount(b, "rx_packets", n.rx[1])
	b = appendCount(b, "tx_bytes", n.tx[0])
	b = appendCount(b, "tx_packets", n.tx[1])
	b = appendCount(b, "errors", n.rx[2]+n.tx[2])
	return appendCount(b, "drops", n.rx[3]+n.tx[3])
}

func parseUints(fields []string) (v []uint64, ok bool) {
	for _, f := range fields {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return nil, false
		}
		v = append(v, n)
	}
	return v, true
}
