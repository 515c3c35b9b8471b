package spool

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flipBase is the image of a closed spool whose rows are a tree of two levels: events 41 to 500, two sinks, two
// inputs, free pages.
func flipBase(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s := start(t, dir, Options{Sinks: []string{"a", "b"}})
	for i := range 5 {
		for _, sink := range []string{"a", "b"} {
			if k := s.reader(sink); i == 4 { // durable with the last events
				drain(t, k, 100, 1<<20, func(Seq, []byte) {})
				k.Release(40)
			}
		}
		b := Batch{Records: same(Seq(i*100+1), 100), Offset: Offset{fmt.Sprint("in", i%2), []byte{byte(i)}}}
		if _, err := s.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Stats(); st.FirstSeq != 41 || st.Commits < 5 {
		t.Fatalf("stats %+v", st)
	}
	s.end()
	b, err := os.ReadFile(filepath.Join(dir, fileDB))
	if err != nil {
		t.Fatal(err)
	}
	m0, ok0 := parseMeta(b)
	m1, ok1 := parseMeta(b[pageSize:])
	if !ok0 || !ok1 {
		t.Fatal("a meta page is not what was thought")
	}
	return b[:max(m0.pages, m1.pages)*pageSize] // what is behind is never looked at
}

// pageHeads are the first bytes of every page that is a branch or a leaf, or was one.
func pageHeads(b []byte) (branches, leaves []int) {
	for at := 2 * pageSize; at < len(b); at += pageSize {
		switch binary.NativeEndian.Uint16(b[at+8:]) {
		case kindBranch:
			branches = append(branches, at)
		case kindLeaf:
			leaves = append(leaves, at)
		}
	}
	return branches, leaves
}

// TestAnyBit: whatever single bit is wrong, the spool opens, takes events, opens again, and each event is read as it
// was, counted as skipped, or in a file that was moved aside. A panic in one of the engine's goroutines would end
// this process.
func TestAnyBit(t *testing.T) {
	base := flipBase(t)
	branches, leaves := pageHeads(base)
	if len(branches) == 0 || len(leaves) < 20 {
		t.Fatalf("%d branches, %d leaves: the test shows nothing", len(branches), len(leaves))
	}
	const seed = 11
	t.Logf("seed %d, %d branches, %d leaves, %d bytes", seed, len(branches), len(leaves), len(base))
	dice := rand.New(rand.NewPCG(seed, seed))
	var bits []int
	for i, at := range branches {
		for bit := range (pageHeader + 2*pageEntry) * 8 { // page header and two entries
			if i == len(branches)-1 || dice.IntN(16) == 0 {
				bits = append(bits, at*8+bit)
			}
		}
	}
	for i, at := range leaves {
		for bit := range (pageHeader + 2*pageEntry) * 8 {
			if i == len(leaves)-1 || dice.IntN(64) == 0 {
				bits = append(bits, at*8+bit)
			}
		}
	}
	for range 40 {
		bits = append(bits, dice.IntN(2*(pageHeader+64)*8)%((pageHeader+64)*8)+dice.IntN(2)*pageSize*8) // metas
	}
	for range 250 {
		bits = append(bits, dice.IntN(len(base)*8))
	}
	kinds := map[string]int{}
	dir := t.TempDir()
	for _, bit := range bits {
		at, mask := bit/8, byte(1)<<(bit%8)
		kinds[oneBit(t, dir, base, at, mask)]++
		if t.Failed() {
			t.Fatalf("bit %d of byte %d (page %d, offset %d)", bit%8, at, at/pageSize, at%pageSize)
		}
	}
	t.Logf("%d bits: %v", len(bits), kinds)
	if kinds["aside"] == 0 || kinds["rows"] == 0 || kinds["nothing"] == 0 || kinds["meta"] == 0 {
		t.Errorf("some kind of damage never came: %v", kinds)
	}
}

// oneBit opens base with the bits of mask wrong in one byte, and says what it cost.
func oneBit(t *testing.T, dir string, base []byte, at int, mask byte) (cost string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, fileDB+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	b := bytes.Clone(base)
	b[at] ^= mask
	if err := os.WriteFile(filepath.Join(dir, fileDB), b, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	opt := Options{Sinks: []string{"a", "b"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s, err := Open(dir, opt)
	if err != nil {
		t.Errorf("open: %v", err)
		return ""
	}
	st := s.Stats()
	last := st.LastSeq
	switch {
	case st.SetAside != "":
		cost = "aside"
		if kept, err := os.ReadFile(st.SetAside); err != nil || !bytes.Equal(kept, b) || last != 0 || !strings.Contains(log.String(), "from the beginning of their files") {
			t.Errorf("set aside: %v, last %d, log %s", err, last, log.String())
		}
	case last != 500:
		cost = "meta"
		if at >= 2*pageSize || !strings.Contains(log.String(), "meta pages is damaged") {
			t.Errorf("last is %d; log %s", last, log.String())
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Spool: s, t: t, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- r.Run(ctx) }()
	for _, sink := range []string{"a", "b"} {
		k := r.reader(sink)
		origin := k.Floor()
		n := drain(t, k, 64, 1<<20, func(seq Seq, rec []byte) {
			if !bytes.Equal(rec, event(seq, 200)) {
				t.Errorf("position %d has %.40q", seq, rec)
			}
			k.Release(seq)
		})
		k.Release(k.Floor())
		if cost == "" && origin > 40 || uint64(last-origin) != uint64(n)+k.Skipped() {
			t.Errorf("sink %s: from %d to %d, %d read, %d skipped", sink, origin, last, n, k.Skipped())
		}
		if cost == "" && k.Skipped() > 0 {
			cost = "rows"
		}
	}
	if got := r.append(event(last+1, 200)); got != last+1 {
		t.Errorf("the next event has %d, want %d", got, last+1)
	}
	r.end()
	again, err := Open(dir, opt)
	if err != nil {
		t.Errorf("open again: %v", err)
		return cost
	}
	if st := again.Stats(); st.SetAside != "" || st.LastSeq != last+1 {
		t.Errorf("opened again: %+v", st)
	}
	if err := again.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if cost == "" {
		cost = "nothing"
	}
	return cost
}
