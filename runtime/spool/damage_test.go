package spool

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// filled makes a spool with 300 events of 200 bytes and returns its folder and the sink's rows.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := start(t, dir, Options{Sinks: []string{"a", "b"}})
	for i := range 3 {
		s.append(same(Seq(i*100+1), 100)...)
	}
	s.end()
	return dir
}

// same are events of 200 bytes, so that rows hold four of them.
func same(first Seq, n int) (out [][]byte) {
	for i := range n {
		out = append(out, event(first+Seq(i), 200))
	}
	return out
}

// edit changes the database of a closed spool.
func edit(t *testing.T, dir string, f func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, fileDB), 0o600, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// flip inverts a bit of every copy of what in the file of a closed spool.
func flip(t *testing.T, dir string, what []byte) {
	t.Helper()
	path := filepath.Join(dir, fileDB)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for at := 0; ; n++ {
		i := bytes.Index(b[at:], what)
		if i < 0 {
			break
		}
		b[at+i+len(what)/2] ^= 4
		at += i + len(what)
	}
	if n == 0 {
		t.Fatalf("%q is not in the file", what)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedRow: a wrong byte costs the events of its row and nothing else, for every sink and for good.
func TestDamagedRow(t *testing.T) {
	f := func(name string, hit Seq, seal bool) {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			flip(t, dir, append([]byte{200, 1}, event(hit, 200)[:40]...)) // with its length, so that there is no other
			first := (hit-1)/100*100 + ((hit-1)%100)/4*4 + 1              // of its row: rows of four, anew for each transaction
			var log bytes.Buffer
			opt := Options{Sinks: []string{"a", "b"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			s := start(t, dir, opt)
			if seal {
				s.Seal()
			}
			for _, sink := range []string{"a", "b"} {
				k := s.reader(sink)
				missing := []Seq{}
				next := Seq(1)
				n := drain(t, k, 37, 1<<20, func(at Seq, rec []byte) {
					for ; next < at; next++ {
						missing = append(missing, next)
					}
					if !bytes.Equal(rec, event(at, 200)) {
						t.Fatalf("position %d has %.40q", at, rec)
					}
					next++
				})
				for ; next <= 300; next++ {
					missing = append(missing, next)
				}
				if n != 296 || len(missing) != 4 || missing[0] != first || missing[3] != first+3 {
					t.Errorf("sink %s: read %d events, missing %v, want those from %d", sink, n, missing, first)
				}
				if want := passed(first, k.Floor()); k.Skipped() != want {
					t.Errorf("sink %s: skipped %d at floor %d, want %d", sink, k.Skipped(), k.Floor(), want)
				}
				if first+3 == 300 {
					k.Release(296)
				} else {
					k.Release(300)
				}
				if got := k.Floor(); got != 300 {
					t.Errorf("sink %s: floor %d does not pass the gap", sink, got)
				}
				if got := k.Skipped(); uint64(n)+got != 300 {
					t.Errorf("sink %s: %d read and %d skipped of 300", sink, n, got)
				}
			}
			if seal {
				if err := s.ended(); err != nil { // settled, although the gap was never read
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				s.end()
			}
			if st := s.Stats(); st.DamagedRows != 1 || st.DamagedEvents != 4 || st.Floor("a") != 300 || st.Skipped("a") != 4 || st.Skipped("c") != 0 {
				t.Errorf("stats: %+v", st)
			}
			if !strings.Contains(log.String(), "damaged events set aside") {
				t.Errorf("log: %q", log.String())
			}
			again := start(t, dir, opt)
			if st := again.Stats(); st.DamagedRows != 1 || st.DamagedEvents != 4 || st.LastSeq != 300 || st.Skipped("a") != 0 {
				t.Errorf("after opening again: %+v", st)
			}
			if at := again.append(event(301, 200)); at != 301 {
				t.Errorf("the next event has %d", at)
			}
			again.end()
		})
	}
	f("first", 2, false)
	f("middle", 150, false)
	f("last", 299, false)
	f("first, sealed", 1, true)
	f("middle, sealed", 202, true)
	f("last, sealed", 300, true)
}

// passed is how many positions of a row of four the floor has passed.
func passed(first, floor Seq) uint64 {
	if floor < first {
		return 0
	}
	return 4
}

// TestSkippedOnce: a position counts when the floor passes it, so a second reader of a sink does not count it again,
// and at every moment the floor is what was settled and what was skipped.
func TestSkippedOnce(t *testing.T) {
	dir := filled(t)
	for _, hit := range []Seq{150, 201, 205, 299} { // two neighbours among them
		flip(t, dir, append([]byte{200, 1}, event(hit, 200)[:40]...))
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		key := seqKey(1)
		return tx.Bucket(bucketRows).Delete(key[:])
	})
	// The floor starts behind the row that is gone: those events are not of this run.
	s := start(t, dir, Options{Sinks: []string{"a", "b"}})
	st := s.Stats()
	origin := st.Floor("a")
	if origin != 4 {
		t.Fatalf("floor %d, want 4", origin)
	}
	var settled uint64
	read := func(k *Reader, upTo Seq) {
		drain(t, k, 7, 1<<20, func(at Seq, _ []byte) {
			if at > upTo {
				return
			}
			settled++
			k.Release(at)
			if st := s.Stats(); uint64(k.Floor()-origin) != settled+k.Skipped() || st.Skipped("a") != k.Skipped() {
				t.Fatalf("floor %d: %d settled, %d skipped, %d in stats", k.Floor(), settled, k.Skipped(), st.Skipped("a"))
			}
		})
	}
	k := s.reader("a")
	read(k, 180) // it has read all and passed over all gaps
	if k.Skipped() != 4 {
		t.Errorf("skipped %d at floor %d, want 4", k.Skipped(), k.Floor())
	}
	k = s.reader("a")
	if k.Skipped() != 4 {
		t.Errorf("a new reader forgets: %d", k.Skipped())
	}
	read(k, 300)
	if got := k.Skipped(); got != 16 || settled+got != 296 || k.Floor() != 300 {
		t.Errorf("%d settled and %d skipped of 296, floor %d", settled, got, k.Floor())
	}
	if st = s.Stats(); st.Skipped("b") != 0 {
		t.Errorf("sink b has skipped %d and read nothing", st.Skipped("b"))
	}
	s.end()
}

// TestRowThatIsGone: a hole in the rows is passed over like a damaged row.
func TestRowThatIsGone(t *testing.T) {
	dir := filled(t)
	edit(t, dir, func(tx *bbolt.Tx) error {
		for _, first := range []Seq{1, 101, 297} {
			key := seqKey(first)
			if tx.Bucket(bucketRows).Get(key[:]) == nil {
				t.Fatalf("no row begins at %d", first)
			}
			if err := tx.Bucket(bucketRows).Delete(key[:]); err != nil {
				return err
			}
		}
		return nil
	})
	s := start(t, dir, Options{Sinks: []string{"a", "b"}})
	k := s.reader("a")
	if n := drain(t, k, 10, 1<<20, func(at Seq, rec []byte) {
		if !bytes.Equal(rec, event(at, 200)) {
			t.Fatalf("position %d has %.40q", at, rec)
		}
	}); n != 288 {
		t.Errorf("read %d events, want 288", n)
	}
	s.append(same(301, 3)...)
	if n := drain(t, k, 10, 1<<20, func(Seq, []byte) {}); n != 3 {
		t.Errorf("read %d new events, want 3", n)
	}
	s.end()
}

// TestDamagedState: every small value may be wrong, and the spool opens on what the others say.
func TestDamagedState(t *testing.T) {
	f := func(bucket, key string, check func(*running, string)) {
		t.Run(bucket+" "+key, func(t *testing.T) {
			dir := filled(t)
			s := start(t, dir, Options{Sinks: []string{"a", "b"}})
			epoch := s.Epoch()
			for _, sink := range []string{"a", "b"} {
				k := s.reader(sink)
				drain(t, k, 100, 1<<20, func(Seq, []byte) {})
				k.Release(250)
			}
			if _, err := s.Append(context.Background(), Batch{Offset: Offset{"in", []byte("here")}}); err != nil {
				t.Fatal(err)
			}
			s.end()
			edit(t, dir, func(tx *bbolt.Tx) error {
				b := tx.Bucket([]byte(bucket))
				v := bytes.Clone(b.Get([]byte(key)))
				v[len(v)-1] ^= 1
				return b.Put([]byte(key), v)
			})
			var log bytes.Buffer
			s = start(t, dir, Options{Sinks: []string{"a", "b"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if !strings.Contains(log.String(), "damaged") {
				t.Errorf("nothing in the log: %q", log.String())
			}
			check(s, string(epoch[:]))
			if at := s.append(event(301, 200)); at != 301 {
				t.Errorf("the next event has %d, want 301", at)
			}
			s.end()
		})
	}
	f("state", "last", func(s *running, _ string) {})
	f("state", "epoch", func(s *running, was string) {
		if now := s.Epoch(); string(now[:]) == was || now == [16]byte{} {
			t.Errorf("epoch %x", now)
		}
	})
	f("floors", "a", func(s *running, _ string) {
		st := s.Stats()
		if st.Floor("a") != st.FirstSeq-1 || st.FirstSeq > 251 || st.Floor("b") != 250 {
			t.Errorf("stats %+v", st)
		}
	})
	f("offsets", "in", func(s *running, _ string) {
		if v, err := s.Offset("in"); v != nil || err != nil {
			t.Errorf("offset %q, %v", v, err)
		}
	})
}

// TestUnreadableDatabase: it is moved aside whole, and the agent starts.
func TestUnreadableDatabase(t *testing.T) {
	f := func(name string, hurt func([]byte) []byte) {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			before := open(t, dir, Options{Sinks: []string{"a"}})
			epoch := before.Epoch()
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, fileDB)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b = hurt(b)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s := start(t, dir, Options{Sinks: []string{"a"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			st := s.Stats()
			kept, err := os.ReadFile(st.SetAside)
			if err != nil || !bytes.Equal(kept, b) || !strings.Contains(log.String(), st.SetAside) {
				t.Errorf("set aside %q: %v; log %q", st.SetAside, err, log.String())
			}
			if s.Epoch() == epoch || st.LastSeq != 0 {
				t.Errorf("the new spool goes on from the old one: %+v", st)
			}
			if at := s.append(event(1, 10)); at != 1 {
				t.Errorf("first event has %d", at)
			}
			s.end()
			if again := open(t, dir, Options{Sinks: []string{"a"}}); again.Stats().SetAside != "" || again.Stats().LastSeq != 1 {
				t.Errorf("opening again: %+v", again.Stats())
			} else if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	f("empty", func(b []byte) []byte { return nil })
	f("cut short", func(b []byte) []byte { return b[:5*pageSize] })
	f("zeroes", func(b []byte) []byte { return make([]byte, len(b)) })
	f("both metas", func(b []byte) []byte { b[40] ^= 1; b[pageSize+40] ^= 1; return b })
	f("page ids", func(b []byte) []byte {
		for i := 2 * pageSize; i+8 < len(b); i += pageSize {
			b[i+3] ^= 0x40
		}
		return b
	})
	f("page kinds", func(b []byte) []byte {
		for i := 2 * pageSize; i+16 < len(b); i += pageSize {
			b[i+8] ^= 0x40
		}
		return b
	})
}

// TestTornMeta: when the last page written is torn, the spool opens as it was one transaction earlier: nobody
// was told of the last one.
func TestTornMeta(t *testing.T) {
	dir := filled(t)
	path := filepath.Join(dir, fileDB)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, dir, Options{Sinks: []string{"a", "b"}})
	// What was written last: of the two metas, the one that changes now.
	s.append(same(301, 50)...)
	s.stop()
	if err := s.ended(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newest := 0
	if txid := func(p int) uint64 { return leUint64(now[p*pageSize+16+48:]) }; txid(1) > txid(0) {
		newest = 1
	}
	copy(now[newest*pageSize:], b[newest*pageSize:newest*pageSize+512]) // one old sector, the rest new
	copy(now[newest*pageSize+40:newest*pageSize+60], make([]byte, 20))
	if err := os.WriteFile(path, now, 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir, Options{Sinks: []string{"a", "b"}})
	if st := s.Stats(); st.LastSeq != 300 || st.SetAside != "" {
		t.Errorf("stats %+v", st)
	}
	next := Seq(1)
	if n := drain(t, s.reader("a"), 100, 1<<20, func(at Seq, rec []byte) {
		if at != next || !bytes.Equal(rec, event(at, 200)) {
			t.Fatalf("position %d has %.40q", at, rec)
		}
		next++
	}); n != 300 {
		t.Errorf("read %d events", n)
	}
	s.end()
}

func leUint64(b []byte) (n uint64) {
	for i := range 8 {
		n |= uint64(b[i]) << (8 * i)
	}
	return n
}

func TestOtherVersions(t *testing.T) {
	f := func(name string, change func(tx *bbolt.Tx) error, check func(error) bool) {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			edit(t, dir, change)
			before, err := os.ReadFile(filepath.Join(dir, fileDB))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{Sinks: []string{"a"}})
			if err == nil {
				s.Close()
			}
			if !check(err) {
				t.Errorf("open: %v", err)
			}
			after, err := os.ReadFile(filepath.Join(dir, fileDB))
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	f("newer", func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketState).Put(keyFormat, appendSummed(nil, keyFormat, []byte{0, 0, 0, 2}))
	}, func(err error) bool {
		var v *VersionError
		return errors.As(err, &v) && v.Found == 2 && v.Supported == 1
	})
}

// TestNotASpool: a sound database without what a spool has is moved aside: a wrong bit in a bucket's name looks
// the same.
func TestNotASpool(t *testing.T) {
	f := func(name string, want string, change func(tx *bbolt.Tx) error) {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			edit(t, dir, change)
			var log bytes.Buffer
			s := start(t, dir, Options{Sinks: []string{"a"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			st := s.Stats()
			if _, err := os.Stat(st.SetAside); err != nil || st.LastSeq != 0 || !strings.Contains(log.String(), want) {
				t.Errorf("%v, stats %+v, log %s", err, st, log.String())
			}
			s.append(event(1, 10))
			s.end()
		})
	}
	f("no state", "not a spool", func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketState) })
	f("no floors", "floors", func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketFloors) })
	f("no version", "format version", func(tx *bbolt.Tx) error { return tx.Bucket(bucketState).Delete(keyFormat) })
}

// TestFailedWriteIsFinal: after a write that failed nothing is believed any more until the spool is opened again.
func TestFailedWriteIsFinal(t *testing.T) {
	dir := t.TempDir()
	var file *os.File
	s := start(t, dir, Options{Sinks: []string{"a"}, openFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		file = f
		return f, err
	}})
	// Room for what follows is reserved by then: what fails is the write.
	if _, err := s.Append(context.Background(), Batch{Offset: Offset{"other", make([]byte, 64<<10)}}); err != nil {
		t.Fatal(err)
	}
	s.append(same(1, 10)...)
	k := s.reader("a")
	var b Block
	if n, err := k.Read(&b, 5, 1<<20); n != 5 || err != nil {
		t.Fatalf("read: %d, %v", n, err)
	}
	file.Close() // from here on the disk answers with errors
	var failed *FailedError
	is := func(what string, err error) {
		t.Helper()
		if !errors.As(err, &failed) || !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), "start the agent again") {
			t.Errorf("%s after a failed write: %v", what, err)
		}
	}
	_, err := s.Append(context.Background(), Batch{Records: same(11, 1), Offset: Offset{"in", []byte("x")}})
	is("append", err)
	is("run", s.ended())
	_, err = s.Append(context.Background(), Batch{Records: same(11, 1)})
	is("second append", err)
	_, err = k.Read(&b, 5, 1<<20)
	is("read", err)
	_, err = s.Offset("in")
	is("offset", err)
	k.Release(5)
	is("close", s.Close())

	s = start(t, dir, Options{Sinks: []string{"a"}})
	next := Seq(1)
	if n := drain(t, s.reader("a"), 100, 1<<20, func(at Seq, rec []byte) {
		if at != next || !bytes.Equal(rec, event(at, 200)) {
			t.Fatalf("position %d has %.40q", at, rec)
		}
		next++
	}); n != 10 {
		t.Errorf("read %d events, want the 10 that were acknowledged", n)
	}
	if v, err := s.Offset("in"); v != nil || err != nil {
		t.Errorf("the offset of a batch that was not stored: %q, %v", v, err)
	}
	s.end()
}

