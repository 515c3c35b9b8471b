package envelope

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestCheckHeaders(t *testing.T) {
	f := func(block string, want Reason) {
		t.Helper()
		wantReason(t, block, CheckHeaders([]byte(block), MaxHeaders, MaxHeaderBytes), want)
	}
	f("", "")
	f("A: b\r\n", "")
	f("A: \r\n", "")
	f("A:  b \r\n", "")
	f("A: b:c\r\nA: grün\r\n", "")
	f("X-Nats-Id: b\r\n", "")
	f("Nats: b\r\n", "")
	for _, c := range `"(),/;<=>?@[\]{}` {
		f("A"+string(c)+": b\r\n", BadHeader)
	}
	f("A", BadHeader)
	f("A: b", BadHeader)
	f("A: b\n", BadHeader)
	f("A: b\r", BadHeader)
	f("A:b\r\n", BadHeader)
	f("A:\r\n", BadHeader)
	f("A:\n", BadHeader)
	f(": b\r\n", BadHeader)
	f("\r\n", BadHeader)
	f("A: b\r\n\r\n", BadHeader)
	f("A: b\r\nB", BadHeader)
	f("A b: c\r\n", BadHeader)
	f("A\r\nB: c\r\n", BadHeader)
	f("Ä: c\r\n", BadHeader)
	f("A: b\rc\r\n", BadHeader)
	f("A: b\x00\r\n", BadHeader)
	f("A: b\tc\r\n", BadHeader)
	f("A: b\x7f\r\n", BadHeader)
	f("A: \xff\r\n", InvalidUTF8)
	f("Nats-Rollup: all\r\n", ReservedHeader)
	f("nats-rollup: all\r\n", ReservedHeader)
	f("NATS-Expected-Stream: X\r\n", ReservedHeader)
	f("A: b\r\nnAtS-: x\r\n", ReservedHeader)
	f(strings.Repeat("A: b\r\n", MaxHeaders), "")
	f(strings.Repeat("A: b\r\n", MaxHeaders+1), HeadersTooLarge)
	f(strings.Repeat("N", MaxHeaderName)+": b\r\n", "")
	f(strings.Repeat("N", MaxHeaderName+1)+": b\r\n", HeadersTooLarge)
	f("A: "+strings.Repeat("v", MaxHeaderValue)+"\r\n", "")
	f("A: "+strings.Repeat("v", MaxHeaderValue+1)+"\r\n", HeadersTooLarge)
	f(strings.Repeat("A: "+strings.Repeat("v", 4000)+"\r\n", 9), HeadersTooLarge) // in bytes together
	wantReason(t, "none allowed", CheckHeaders([]byte("A: b\r\n"), 0, 100), HeadersTooLarge)

	b := []byte("A: b\r\nContent-Type: application/json\r\n")
	n := testing.AllocsPerRun(100, func() {
		_ = CheckHeaders(b, MaxHeaders, MaxHeaderBytes)
		EachHeader(b, func(name, value []byte) {})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEachHeader(t *testing.T) {
	var got []string
	EachHeader([]byte("A: b\r\nB: \r\nC:  x: y \r\n"), func(name, value []byte) {
		got = append(got, fmt.Sprintf("%s=%s", name, value))
	})
	if fmt.Sprint(got) != "[A=b B= C= x: y ]" {
		t.Errorf("%q", got)
	}
}

func FuzzCheckHeaders(f *testing.F) {
	f.Add([]byte("A: b\r\nB: c\r\n"))
	f.Add([]byte("Nats-Rollup: all\r\n"))
	f.Add([]byte("A:\r\n"))
	f.Add([]byte("A: b\r\n\r\nx"))
	f.Fuzz(func(t *testing.T, block []byte) {
		if CheckHeaders(block, MaxHeaders, MaxHeaderBytes) != nil {
			return
		}
		var again []byte
		EachHeader(block, func(name, value []byte) {
			if len(name) >= 5 && strings.EqualFold(string(name[:5]), "nats-") {
				t.Fatalf("reserved name %q", name)
			}
			if bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) || bytes.ContainsAny(name, ": \r\n") {
				t.Fatalf("%q: %q", name, value)
			}
			again = fmt.Appendf(again, "%s: %s\r\n", name, value)
		})
		if !bytes.Equal(again, block) {
			t.Fatalf("%q is not %q", again, block)
		}
	})
}
