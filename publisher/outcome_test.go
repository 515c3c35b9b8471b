package publisher

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRefusals has one line for each number, written down apart from the table that it checks.
func TestRefusals(t *testing.T) {
	seen := make(map[int]bool)
	w := newWant("S", "", true)
	f := func(want Outcome, codes ...int) {
		t.Helper()
		for _, code := range codes {
			if seen[code] {
				t.Errorf("%d is here twice", code)
			}
			seen[code] = true
			a := parseAck(w, fmt.Appendf(nil, `{"error":{"code":400,"err_code":%d,"description":"words"},"stream":"S","seq":0}`, code))
			r := classify(w, evidence{ack: a, written: true})
			var ae *AckError
			if r.Outcome != want || !errors.As(r.Err, &ae) || ae.ErrCode != code || ae.Description != "words" || ae.Fix == "" {
				t.Errorf("%d: %v, %v, want %v", code, r.Outcome, r.Err, want)
			}
		}
	}
	f(Retryable, 10002, 10009, 10023, 10167, 10176, 10199, 10208, 10210, 10211)
	f(Permanent, 10054, 10070, 10071, 10097, 10164, 10165, 10170, 10171, 10189, 10190, 10191, 10192, 10193, 10203, 10212, 10223, 10227)
	f(Unknown, 10063, 10077, 10158, 10201) // 10077 by its text, see TestClassifyStoreFailures
	f(Fatal, 10060, 10109, 10111, 10120, 10166, 10168, 10169, 10172, 10174, 10175, 10177, 10179, 10185, 10188, 10200, 10205, 10206, 10207)
	for code := range refusals {
		if !seen[code] {
			t.Errorf("%d is in the table but not here", code)
		}
	}
}

func TestWords(t *testing.T) {
	for o := Accepted; o < outcomes; o++ {
		if s := o.String(); s[0] == 'o' {
			t.Errorf("outcome %d has no name", o)
		}
	}
	for s := Connecting; s <= Failed; s++ {
		if s.String()[:2] == "st" {
			t.Errorf("state %d has no name", s)
		}
	}
}

// TestClip bounds what the other end says.
func TestClip(t *testing.T) {
	long := strings.Repeat("ä", maxText)
	if got := clip(long); len(got) > maxText+3 || !utf8.ValidString(got) || !strings.HasPrefix(long, strings.TrimSuffix(got, "...")) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if clip("short") != "short" {
		t.Error("a short text was changed")
	}
	a := parseAck(newWant("EDGE", "", true), fmt.Appendf(nil, `{"error":{"code":400,"err_code":10054,"description":%q}}`, long))
	if len(a.text) > maxText+3 {
		t.Errorf("a refusal of %d bytes", len(a.text))
	}
}
