package wasm

import (
	"fmt"
	"strings"
	"testing"

	"edge/wasm/wasmtest"
)

func TestGuestLog(t *testing.T) {
	f := func(name string, want string, dropped uint64, run func(l *guestLog)) {
		t.Helper()
		var got []string
		l := &guestLog{emit: func(level int, text []byte) { got = append(got, fmt.Sprintf("%d %s", level, text)) }}
		l.begin()
		run(l)
		l.flush()
		if s := strings.Join(got, "|"); s != want || l.dropped != dropped {
			t.Errorf("%s: %q and %d dropped, want %q and %d", name, s, l.dropped, want, dropped)
		}
	}
	long := strings.Repeat("x", lineBytes)
	out := func(parts ...string) func(*guestLog) {
		return func(l *guestLog) {
			for _, p := range parts {
				l.write(0, []byte(p))
			}
		}
	}
	f("levels", "0 a|0 b|3 c|3 d", 0, func(l *guestLog) {
		for k, level := range []int{-9, LogDebug, LogError, 1 << 30} {
			l.line(level, []byte{"abcd"[k]})
		}
	})
	f("cut", "1 "+long, 0, func(l *guestLog) { l.line(1, []byte(long+"y")) })
	f("budget", strings.Repeat("1 x|", 15)+"1 x", 4, func(l *guestLog) {
		for range 20 {
			l.line(1, []byte("x"))
		}
	})
	f("pieces", "1 panic: no|1 more", 0, out("pan", "ic", ": no\nmo", "re\n", "\n\n"))
	f("not ended", "1 a", 0, out("a"))
	f("exactly a line", "1 "+long+"|1 y", 0, out(long, "\n", "y\n"))
	f("longer than a line", "1 "+long+"|1 yy", 0, out(long+"yy\n"))
	f("error is a warning", "2 bad|1 good", 0, func(l *guestLog) { l.write(1, []byte("bad\n")); l.write(0, []byte("good\n")) })
	f("flood", strings.Repeat("1 x|", 15)+"1 x", 84, out(strings.Repeat("x\n", 100)))
}

func TestEdgeLog(t *testing.T) {
	var got []string
	i := open(t, wasmtest.LogX(), InstanceConfig{Log: func(level int, text []byte) { got = append(got, fmt.Sprint(level, string(text))) }})
	f := func(want int, dropped uint64, data ...string) {
		t.Helper()
		got = nil
		if err := i.Run(events(data...), new(Output)); err != nil {
			t.Fatal(err)
		}
		if len(got) != want || i.Usage().Lines != dropped {
			t.Errorf("%d lines, %d dropped, want %d and %d", len(got), i.Usage().Lines, want, dropped)
		}
	}
	f(1, 0, "a", "X1", "b")
	if got[0] != "1X1" {
		t.Errorf("%q", got)
	}
	f(16, 4, strings.Split(strings.Repeat("X ", 19)+"X", " ")...)
	f(1, 4, "X") // a new run, a new budget
	f(1, 4, "X"+strings.Repeat("y", 5000))
	if len(got[0]) != 1+lineBytes {
		t.Errorf("a line of %d bytes", len(got[0])-1)
	}
}
