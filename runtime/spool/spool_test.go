package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// bound is far beyond what anything here takes: a test that reaches it hangs.
const bound = 60 * time.Second

// running is a spool with its committer.
type running struct {
	*Spool
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

func open(t *testing.T, dir string, opt Options) *Spool {
	t.Helper()
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start opens a spool and runs its committer until end.
func start(t *testing.T, dir string, opt Options) *running {
	t.Helper()
	r := &running{Spool: open(t, dir, opt), t: t, done: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- r.Run(ctx) }()
	return r
}

// end stops the committer and closes the spool.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	if err := r.ended(); err != nil {
		r.t.Fatalf("run: %v", err)
	}
	if err := r.Close(); err != nil {
		r.t.Fatalf("close: %v", err)
	}
}

// ended waits for the committer.
func (r *running) ended() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(bound):
		r.t.Fatal("the committer does not end")
		return nil
	}
}

func (r *running) append(recs ...[]byte) Seq {
	r.t.Helper()
	first, err := r.Append(context.Background(), Batch{Records: recs})
	if err != nil {
		r.t.Fatalf("append: %v", err)
	}
	return first
}

func (r *running) reader(sink string) *Reader {
	r.t.Helper()
	k, err := r.Reader(sink)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// event is the record of position i: its own number, padded to n bytes.
func event(i Seq, n int) []byte {
	b := fmt.Appendf(nil, "%d:", i)
	for len(b) < n {
		b = append(b, byte('a'+(uint64(i)+uint64(len(b)))%26))
	}
	return b
}

// events are the records of n positions from first on, with sizes between nothing and max.
func events(first Seq, n, max int) [][]byte {
	var out [][]byte
	for i := range n {
		at := first + Seq(i)
		out = append(out, event(at, int(uint64(at)*7919%uint64(max+1))))
	}
	return out
}

// drain reads what is there and checks each record by check.
func drain(t *testing.T, k *Reader, maxEvents, maxBytes int, check func(Seq, []byte)) (n int) {
	t.Helper()
	var b Block
	for {
		got, err := k.Read(&b, maxEvents, maxBytes)
		if errors.Is(err, io.EOF) || err == nil && got == 0 {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if got != len(b.Records) || got > maxEvents {
			t.Fatalf("read says %d events, block has %d, at most %d were asked for", got, len(b.Records), maxEvents)
		}
		size := 0
		for i, rec := range b.Records {
			size += len(rec)
			check(b.First+Seq(i), rec)
		}
		if got > 1 && size > maxBytes {
			t.Fatalf("read returns %d bytes, at most %d were asked for", size, maxBytes)
		}
		n += got
	}
}

// inOrder checks that each record is the event of its position and that no position is missing.
func inOrder(t *testing.T, next Seq, max int) func(Seq, []byte) {
	return func(s Seq, rec []byte) {
		t.Helper()
		if s != next {
			t.Fatalf("read position %d, want %d", s, next)
		}
		if want := events(s, 1, max)[0]; !bytes.Equal(rec, want) {
			t.Fatalf("position %d: read %.40q, want %.40q", s, rec, want)
		}
		next++
	}
}

func TestReadWhatWasAppended(t *testing.T) {
	f := func(name string, batch, batches, size, maxEvents, maxBytes int) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir, Options{Sinks: []string{"a"}})
			next := Seq(1)
			for range batches {
				if first := s.append(events(next, batch, size)...); first != next {
					t.Fatalf("append says %d, want %d", first, next)
				}
				next += Seq(batch)
			}
			want := batch * batches
			if n := drain(t, s.reader("a"), maxEvents, maxBytes, inOrder(t, 1, size)); n != want {
				t.Errorf("read %d events, want %d", n, want)
			}
			s.end()
			s = start(t, dir, Options{Sinks: []string{"a"}})
			if n := drain(t, s.reader("a"), maxEvents, maxBytes, inOrder(t, 1, size)); n != want {
				t.Errorf("read %d events after opening again, want %d", n, want)
			}
			if st := s.Stats(); st.Events != uint64(want) || st.LastSeq != next-1 || st.FirstSeq != 1 || st.DamagedRows != 0 {
				t.Errorf("stats after opening again: %+v", st)
			}
			s.end()
		})
	}
	f("one", 1, 1, 10, 10, 1000)
	f("singles", 1, 40, 300, 7, 1<<20)
	f("batches", 256, 20, 300, 256, 1<<20)
	f("one event a read", 64, 3, 300, 1, 1<<20)
	f("one byte a read", 64, 3, 300, 256, 1)
	f("odd reads", 64, 10, 300, 17, 2000)
	f("nothing in them", 64, 3, 0, 50, 1)
	f("rows of one", 10, 5, 3000, 100, 1<<20)
	f("larger than pages", 5, 5, 200_000, 100, 1<<20)
	f("larger than a transaction", 3, 2, 5<<20, 100, 1<<20)
}

