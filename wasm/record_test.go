package wasm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// rec makes a record with true lengths.
func rec(index uint32, kind byte, subject, headers, payload string) string {
	b := binary.LittleEndian.AppendUint32(nil, index)
	b = append(b, kind, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(subject)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return string(b) + subject + headers + payload
}

// set returns s with bytes written over it.
func set(s string, at int, b ...byte) string { return s[:at] + string(b) + s[at+len(b):] }

func recordLimits() Limits {
	lim := DefaultLimits()
	lim.Output, lim.Batch, lim.Headers, lim.Records = 2000, 4000, 2, 3
	return lim
}

func TestRecords(t *testing.T) {
	lim := recordLimits()
	f := func(name, src string, want string) {
		t.Helper()
		var out Output
		fault := out.take([]byte(src), 3, &lim)
		got := show(&out)
		if fault != nil {
			got = fmt.Sprint(fault.Kind, " ", fault.Event)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q (%v)", name, got, want, fault)
		}
	}
	ok := rec(1, 0, "s", "A: b\r\n", "p")
	f("nothing", "", "")
	f("one", ok, "1 s A: b\r\n p")
	f("several", rec(0, 1, "", "", "no")+ok+ok+rec(2, 0, "", "", ""), "0!   no|1 s A: b\r\n p|1 s A: b\r\n p|2   ")
	f("cut", ok[:15], "record -1")
	f("cut in the middle", ok[:len(ok)-1], "record 1")
	f("one byte behind", ok+"x", "record -1")
	f("index", rec(3, 0, "", "", ""), "record -1")
	f("greatest index", rec(1<<32-1, 0, "", "", ""), "record -1")
	f("decreasing", ok+rec(0, 0, "", "", ""), "record -1")
	f("kind", rec(1, 2, "", "", ""), "record 1")
	f("pad", set(ok, 5, 1), "record 1")
	f("subject of 64 KiB", set(ok, 6, 0xff, 0xff), "record 1")
	f("headers of 4 GiB", set(ok, 8, 0xff, 0xff, 0xff, 0xff), "record 1")
	f("payload of 4 GiB", set(ok, 12, 0xff, 0xff, 0xff, 0xff), "record 1")
	f("a sum that wraps in 32 bits", set(ok, 8, 0xff, 0xff, 0xff, 0xff, 9), "record 1")
	f("reject with subject", rec(0, 1, "s", "", "no"), "record 0")
	f("reject with headers", rec(0, 1, "", "A: b\r\n", "no"), "record 0")
	f("longest reason", rec(0, 1, "", "", strings.Repeat("r", 1024)), "0!   "+strings.Repeat("r", 1024))
	f("reason too long", rec(0, 1, "", "", strings.Repeat("r", 1025)), "output 0")
	f("two headers", rec(0, 0, "", "A:\r\nB:\r\n", ""), "0  A:\r\nB:\r\n ")
	f("three headers", rec(0, 0, "", "A:\r\nB:\r\nC:\r\n", ""), "output 0")
	f("three records", strings.Repeat(rec(0, 0, "", "", ""), 3)+rec(1, 0, "", "", ""), "0   |0   |0   |1   ")
	f("four records", strings.Repeat(rec(0, 0, "", "", ""), 4), "output 0")
	half := rec(0, 0, "", "", strings.Repeat("p", 1000))
	f("most bytes", half+rec(0, 0, "", "", strings.Repeat("p", 1000)), "0   "+strings.Repeat("p", 1000)+"|0   "+strings.Repeat("p", 1000))
	f("too many bytes", half+rec(0, 0, "", "", strings.Repeat("p", 1001)), "output 0")
	f("too many bytes of a batch", strings.Repeat(" ", 4001), "output -1")
}

// Records are copies: what the guest does to its memory afterwards does not show, and appending to one record does
// not reach the next.
func TestRecordsAreOwned(t *testing.T) {
	lim := recordLimits()
	src := []byte(rec(0, 0, "s", "A:\r\n", "p") + rec(1, 0, "t", "", "q"))
	var out Output
	if f := out.take(src, 2, &lim); f != nil {
		t.Fatal(f)
	}
	clear(src)
	for _, r := range out.Records {
		_ = append(r.Subject, "xxxxxxxxxxxx"...)
		_ = append(r.Headers, "xxxxxxxxxxxx"...)
		_ = append(r.Payload, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"...)
	}
	if got := show(&out); got != "0 s A:\r\n p|1 t  q" {
		t.Errorf("%q", got)
	}
}

// Whatever bytes come: no panic, no record that lies outside them, no limit passed; and what was taken, written
// again, is the input.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(""), 1)
	f.Add([]byte(rec(0, 0, "a.b", "A: b\r\n", "{}")+rec(0, 1, "", "", "why")+rec(7, 0, "s", "", "p")), 8)
	f.Add([]byte(set(rec(0, 0, "s", "", "p"), 12, 0xff, 0xff, 0xff, 0xff)), 1)
	f.Add([]byte(strings.Repeat(rec(0, 0, "", "", ""), 5)), 2)
	lim := recordLimits()
	var out Output
	f.Fuzz(func(t *testing.T, src []byte, n int) {
		n &= 0xff
		if fault := out.take(src, n, &lim); fault != nil {
			if fault.Kind != FaultRecord && fault.Kind != FaultOutput || fault.Event >= n {
				t.Fatalf("%+v", fault)
			}
			return
		}
		if len(src) > lim.Batch {
			t.Fatalf("%d bytes were taken", len(src))
		}
		var again strings.Builder
		size, count := map[uint32]int{}, map[uint32]int{}
		last := uint32(0)
		for _, r := range out.Records {
			kind := byte(0)
			if r.Reject {
				kind = 1
			}
			if r.Index < last || int(r.Index) >= n {
				t.Fatalf("index %d behind %d of %d", r.Index, last, n)
			}
			last = r.Index
			size[last] += len(r.Subject) + len(r.Headers) + len(r.Payload)
			count[last]++
			again.WriteString(rec(r.Index, kind, string(r.Subject), string(r.Headers), string(r.Payload)))
		}
		for k := range size {
			if size[k] > lim.Output || count[k] > lim.Records {
				t.Fatalf("event %d: %d bytes in %d records", k, size[k], count[k])
			}
		}
		if again.String() != string(src) {
			t.Fatalf("%q was taken as %q", src, again.String())
		}
	})
}
