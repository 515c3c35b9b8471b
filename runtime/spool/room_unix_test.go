//go:build linux || darwin

package spool

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// sharedLog is what several goroutines log.
type sharedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *sharedLog) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

const (
	saysFull = "the disk has no room for the spool to grow"
	saysRoom = "the disk has room for the spool again"
)

// until waits for cond, which says nothing about how long it takes.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never comes: %s", what)
		}
	}
}

// limitFiles makes growing a file beyond size fail for this process, as on a full disk, until lift.
func limitFiles(t *testing.T, size uint64) (lift func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	lim := was
	lim.Cur = min(size, was.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &lim); err != nil {
		t.Fatal(err)
	}
	lift = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { lift(); signal.Reset(syscall.SIGXFSZ) })
	return lift
}

// TestFullDisk: a database that cannot grow is full, not broken. It needs no disk of its own.
func TestFullDisk(t *testing.T) { limitedDisk(t, 9<<20) }

func limitedDisk(t *testing.T, size uint64) {
	fullDisk(t, t.TempDir(), int64(size), limitFiles(t, size))
}

// fullDisk fills the disk that dir is on, which has room bytes until lift, several times over.
func fullDisk(t *testing.T, dir string, room int64, lift func()) {
	const inputs = 3
	log := &sharedLog{}
	opt := Options{Sinks: []string{"a"}, MaxBytes: 256 << 20, Logger: slog.New(slog.NewTextHandler(log, nil))}
	s := start(t, dir, opt)
	var appended atomic.Int64
	var told [inputs]uint64 // owned by each input until it has ended
	var all sync.WaitGroup
	intake := func(ctx context.Context) {
		for in := range inputs {
			all.Go(func() {
				for n := told[in]; ; {
					var b Batch
					for range 64 {
						n++
						b.Records = append(b.Records, childRecord(in, n))
					}
					b.Offset = Offset{fmt.Sprint("in", in), binary.BigEndian.AppendUint64(nil, n)}
					if _, err := s.Append(ctx, b); err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Errorf("append: %v", err)
						}
						return
					}
					told[in] = n
					for _, r := range b.Records {
						appended.Add(int64(len(r)))
					}
				}
			})
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	intake(ctx)
	isFull := func() bool { return s.Stats().DiskFull && log.count(saysFull) > 0 }
	until(t, "full", isFull)
	if n := appended.Load(); n < room/3 || n > room {
		t.Errorf("%d bytes were stored in %d", n, room)
	}

	// Floors and deletions go through, and what they free is used.
	var seen [inputs]uint64
	k := s.reader("a")
	var b Block
	read := func(release bool) (n int) {
		t.Helper()
		n, err := k.Read(&b, 256, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i, rec := range b.Records {
			var in int
			var number uint64
			if _, err := fmt.Sscanf(string(rec), "%d %d ", &in, &number); err != nil || number != seen[in]+1 || !bytes.Equal(rec, childRecord(in, number)) {
				t.Fatalf("position %d: %.60q after %d", b.First+Seq(i), rec, seen[in])
			}
			seen[in] = number
		}
		if release && n > 0 {
			k.Release(b.First + Seq(n) - 1)
		}
		return n
	}
	until(t, "a disk's worth three times", func() bool {
		for read(true) > 0 {
		}
		return appended.Load() > 3*room
	})
	until(t, "full again", isFull)
	if n := log.count(saysFull); n != 1 {
		t.Errorf("the log says %d times that the disk is full", n)
	}

	// Stopping and starting on a full disk.
	stop()
	all.Wait()
	s.end()
	s = start(t, dir, opt)
	if st := s.Stats(); st.SetAside != "" || st.DamagedRows != 0 {
		t.Errorf("stats %+v", st)
	}
	k = s.reader("a")
	for read(false) > 0 {
	}
	if seen != told {
		t.Errorf("read up to %v, stored up to %v", seen, told)
	}
	for in := range inputs {
		if v, err := s.Offset(fmt.Sprint("in", in)); err != nil || offsetNumber(v) != told[in] {
			t.Errorf("input %d: offset %d, %v, told %d", in, offsetNumber(v), err, told[in])
		}
	}

	// The disk gets room while nobody settles anything.
	ctx, stop = context.WithCancel(context.Background())
	defer stop()
	intake(ctx)
	until(t, "full after the start", isFull)
	before := appended.Load()
	lift()
	until(t, "room again", func() bool { return appended.Load() > before+1<<20 && log.count(saysRoom) > 0 })
	stop()
	all.Wait()
	for read(true) > 0 {
	}
	last := k.Floor()
	s.end()
	again := open(t, dir, opt)
	if st := again.Stats(); st.Floor("a") != last || st.LastSeq != last || seen != told {
		t.Errorf("floor %d of %d, want %d; read %v, told %v", st.Floor("a"), st.LastSeq, last, seen, told)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Error(err)
	}
}

// TestFullDiskLargeRecords: records that need many pages next to one another find them scattered on a full disk.
// What has no room is undone and waits; what frees room goes through; order and content stay.
func TestFullDiskLargeRecords(t *testing.T) {
	dir, total := t.TempDir(), Seq(240)
	size := func(i Seq) int { return int(uint64(i) * 7919 % 97 * uint64(i%4) * 3000) } // 0 to 864,000 bytes
	log := &sharedLog{}
	limitFiles(t, 9<<20)
	s := start(t, dir, Options{Sinks: []string{"a"}, MaxBytes: 256 << 20, Logger: slog.New(slog.NewTextHandler(log, nil))})
	done := make(chan error, 1)
	go func() {
		for i := Seq(1); i <= total; i++ {
			if first, err := s.Append(context.Background(), Batch{Records: [][]byte{event(i, size(i))}}); err != nil || first != i {
				done <- fmt.Errorf("append %d: %d, %w", i, first, err)
				return
			}
		}
		s.Seal()
		done <- nil
	}()
	until(t, "full", func() bool { return s.Stats().Full && log.count(saysFull) > 0 })
	k := s.reader("a")
	var b Block
	next := Seq(1)
	until(t, "the end", func() bool {
		n, err := k.Read(&b, 3, 2<<20)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		for i, rec := range b.Records {
			if at := b.First + Seq(i); at != next || !bytes.Equal(rec, event(at, size(at))) {
				t.Fatalf("position %d, want %d, has %.40q", at, next, rec)
			}
			next++
		}
		if n > 0 {
			k.Release(next - 1)
		}
		return err != nil
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.ended(); err != nil {
		t.Error(err)
	}
	if st := s.Stats(); next != total+1 || st.Floor("a") != total {
		t.Errorf("read up to %d, stats %+v", next-1, st)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestPutBack: when the engine has no room for a transaction, its batches wait in their order, but for one whose
// Append has given up.
func TestPutBack(t *testing.T) {
	waiting := func() *request { return &request{batch: &Batch{}, done: make(chan struct{})} }
	a, b, c := waiting(), waiting(), waiting()
	b.gone = context.Canceled
	s := &Spool{done: []*request{a, b}, queue: []*request{c}, taken: 2}
	s.putBack()
	if len(s.queue) != 2 || s.queue[0] != a || s.queue[1] != c || s.taken != 0 || len(s.done) != 0 {
		t.Errorf("queue %v, taken %d, done %v", s.queue, s.taken, s.done)
	}
	select {
	case <-b.done:
		if b.err != context.Canceled {
			t.Errorf("it hears %v", b.err)
		}
	default:
		t.Error("an append that has given up waits")
	}
}

// TestNoRoomFromTheStart: a spool that gets no room at all, not even headroom, still opens and stores floors; appends
// wait and go on. Any other answer of the disk is a failure, and the zeroes of the portable way hurt nothing.
func TestNoRoomFromTheStart(t *testing.T) {
	var answer atomic.Pointer[error]
	var asked, few atomic.Int64 // few bytes are there whatever the answer is
	say := func(err error) { answer.Store(&err) }
	opt := Options{Sinks: []string{"a", "b"}, allocate: func(f *os.File, from, used, to int64) error {
		asked.Add(1)
		if err := *answer.Load(); err != nil && to > few.Load() {
			return err
		}
		return zeroes(f, from, used, to)
	}}
	dir := filled(t)
	if err := os.Truncate(filepath.Join(dir, fileDB), int64(usedPages(t, dir)*pageSize)); err != nil {
		t.Fatal(err)
	}
	say(syscall.ENOSPC)
	var s *running
	settle := func(from, to Seq) {
		t.Helper()
		for _, sink := range []string{"a", "b"} {
			k := s.reader(sink)
			if k.Floor() != from {
				t.Errorf("sink %s: floor %d, want %d", sink, k.Floor(), from)
			}
			drain(t, k, 50, 1<<20, func(at Seq, rec []byte) {
				if !bytes.Equal(rec, event(at, 200)) {
					t.Fatalf("position %d has %.40q", at, rec)
				}
			})
			k.Release(to)
		}
	}
	s = start(t, dir, opt)
	settle(0, 60)
	s.end()
	few.Store(int64(usedPages(t, dir)+20) * pageSize)
	s = start(t, dir, opt)
	settle(60, 100)
	until(t, "rows deleted", func() bool { return s.Stats().FirstSeq == 101 })
	got := make(chan Seq, 1)
	go func() {
		first, err := s.Append(context.Background(), Batch{Records: same(301, 100)})
		if err != nil {
			t.Errorf("append: %v", err)
		}
		got <- first
	}()
	until(t, "full", func() bool { st := s.Stats(); return st.Full && st.DiskFull })
	say(syscall.EDQUOT)
	n := asked.Load()
	until(t, "another try", func() bool { return asked.Load() > n })
	select {
	case at := <-got:
		t.Fatalf("stored at %d without room", at)
	default:
	}
	say(nil)
	if at := <-got; at != 301 {
		t.Errorf("stored at %d", at)
	}
	s.end()

	s = start(t, dir, opt)
	next := Seq(101)
	drain(t, s.reader("b"), 50, 1<<20, func(at Seq, rec []byte) {
		if at != next || !bytes.Equal(rec, event(at, 200)) {
			t.Fatalf("position %d has %.40q", at, rec)
		}
		next++
	})
	if next != 401 {
		t.Errorf("read up to %d", next-1)
	}
	say(syscall.EIO)
	var failed *FailedError
	if _, err := s.Append(context.Background(), Batch{Records: [][]byte{make([]byte, 8<<20)}}); !errors.As(err, &failed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("append: %v", err)
	}
	if err := s.ended(); !errors.As(err, &failed) {
		t.Errorf("run: %v", err)
	}
	if err := s.Close(); !errors.As(err, &failed) {
		t.Errorf("close: %v", err)
	}
}

// usedPages is the high-water mark of a closed spool.
func usedPages(t *testing.T, dir string) uint64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, fileDB))
	if err != nil {
		t.Fatal(err)
	}
	m0, _ := parseMeta(b)
	m1, _ := parseMeta(b[pageSize:])
	return max(m0.pages, m1.pages)
}