func TestReleaseSurvives(t *testing.T) {
	dir := t.TempDir()
	opt := Options{Sinks: []string{"fast", "slow"}}
	s := start(t, dir, opt)
	s.append(events(1, 1000, 300)...)
	fast, slow := s.reader("fast"), s.reader("slow")
	drain(t, fast, 100, 1<<20, inOrder(t, 1, 300))
	drain(t, slow, 100, 1<<20, inOrder(t, 1, 300))
	fast.Release(1000)
	slow.Release(500)
	slow.Release(400) // lower: changes nothing
	s.end()

	s = start(t, dir, opt)
	if st := s.Stats(); st.Floor("fast") != 1000 || st.Floor("slow") != 500 || st.Floor("none") != 0 {
		t.Errorf("floors after opening again: %+v", st.Sinks)
	}
	if n := drain(t, s.reader("fast"), 100, 1<<20, inOrder(t, 1001, 300)); n != 0 {
		t.Errorf("fast sink reads %d settled events", n)
	}
	if n := drain(t, s.reader("slow"), 100, 1<<20, inOrder(t, 501, 300)); n != 500 {
		t.Errorf("slow sink reads %d events, want 500", n)
	}
	// What both have settled leaves the disk; positions go on even when nothing is left.
	k := s.reader("slow")
	drain(t, k, 100, 1<<20, inOrder(t, 501, 300))
	k.Release(1000)
	s.end()
	for range 2 {
		s = start(t, dir, opt)
		if st := s.Stats(); st.LastSeq != 1000 || st.Events > 3 {
			t.Errorf("after everything is settled: %+v", st)
		}
		s.end()
	}
	s = start(t, dir, opt)
	if first := s.append(event(1001, 5)); first != 1001 {
		t.Errorf("first event after an empty spool has %d, want 1001", first)
	}
	s.end()
}

func TestReleaseBeforeReadIsABug(t *testing.T) {
	s := start(t, t.TempDir(), Options{Sinks: []string{"a"}})
	defer s.end()
	s.append(event(1, 5))
	k := s.reader("a")
	defer func() {
		if p := recover(); p == nil || !strings.HasPrefix(fmt.Sprint(p), "BUG:") {
			t.Errorf("release of what was not read: recovered %v", p)
		}
	}()
	k.Release(1)
}