// TestWaitersHearOfFailure: nobody who waits is forgotten when the spool fails or stops.
func TestWaitersHearOfFailure(t *testing.T) {
	s := start(t, t.TempDir(), Options{Sinks: []string{"a"}, MaxBytes: MinMaxBytes})
	k := s.reader("a")
	got := make(chan error, 4)
	for range cap(got) {
		go func() {
			for {
				if _, err := s.Append(context.Background(), Batch{Records: same(1, 64)}); err != nil {
					got <- err
					return
				}
			}
		}()
	}
	for full := false; !full; full = s.Stats().Full {
		select {
		case <-k.Ready():
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.stop()
	for range cap(got) {
		select {
		case err := <-got:
			if !errors.Is(err, ErrStopped) {
				t.Errorf("a waiting append hears %v", err)
			}
		case <-time.After(bound):
			t.Fatal("an append waits for ever")
		}
	}
	s.end()
}

func FuzzRow(f *testing.F) {
	row := func(first Seq, recs ...[]byte) {
		var p packer
		p.reset(first)
		put := func(key, value []byte) error {
			f.Add(uint64(first), value[sumSize:])
			return nil
		}
		for _, r := range recs {
			if err := p.add(r, put); err != nil {
				f.Fatal(err)
			}
		}
		if err := p.flush(put); err != nil {
			f.Fatal(err)
		}
	}
	row(1, []byte("a"))
	row(1<<40, events(3, 4, 200)...)
	row(7, nil, nil, make([]byte, 300))
	f.Add(uint64(1), []byte{})
	f.Add(uint64(1), []byte{2, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, seq uint64, content []byte) {
		key := seqKey(Seq(seq))
		if _, err := parseRow(nil, key[:], content); err == nil && len(content) < rowHeader {
			t.Fatal("a row without a header is read")
		}
		value := appendSummed(nil, key[:], content) // the checksum is right, the rest is anything
		kept := [][]byte{[]byte("kept")}
		recs, err := parseRow(kept, key[:], value)
		if err != nil {
			var damage *DamageError
			if !errors.As(err, &damage) || len(recs) != 1 {
				t.Fatalf("%v, %d records", err, len(recs))
			}
			return
		}
		size := 0
		for _, r := range recs[1:] {
			size += len(r) + 1
			if cap(r) != len(r) {
				t.Fatal("a record can grow into its neighbour")
			}
		}
		if len(recs)-1 != rowCount(value) || size > len(content)-2 {
			t.Fatalf("%d records of %d, %d bytes of %d", len(recs)-1, rowCount(value), size, len(content))
		}
		other := seqKey(Seq(seq + 1))
		if _, err := parseRow(nil, other[:], value); err == nil {
			t.Fatal("a row is read under another key")
		}
	})
}
