package input

import (
	"bytes"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestDecimalTimes(t *testing.T) {
	f := func(u timeUnit, s string, want int64, ok bool) {
		t.Helper()
		got, gotOK := u.parse([]byte(s))
		if got != want || gotOK != ok {
			t.Errorf("%s: got %d, %v, want %d, %v", s, got, gotOK, want, ok)
		}
	}
	f(unixSeconds, "0", 0, true)
	f(unixSeconds, "-0", 0, true)
	f(unixSeconds, "1", 1e9, true)
	f(unixSeconds, "1.000000001", 1_000_000_001, true)
	f(unixSeconds, "1.0000000019", 1_000_000_001, true)
	f(unixSeconds, "-1.5", -1_500_000_000, true)
	f(unixSeconds, "1.7916e9", 1_791_600_000_000_000_000, true)
	f(unixSeconds, "17916E+5", 1_791_600_000_000_000_000, true)
	f(unixSeconds, "1e-9", 1, true)
	f(unixSeconds, "1e-10", 0, true)
	f(unixSeconds, "0e999", 0, true)
	f(unixSeconds, "9223372036.854775807", math.MaxInt64, true)
	f(unixSeconds, "9223372036.854775808", 0, false)
	f(unixSeconds, "9223372037", 0, false)
	f(unixNanos, "9223372036854775807", math.MaxInt64, true)
	f(unixNanos, "-9223372036854775807", -math.MaxInt64, true)
	f(unixNanos, "-9223372036854775808", 0, false) // the number of no time
	f(unixNanos, "92233720368547758070", 0, false)
	f(unixNanos, "1e18", 1e18, true)
	f(unixNanos, "1e19", 0, false)
	f(unixNanos, "1e99999", 0, false)
	f(unixNanos, "12.9", 12, true)
	f(unixMillis, "1791612000123", 1_791_612_000_123_000_000, true)
	f(unixMicros, "1791612000123456.7", 1_791_612_000_123_456_700, true)
	f(unixSeconds, "", 0, false)
	f(unixSeconds, "-", 0, false)
	f(unixSeconds, ".", 0, false)
	f(unixSeconds, "1.2.3", 0, false)
	f(unixSeconds, "1e", 0, false)
	f(unixSeconds, "1 ", 0, false)
	f(unixSeconds, "0x1", 0, false)
	f(unixSeconds, "2026-10-10T06:00:00Z", 0, false)
}

var strict = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// FuzzTime holds both readers of times against the standard library.
func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"2026-10-10T06:00:00.123456789Z", "2024-02-29T23:59:59+23:59", "2023-02-29T00:00:00Z", "1677-09-21T00:12:43.145224193Z", "2262-04-11T23:47:16Z",
		"1900-02-28T24:00:00-00:00", "2232-04-11T2:47:16Z", "2024-02-29T23:59:59+24:59", "2026-10-10T06:00:60Z", "2026-10-10t06:00:00z", "1.5e3", "-17916.000000001",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := rfc3339.parse([]byte(s))
		want, err := time.Parse(time.RFC3339Nano, s)
		if _, offset := want.Zone(); !strict.MatchString(s) || offset >= 86400 || offset <= -86400 {
			err = &time.ParseError{} // the library takes commas, hours of one digit and offsets of 24 hours; RFC 3339 does not
		}
		inRange := err == nil && want.After(time.Unix(0, math.MinInt64).Add(2*time.Second)) && want.Before(time.Unix(0, math.MaxInt64).Add(-2*time.Second))
		if ok && (err != nil || want.UnixNano() != got) || !ok && inRange {
			t.Fatalf("%q: got %d, %v; the library has %v, %v", s, got, ok, want, err)
		}
		if len(s) > 30 || strings.ContainsAny(s, "_xXpPiInN/boBO") || strings.HasPrefix(s, "+") {
			return
		}
		got, ok = unixSeconds.parse([]byte(s))
		if e := strings.IndexAny(s, "eE"); e >= 0 && len(s)-e > 5 {
			return
		}
		r, valid := new(big.Rat).SetString(s)
		if !valid {
			if ok {
				t.Fatalf("%q: got %d; it is no number", s, got)
			}
			return
		}
		r.Mul(r, big.NewRat(1e9, 1))
		q := new(big.Int).Quo(r.Num(), r.Denom())
		if ok != (q.IsInt64() && q.Int64() != math.MinInt64) || ok && q.Int64() != got {
			t.Fatalf("%q: got %d, %v, want %v", s, got, ok, q)
		}
	})
}

func FuzzPosition(f *testing.F) {
	f.Add((&position{hasInode: true, inode: 1 << 63, hashed: 1024, again: 3, offset: 1 << 40, line: 7, open: true, tailed: 256}).append(nil))
	f.Add((&position{hashed: 7, offset: 7, line: 1, tailed: 7}).append(nil))
	f.Add([]byte{})
	f.Add(make([]byte, positionSize))
	f.Add(append([]byte{oldVersion}, make([]byte, oldSize-1)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePosition(b)
		if err != nil {
			return
		}
		got := p.append(nil)
		if b[0] == oldVersion {
			got = append([]byte{oldVersion}, got[1:oldSize]...)
		}
		if !bytes.Equal(got, b) {
			t.Fatalf("%x reads as %+v, which writes as %x", b, p, got)
		}
	})
}

// FuzzLines holds the splitter, fed in pieces, against splitting the whole.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\n\r\nccc"), uint8(1), uint8(3))
	f.Add([]byte("aaaaaaaaaaaaa\r\nb\n\n\n"), uint8(5), uint8(4))
	f.Add([]byte("\r\r\r\n\r"), uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, piece, limit uint8) {
		s := splitter{max: int(limit)%20 + 1}
		var got []line
		take := func(l line) {
			l.text = bytes.Clone(l.text)
			got = append(got, l)
		}
		for rest := text; len(rest) > 0; {
			b := bytes.Clone(rest[:min(len(rest), int(piece)+1)])
			rest = rest[len(b):]
			for len(b) > 0 {
				l, more, ok := s.next(b)
				if !ok {
					break
				}
				b = more
				take(l)
			}
		}
		if l, ok := s.last(); ok {
			take(l)
		}
		i := 0
		for part := range bytes.SplitAfterSeq(text, []byte("\n")) {
			if len(part) == 0 {
				break
			}
			if i == len(got) {
				t.Fatalf("%d lines of %q", i, text)
			}
			l := got[i]
			i++
			whole, ended := bytes.CutSuffix(part, []byte("\n"))
			plain := bytes.TrimSuffix(whole, []byte("\r"))
			cut := len(plain) > s.max
			if l.size != int64(len(part)) || l.ended != ended || l.cut != cut || !cut && !bytes.Equal(l.text, plain) || cut && !bytes.Equal(l.text, part[:s.max]) {
				t.Fatalf("got %+v %q, want %q of %d", l, l.text, part, s.max)
			}
		}
		if i != len(got) {
			t.Fatalf("%d lines of %q, want %d", len(got), text, i)
		}
	})
}