func TestSinksComeAndGo(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, Options{Sinks: []string{"a", "b"}})
	s.append(events(1, 1000, 300)...)
	a := s.reader("a")
	drain(t, a, 100, 1<<20, inOrder(t, 1, 300))
	a.Release(1000)
	s.end()

	var log bytes.Buffer
	opt := Options{Sinks: []string{"a", "c"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s = start(t, dir, opt)
	if got := log.String(); !strings.Contains(got, "sink=b") || !strings.Contains(got, "events_left=1000") {
		t.Errorf("forgetting a sink with 1000 events left logs %q", got)
	}
	if n := drain(t, s.reader("c"), 100, 1<<20, inOrder(t, 1, 300)); n != 1000 {
		t.Errorf("a new sink reads %d events, want the 1000 that are present", n)
	}
	if _, err := s.Reader("b"); err == nil {
		t.Error("a reader for a sink that is not configured")
	}
	s.end()
	s = start(t, dir, Options{Sinks: []string{"a"}})
	s.end() // with c gone, a's floor lets everything go
	s = start(t, dir, Options{Sinks: []string{"b"}})
	if n := drain(t, s.reader("b"), 100, 1<<20, func(Seq, []byte) {}); n > 1000 {
		t.Errorf("a sink that comes back reads %d events", n)
	}
	s.end()
}

func TestOffsets(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, Options{Sinks: []string{"a"}})
	get := func(key, want string) {
		t.Helper()
		got, err := s.Offset(key)
		if err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("offset %q: %q, %v; want %q", key, got, err, want)
		}
	}
	put := func(key, value string, recs ...[]byte) Seq {
		t.Helper()
		first, err := s.Append(context.Background(), Batch{Records: recs, Offset: Offset{key, []byte(value)}})
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	get("in", "")
	put("in", "one", event(1, 10))
	get("in", "one")
	if first := put("in", "two"); first != 2 {
		t.Errorf("moving an offset answers %d, want the next position 2", first)
	}
	put("other", "x")
	s.end()
	s = start(t, dir, Options{Sinks: []string{"a"}})
	get("in", "two")
	get("other", "x")
	get("none", "")
	get("", "")
	s.end()
}

