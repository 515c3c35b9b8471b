package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"

	"edge/envelope"
)

// sampler turns /proc into lines. It remembers the last tick, because rates need two.
type sampler struct {
	site, host string
	at         time.Time
	last       map[string]uint64 // counters of the last tick that rates are made of, by "kind/device/name"
	buf        []byte
	lines      [][]byte // alias buf
}

// tick reads every counter once. The lines are valid until the next call.
func (s *sampler) tick(now time.Time) ([][]byte, error) {
	if s.last == nil {
		s.last = make(map[string]uint64)
	}
	var files [5][]byte
	for i, name := range []string{"/proc/loadavg", "/proc/stat", "/proc/meminfo", "/proc/diskstats", "/proc/net/dev"} {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read counters (this needs Linux with /proc): %w", err)
		}
		files[i] = b
	}
	load, err := parseLoad(files[0])
	if err != nil {
		return nil, err
	}
	cpu, err := parseStat(files[1])
	if err != nil {
		return nil, err
	}
	memory, err := parseMemory(files[2])
	if err != nil {
		return nil, err
	}
	s.buf, s.lines = s.buf[:0], s.lines[:0]
	elapsed := now.Sub(s.at).Seconds()
	s.add(now, "load", "", load.append)
	s.add(now, "cpu", "", func(b []byte) []byte {
		b = cpu.append(b)
		total, idle := s.delta("cpu//total", cpu.total()), s.delta("cpu//idle", cpu.ticks[3]+cpu.ticks[4])
		return appendRate(b, "busy_ratio", float64(total-min(idle, total)), float64(total))
	})
	s.add(now, "memory", "", memory.append)
	for _, d := range parseDisks(files[3]) {
		s.add(now, "disk", d.name, func(b []byte) []byte {
			return appendRate(d.append(b), "busy_ratio", float64(s.delta("disk/"+d.name+"/ms", d.ms))/1000, elapsed)
		})
	}
	for _, n := range parseNetwork(files[4]) {
		s.add(now, "network", n.name, func(b []byte) []byte {
			return appendRate(n.append(b), "rx_bytes_per_s", float64(s.delta("network/"+n.name+"/rx", n.rx[0])), elapsed)
		})
	}
	s.at = now
	return s.lines, nil
}

// delta returns how far a counter has come since the last tick, 0 at the first. A counter that went back, after a
// reset or a wrap, has come from 0.
func (s *sampler) delta(key string, v uint64) uint64 {
	before, ok := s.last[key]
	s.last[key] = v
	switch {
	case !ok:
		return 0
	case v < before:
		return v
	}
	return v - before
}

// add appends one event:
//
//	{"id":"…","ts":"…","site":"lab","host":"edge-01","kind":"disk","metric":{"device":"vda","reads":1,…}}
//
// The id is a hash of everything that names the event, so the same event has the same id wherever it is read again.
func (s *sampler) add(now time.Time, kind, device string, metric func([]byte) []byte) {
	b := s.buf
	start := len(b)
	ns := now.UnixNano()
	name := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q", s.site, s.host, ns, kind, device))
	b = append(b, `{"id":"`...)
	b = hex.AppendEncode(b, name[:16])
	b = append(b, `","ts":`...)
	b = envelope.AppendTime(b, ns)
	b = appendText(b, "site", s.site)
	b = appendText(b, "host", s.host)
	b = appendText(b, "kind", kind)
	b = append(b, `,"metric":{`...)
	inner := len(b)
	if device != "" {
		b = appendText(b, "device", device)
	}
	b = metric(b)
	b = append(b[:inner], b[inner+1:]...) // the comma before the first member
	b = append(b, "}}\n"...)
	s.buf = b
	s.lines = append(s.lines, b[start:len(b):len(b)])
}

// appendText, appendCount and appendRatio append one member with the comma before it.
func appendText(b []byte, name, value string) []byte {
	b = append(b, `,"`+name+`":`...)
	if out, err := envelope.AppendString(b, value); err == nil {
		return out
	}
	return append(b, "null"...) // not UTF-8: a kernel name can hold anything
}

func appendCount(b []byte, name string, v uint64) []byte {
	return strconv.AppendUint(append(b, `,"`+name+`":`...), v, 10)
}

// appendRate appends what/over, 0 when nothing has been measured yet.
func appendRate(b []byte, name string, what, over float64) []byte {
	v := 0.0
	if over > 0 {
		v = what / over
	}
	return envelope.AppendFloat(append(b, `,"`+name+`":`...), v, 64)
}
