package spool

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// rssFile is the process's mapped file memory in KiB.
func rssFile(t testing.TB) (kib int) {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "RssFile:"); ok {
			if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatal("no RssFile in /proc/self/status")
	return 0
}

// TestMappingIsGivenBack: a reader that lags behind a large spool, opening it, and deleting what is settled do
// not make the file count as the process's memory.
func TestMappingIsGivenBack(t *testing.T) {
	const total, batch = 200_000, 2000
	dir := t.TempDir()
	peak := 0
	base := rssFile(t)
	look := func() { peak = max(peak, rssFile(t)) }
	s := start(t, dir, Options{Sinks: []string{"a"}})
	recs := make([][]byte, batch)
	for at := Seq(1); at <= total; at += batch {
		for i := range recs {
			recs[i] = event(at+Seq(i), 300)
		}
		if _, err := s.Append(context.Background(), Batch{Records: recs}); err != nil {
			t.Fatal(err)
		}
		look()
	}
	s.end()
	s = start(t, dir, Options{Sinks: []string{"a"}})
	look()
	k := s.reader("a")
	var b Block
	for read := 0; read < total; {
		n, err := k.Read(&b, 256, 1<<20)
		if err != nil || n == 0 {
			t.Fatalf("read: %d, %v", n, err)
		}
		read += n
		k.Release(Seq(read))
		look()
	}
	size := s.Stats().Disk >> 10
	s.Seal()
	if err := s.ended(); err != nil {
		t.Fatal(err)
	}
	look()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("mapped at the start %d KiB, at most %d KiB, database %d KiB", base, peak, size)
	if size < 4*32<<10/2 {
		t.Errorf("the database has only %d KiB: the test shows nothing", size)
	}
	if peak-base > 32<<10 {
		t.Errorf("mapped memory grew from %d to %d KiB", base, peak)
	}
}