func TestSealEndsReadersAndCommitter(t *testing.T) {
	s := start(t, t.TempDir(), Options{Sinks: []string{"a"}})
	s.append(events(1, 10, 50)...)
	k := s.reader("a")
	var b Block
	if n, err := k.Read(&b, 100, 1<<20); n != 10 || err != nil {
		t.Fatalf("read: %d, %v", n, err)
	}
	if n, err := k.Read(&b, 100, 1<<20); n != 0 || err != nil {
		t.Fatalf("read at the end of an open spool: %d, %v", n, err)
	}
	for len(k.Ready()) > 0 {
		<-k.Ready()
	}
	s.Seal()
	select {
	case <-k.Ready():
	case <-time.After(bound):
		t.Fatal("no notice of the seal")
	}
	if _, err := k.Read(&b, 100, 1<<20); !errors.Is(err, io.EOF) {
		t.Fatalf("read behind the last event of a sealed spool: %v", err)
	}
	if _, err := s.Append(context.Background(), Batch{Records: events(11, 1, 5)}); !errors.Is(err, ErrSealed) {
		t.Errorf("append after seal: %v", err)
	}
	k.Release(10)
	if err := s.ended(); err != nil { // by itself: everything is settled
		t.Fatal(err)
	}
	if st := s.Stats(); st.Floor("a") != 10 || st.Events != 0 {
		t.Errorf("after the end: %+v", st)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Read(&b, 1, 1); !errors.Is(err, ErrStopped) {
		t.Errorf("read after close: %v", err)
	}
	if _, err := s.Offset("x"); !errors.Is(err, ErrStopped) {
		t.Errorf("offset after close: %v", err)
	}
}

func TestAppendEndsWithItsContext(t *testing.T) {
	s := open(t, t.TempDir(), Options{Sinks: []string{"a"}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Append(ctx, Batch{Records: events(1, 1, 5)}); !errors.Is(err, context.Canceled) {
		t.Errorf("append with an ended context: %v", err)
	}
	// Nobody commits yet: the append is withdrawn, and nothing of it is stored later.
	ctx, cancel = context.WithCancel(context.Background())
	got := make(chan error, 1)
	go func() {
		_, err := s.Append(ctx, Batch{Records: events(1, 1, 5)})
		got <- err
	}()
	for queued := 0; queued == 0; {
		s.mu.Lock()
		queued = len(s.queue)
		s.mu.Unlock()
	}
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("append whose context ends: %v", err)
	}
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(run) }()
	if first, err := s.Append(context.Background(), Batch{Records: events(1, 1, 5)}); first != 1 || err != nil {
		t.Errorf("append: %d, %v", first, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(context.Background(), Batch{Records: events(2, 1, 5)}); !errors.Is(err, ErrStopped) {
		t.Errorf("append without a committer: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestManyAppendersShareCommits(t *testing.T) {
	s := start(t, t.TempDir(), Options{Sinks: []string{"a"}})
	const appenders, each, batch = 16, 40, 8
	var all sync.WaitGroup
	firsts := make([][]Seq, appenders)
	for a := range appenders {
		all.Go(func() {
			for i := range each {
				var recs [][]byte
				for j := range batch {
					recs = append(recs, fmt.Appendf(nil, "%d/%d", a, i*batch+j))
				}
				first, err := s.Append(context.Background(), Batch{Records: recs, Offset: Offset{fmt.Sprint(a), fmt.Append(nil, i)}})
				if err != nil {
					t.Error(err)
					return
				}
				firsts[a] = append(firsts[a], first)
			}
		})
	}
	all.Wait()
	st := s.Stats()
	if st.Appended != appenders*each*batch || st.LastSeq != appenders*each*batch {
		t.Errorf("stats: %+v", st)
	}
	if st.Commits >= appenders*each/2 {
		t.Errorf("%d appends took %d commits", appenders*each, st.Commits)
	}
	t.Logf("%d appends in %d commits", appenders*each, st.Commits)
	got := map[Seq]string{}
	drain(t, s.reader("a"), 100, 1<<20, func(s Seq, rec []byte) { got[s] = string(rec) })
	for a := range firsts {
		for i, first := range firsts[a] {
			for j := range batch {
				if want := fmt.Sprintf("%d/%d", a, i*batch+j); got[first+Seq(j)] != want {
					t.Fatalf("position %d has %q, want %q", first+Seq(j), got[first+Seq(j)], want)
				}
			}
		}
		if v, err := s.Offset(fmt.Sprint(a)); err != nil || string(v) != fmt.Sprint(each-1) {
			t.Errorf("offset of %d: %q, %v", a, v, err)
		}
	}
	s.end()
}

func TestFullBlocksUntilReleased(t *testing.T) {
	opt := Options{Sinks: []string{"a", "b"}, MaxBytes: 512 << 10}
	s := start(t, t.TempDir(), opt)
	a, b := s.reader("a"), s.reader("b")
	next := Seq(1)
	fill := func() (n int) {
		t.Helper()
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			_, err := s.Append(ctx, Batch{Records: events(next, 64, 300)})
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			next += 64
			n++
		}
	}
	n := fill()
	if st := s.Stats(); st.Bytes > opt.MaxBytes || st.Bytes < opt.MaxBytes/2 {
		t.Errorf("a full spool uses %d bytes of %d", st.Bytes, opt.MaxBytes)
	}
	for round := range 5 {
		got := make(chan error, 1)
		go func() {
			_, err := s.Append(context.Background(), Batch{Records: events(next, 64, 300)})
			got <- err
		}()
		drain(t, a, 100, 1<<20, func(Seq, []byte) {})
		a.Release(a.next - 1)
		select {
		case err := <-got:
			t.Fatalf("round %d: an append went on although one sink still needs everything: %v", round, err)
		case <-time.After(20 * time.Millisecond): // a chance to be wrong, not a condition
		}
		drain(t, b, 100, 1<<20, func(Seq, []byte) {})
		b.Release(b.next - 1)
		select {
		case err := <-got:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(bound):
			t.Fatalf("round %d: released room wakes nobody", round)
		}
		next += 64
		if again := fill(); again < n-3 {
			t.Errorf("round %d: %d batches fit after a release, %d did at first", round, again, n)
		}
	}
	if st := s.Stats(); st.Disk > 3*opt.MaxBytes {
		t.Errorf("the file grew to %d bytes with a limit of %d", st.Disk, opt.MaxBytes)
	}
	var large *TooLargeError
	if _, err := s.Append(context.Background(), Batch{Records: [][]byte{make([]byte, 600<<10)}}); !errors.As(err, &large) {
		t.Errorf("append of more than the spool can hold: %v", err)
	}
	s.end()
}

// TestFullAtOpen: a committer that finds no room waits for it; it does not look again and again.
func TestFullAtOpen(t *testing.T) {
	dir := t.TempDir()
	opt := Options{Sinks: []string{"a"}, MaxBytes: MinMaxBytes}
	s := start(t, dir, opt)
	k := s.reader("a")
	for full := false; !full; {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		_, err := s.Append(ctx, Batch{Records: same(1, 64)})
		cancel()
		full = errors.Is(err, context.DeadlineExceeded)
	}
	drain(t, k, 100, 1<<20, func(Seq, []byte) {})
	k.Release(2) // in the middle of a row: nothing can go
	s.end()

	again := open(t, dir, opt)
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error, 1)
	go func() {
		_, err := again.Append(ctx, Batch{Records: same(1, 64)})
		got <- err
	}()
	for queued := 0; queued == 0; {
		again.mu.Lock()
		queued = len(again.queue)
		again.mu.Unlock()
	}
	if err := again.commit(true); err != nil { // in the committer's place
		t.Fatal(err)
	}
	again.mu.Lock()
	full, next := again.full, again.nextLocked(false)
	again.mu.Unlock()
	if !full || next != stepWait {
		t.Errorf("without room: full %v, next step %d", full, next)
	}
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// A batch of almost max_bytes fits when nothing else is there: otherwise it would wait for ever.
func TestOneBatchMayFillTheSpool(t *testing.T) {
	s := start(t, t.TempDir(), Options{Sinks: []string{"a"}, MaxBytes: 512 << 10})
	k := s.reader("a")
	rec := make([]byte, 500<<10)
	for i := range Seq(4) {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		if _, err := s.Append(ctx, Batch{Records: [][]byte{rec}}); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		cancel()
		drain(t, k, 1, 1, func(Seq, []byte) {})
		k.Release(i + 1)
	}
	s.end()
}

func TestOpenRefuses(t *testing.T) {
	f := func(opt Options, want string) {
		t.Helper()
		if s, err := Open(t.TempDir(), opt); err == nil {
			s.Close()
			t.Errorf("%+v: opened", opt)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", opt, err, want)
		}
	}
	f(Options{MaxBytes: -1}, "max_bytes")
	f(Options{MaxBytes: 1000}, "max_bytes")
	f(Options{Sinks: []string{"a", "a"}}, "twice")
	f(Options{Sinks: []string{""}}, "empty")

	dir := t.TempDir()
	s := open(t, dir, Options{})
	var locked *LockedError
	if _, err := Open(dir, Options{}); !errors.As(err, &locked) || locked.PID == 0 || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, Options{}).Close()
}

func TestReaderAndAppenderTogether(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	s := start(t, t.TempDir(), Options{Sinks: []string{"a", "b"}, MaxBytes: 2 << 20})
	const total = 20_000
	sizes := map[string]int{"a": 1 + dice.IntN(200), "b": 1 + dice.IntN(200)} // dice belong to the appender from here on
	var all sync.WaitGroup
	all.Go(func() {
		for next := Seq(1); next <= total; {
			n := min(1+dice.IntN(300), total-int(next)+1)
			if _, err := s.Append(context.Background(), Batch{Records: events(next, n, 600)}); err != nil {
				t.Error(err)
				return
			}
			next += Seq(n)
		}
		s.Seal()
	})
	for name, size := range sizes {
		k := s.reader(name)
		all.Go(func() {
			var b Block
			check := inOrder(t, 1, 600)
			for {
				n, err := k.Read(&b, size, 1<<16)
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n == 0 {
					<-k.Ready()
					continue
				}
				for i, rec := range b.Records {
					check(b.First+Seq(i), rec)
				}
				k.Release(b.First + Seq(n) - 1)
			}
		})
	}
	all.Wait()
	if err := s.ended(); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.LastSeq != total || st.Events != 0 {
		t.Errorf("at the end: %+v", st)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
