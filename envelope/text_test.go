package envelope

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

func TestAppendTime(t *testing.T) {
	f := func(ns int64) {
		t.Helper()
		want := time.Unix(0, ns).UTC().Format(`"2006-01-02T15:04:05.000000000Z"`)
		if got := string(AppendTime(nil, ns)); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
	f(0)
	f(1)
	f(-1)
	f(math.MaxInt64)
	f(math.MinInt64 + 1)
	const seed = 5
	r := rand.New(rand.NewPCG(seed, seed))
	for range 50_000 {
		f(int64(r.Uint64()) | 1) // odd, so never NoTime
	}
	for d := time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC); d.Year() < 2262; d = d.AddDate(0, 0, 1) { // every day there is
		f(d.UnixNano())
		f(d.UnixNano() - 1)
	}
	if got := string(AppendTime([]byte("x"), NoTime)); got != "xnull" {
		t.Error(got)
	}
}

func TestAppendFloat(t *testing.T) {
	f := func(v float64, bits int, want string) {
		t.Helper()
		if got := string(AppendFloat(nil, v, bits)); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	f(43.25, 64, "43.25")
	f(0.1, 64, "0.1")
	f(float64(float32(0.1)), 32, "0.1")
	f(math.NaN(), 64, "null")
	f(math.Inf(1), 64, "null")
	f(math.Inf(-1), 32, "null")
	f(math.Copysign(0, -1), 64, "-0")
	const seed = 6
	r := rand.New(rand.NewPCG(seed, seed))
	for range 100_000 {
		v := math.Float64frombits(r.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		got := AppendFloat(nil, v, 64)
		if back, err := strconv.ParseFloat(string(got), 64); err != nil || back != v || !json.Valid(got) {
			t.Fatalf("seed %d: %v became %s", seed, v, got)
		}
	}
}

func TestAppendStringAndHex(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		got, err := AppendString([]byte("x"), s)
		if err != nil || string(got) != "x"+want {
			t.Errorf("%q: %s, %v", s, got, err)
		}
		if got, err := AppendString(nil, []byte(s)); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", s, got, err)
		}
	}
	f("", `""`)
	f("a\"b\\c\n\x00é😀<>&", `"a\"b\\c\n\u0000é😀<>&"`)
	got, err := AppendString([]byte("x"), "ab\xff")
	wantReason(t, "broken", err, InvalidUTF8)
	if string(got) != "x" {
		t.Errorf("dst came back as %q", got)
	}
	if got := string(AppendHex([]byte("x"), []byte{0, 0xab, 0xff})); got != `x"00abff"` {
		t.Error(got)
	}
	if got := string(AppendHex(nil, nil)); got != `""` {
		t.Error(got)
	}
}

func TestQuality(t *testing.T) {
	for _, q := range []Quality{Good, Uncertain, Bad} {
		if got, ok := ParseQuality([]byte(q.String())); !ok || got != q {
			t.Errorf("%v", q)
		}
	}
	for _, s := range []string{"", "Good", "ok", "good "} {
		if _, ok := ParseQuality([]byte(s)); ok {
			t.Errorf("%q is a quality", s)
		}
	}
	if Record.String() != "record" || Raw.String() != "raw" {
		t.Error("kinds")
	}
}
