package main

import "testing"

func TestFit(t *testing.T) {
	f := func(s string, n int, want string) {
		t.Helper()
		if got := fit(s, n); got != want {
			t.Errorf("fit(%q, %d) = %q, want %q", s, n, got, want)
		}
	}
	f("short", 10, "short")
	f("exactly 10", 10, "exactly …") // one column stays free: the cursor must not wrap
	f("much longer than that", 10, "much lon…")
	f("grün grün grün", 10, "grün grü…")
	f("a\nb\x1b[2J", 80, "a b [2J")
	f("x", 0, "…")
}

func TestPlain(t *testing.T) {
	f := func(s string, n int, want string) {
		t.Helper()
		if got := plain(s, n); got != want {
			t.Errorf("plain(%q, %d) = %q, want %q", s, n, got, want)
		}
	}
	f("a\x1b[31mb\x07", 0, "a·[31mb·")
	f("a\u009b31m", 0, "a·31m")
	f("a\xffb", 0, "a\uFFFDb")
	f("grün und gelb", 6, "grün …")
	f("grün", 4, "grün")
}
