package quarantine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/envelope"
)

var anEvent = envelope.Event{
	ID: envelope.ID{1, 2, 3}, Dataset: []byte("imu"), Input: []byte("log"), Source: []byte("imu.ndjson:17"),
	IngestTime: 1_700_000_000_000_000_001, EventTime: -5, Quality: envelope.Uncertain,
	Identity: []envelope.Level{{Name: []byte("site"), Value: []byte("a")}, {Name: []byte("robot"), Value: []byte("r\n7")}},
	Body:     []byte(`{"temp":43.25,"note":"<é & \u2028>"}`),
}

// full is an entry with everything in it.
func full() Entry {
	return Entry{
		Time: time.Date(2026, 12, 1, 2, 3, 4, 5, time.UTC), Sink: "nats-out", ID: anEvent.ID, Input: "log", Source: "imu.ndjson:17", Dataset: "imu",
		Identity: []Level{{"site", "a"}, {"robot", "r\n7"}, {"site", "again"}}, IngestTime: anEvent.IngestTime, EventTime: anEvent.EventTime,
		Quality: envelope.Uncertain, Kind: envelope.Record, Reason: "too_large", Detail: "payload has 9 bytes", Module: strings.Repeat("ab", 32), Attempts: 3,
		Raw: anEvent.Body, Event: envelope.AppendEvent(nil, &anEvent), Subject: "edge.imu.r7", Headers: []byte("A: b\r\n"), Payload: []byte(`{"x":1}`),
	}
}

// refused is a line that was no event.
func refused(line int) Entry {
	return Entry{Time: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Input: "log", Source: fmt.Sprintf("imu.ndjson:%d", line), EventTime: envelope.NoTime,
		Reason: "not_json", Detail: "byte 3", Raw: []byte("{\"a\"\xff")}
}

// numbered are n different entries.
func numbered(from, n int) (out []Entry) {
	for i := range n {
		e := full()
		e.ID = envelope.ID{0xff, byte((from + i) >> 8), byte(from + i)}
		out = append(out, e)
	}
	return out
}

func openStore(t *testing.T, dir string, opt Options) *Store {
	t.Helper()
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Store, want int, entries ...Entry) {
	t.Helper()
	if n, err := s.Put(entries); err != nil || n != want {
		t.Fatalf("put %d entries: %d added, %v; want %d", len(entries), n, err, want)
	}
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, dir string) ([]Entry, Damage) {
	t.Helper()
	var out []Entry
	d, err := Scan(dir, func(e *Entry) bool {
		out = append(out, *e)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, d
}

func TestEntriesComeBack(t *testing.T) {
	f := func(name string, change func(*Entry)) {
		t.Run(name, func(t *testing.T) {
			e := full()
			change(&e)
			dir := t.TempDir()
			s := openStore(t, dir, Options{})
			put(t, s, 1, e)
			got, d := all(t, dir) // beside the writer
			if len(got) != 1 || d != (Damage{}) || !reflect.DeepEqual(got[0], e) {
				t.Errorf("read %+v (damage %+v), want %+v", got, d, e)
			}
			closeStore(t, s)
			line, err := os.ReadFile(filepath.Join(dir, fileJournal))
			if err != nil || bytes.Count(line, []byte{'\n'}) != 1 || !json.Valid(line) {
				t.Errorf("the file is not one line of JSON: %q, %v", line, err)
			}
		})
	}
	f("full", func(e *Entry) {})
	f("refused line", func(e *Entry) { *e = refused(1) })
	f("binary", func(e *Entry) {
		e.Raw, e.Event, e.Kind, e.Payload, e.Headers = []byte{0xff, 0}, append([]byte{9}, 0xff, 0), envelope.Raw, []byte{0x80}, []byte{0xc3, 0x28}
	})
	f("event that does not end with raw", func(e *Entry) { e.Event = []byte("something else") })
	f("event that is raw", func(e *Entry) { e.Event = e.Raw })
	f("nothing rendered", func(e *Entry) { e.Subject, e.Headers, e.Payload = "", nil, nil })
	f("no times", func(e *Entry) { e.IngestTime, e.EventTime = 0, envelope.NoTime })
	f("far times", func(e *Entry) { e.IngestTime, e.EventTime = 1<<63-1, -1<<63+1 })
	f("control characters", func(e *Entry) { e.Detail, e.Source = "a\n\x00\x1b[31m\u2028b", "\t" })
	f("zero byte", func(e *Entry) { e.Raw = []byte{0} })
	f("no identity", func(e *Entry) { e.Identity = nil })
}

func TestPutIsIdempotent(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	e := full()
	other, sink := e, e
	other.Reason, sink.Sink = "denied", "second"
	put(t, s, 1, e, e)
	put(t, s, 2, e, other, sink)
	again := e
	again.Time, again.Detail, again.Attempts = time.Now(), "later", 9
	put(t, s, 0, again)
	put(t, s, 2, refused(1), refused(2), refused(1))
	closeStore(t, s)
	s = openStore(t, dir, Options{})
	if st := s.Stats(); st.Entries != 5 || st.Damage != (Damage{}) {
		t.Errorf("after opening again: %+v", st)
	}
	put(t, s, 1, e, other, sink, refused(1), refused(2), refused(3))
	closeStore(t, s)
	if got, _ := all(t, dir); len(got) != 6 {
		t.Errorf("%d entries, want 6", len(got))
	}
	if _, err := s.Put([]Entry{e}); !errors.Is(err, ErrClosed) {
		t.Errorf("put after close: %v", err)
	}
}

func TestFull(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{MaxBytes: 4000})
	entries := numbered(0, 20)
	put(t, s, 2, entries[:2]...)
	var full *FullError
	n, err := s.Put(entries)
	if !errors.As(err, &full) || full.Stored != 2+n || n == 0 || full.Stored >= len(entries) || !strings.Contains(err.Error(), "quarantine.max_bytes") {
		t.Fatalf("put beyond the limit: %d, %v", n, err)
	}
	before := s.Stats()
	if again, err := s.Put(entries[full.Stored:]); again != 0 || !errors.As(err, &full) || full.Stored != 0 {
		t.Errorf("put where nothing fits: %d, %v", again, err)
	}
	if after := s.Stats(); !reflect.DeepEqual(before, after) {
		t.Errorf("a refused put changed %+v to %+v", before, after)
	}
	put(t, s, 0, entries[:2+n]...) // all of them are there
	closeStore(t, s)
	if got, d := all(t, dir); len(got) != 2+n || d != (Damage{}) {
		t.Errorf("%d entries, damage %+v, want %d", len(got), d, 2+n)
	}
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	var locked *LockedError
	if _, err := Open(dir, Options{}); !errors.As(err, &locked) || locked.PID != os.Getpid() || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v", err)
	}
	closeStore(t, s)
	closeStore(t, openStore(t, dir, Options{}))
	if _, err := Open(dir, Options{MaxBytes: -1}); err == nil {
		t.Error("opened with a negative limit")
	}
}

func TestScanOfNothing(t *testing.T) {
	if got, d := all(t, t.TempDir()); len(got) != 0 || d != (Damage{}) {
		t.Errorf("%d entries, damage %+v", len(got), d)
	}
	if _, err := Scan(filepath.Join(t.TempDir(), "no"), func(*Entry) bool { return true }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("scan of a missing folder: %v", err)
	}
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	put(t, s, 10, numbered(0, 10)...)
	closeStore(t, s)
	n := 0
	if _, err := Scan(dir, func(*Entry) bool { n++; return n < 4 }); err != nil || n != 4 {
		t.Errorf("scan that stops itself: %d calls, %v", n, err)
	}
}

// broken is a journal on a disk that fails: after room bytes of writing, or at the sync.
type broken struct {
	*os.File
	room int
	sync bool
}

var errDisk = errors.New("disk on fire")

func (b *broken) Write(p []byte) (int, error) {
	n, err := b.File.Write(p[:min(len(p), b.room)])
	b.room -= n
	if err == nil && n < len(p) {
		err = errDisk
	}
	return n, err
}

func (b *broken) Sync() error {
	if b.sync {
		return errDisk
	}
	return b.File.Sync()
}

// TestFailingWrite: the first failure is the last answer, and opening again finds what was acknowledged.
func TestFailingWrite(t *testing.T) {
	one, err := appendLine(nil, &numbered(5, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	f := func(room int, sync bool, survive int) {
		t.Helper()
		dir := t.TempDir()
		s := openStore(t, dir, Options{})
		put(t, s, 5, numbered(0, 5)...)
		s.file = &broken{File: s.file.(*os.File), room: room, sync: sync}
		var failed *FailedError
		if n, err := s.Put(numbered(5, 3)); n != 0 || !errors.As(err, &failed) || !errors.Is(err, errDisk) {
			t.Errorf("room %d: put answers %d, %v", room, n, err)
		}
		s.file.(*broken).room, s.file.(*broken).sync = 1<<30, false // the disk is well again; it does not matter
		if n, err := s.Put(numbered(8, 1)); n != 0 || !errors.Is(err, errDisk) {
			t.Errorf("room %d: put after a failure answers %d, %v", room, n, err)
		}
		if err := s.Close(); !errors.Is(err, errDisk) {
			t.Errorf("room %d: close answers %v", room, err)
		}
		s = openStore(t, dir, Options{})
		if st := s.Stats(); st.Entries != survive || st.Damage.Lines != 0 {
			t.Errorf("room %d: after opening again: %+v", room, st)
		}
		put(t, s, 8-survive, numbered(0, 8)...)
		closeStore(t, s)
		if got, d := all(t, dir); len(got) != 8 || d != (Damage{}) {
			t.Errorf("room %d: %d entries, damage %+v", room, len(got), d)
		}
	}
	f(0, false, 5)
	f(1, false, 5)
	f(len(one)-1, false, 5)
	f(len(one), false, 6)
	f(len(one)+1, false, 6)
	f(3*len(one)-1, false, 7)
	f(1<<20, true, 8) // whole on disk by luck: nobody was told, and putting again adds nothing
}

// TestTornTail: a journal that ends anywhere opens, with every complete line, and the rest kept.
func TestTornTail(t *testing.T) {
	src := t.TempDir()
	s := openStore(t, src, Options{})
	put(t, s, 2, numbered(0, 2)...)
	closeStore(t, s)
	whole, err := os.ReadFile(filepath.Join(src, fileJournal))
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := range len(whole) + 1 {
		if near := cut % first; near > 3 && near < first-3 && cut%17 != 0 {
			continue // every edge of a line, and some of what is between
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileJournal), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := bytes.Count(whole[:cut], []byte{'\n'})
		got, d := all(t, dir)
		tail := int64(cut)
		if want > 0 {
			tail = int64(cut-first) % int64(len(whole)-first)
		}
		if len(got) != want || d != (Damage{Torn: tail}) {
			t.Fatalf("cut at %d: %d entries, damage %+v", cut, len(got), d)
		}
		s := openStore(t, dir, Options{})
		put(t, s, 2-want, numbered(0, 2)...)
		closeStore(t, s)
		if now, err := os.ReadFile(filepath.Join(dir, fileJournal)); err != nil || !bytes.Equal(now, whole) {
			t.Fatalf("cut at %d: the journal is not whole again: %v", cut, err)
		}
		if tail > 0 {
			kept, err := os.ReadFile(filepath.Join(dir, fileDamaged))
			if err != nil || !bytes.Equal(kept, whole[int64(cut)-tail:cut]) {
				t.Fatalf("cut at %d: kept %q, %v", cut, kept, err)
			}
		}
	}
}

// TestDamagedLines: a wrong byte costs its line (a wrong newline, two), stops nothing, and is kept.
func TestDamagedLines(t *testing.T) {
	src := t.TempDir()
	s := openStore(t, src, Options{})
	put(t, s, 5, numbered(0, 5)...)
	closeStore(t, s)
	whole, err := os.ReadFile(filepath.Join(src, fileJournal))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	at := len(lines[0]) + len(lines[1])
	for i := 0; i <= len(lines[2]); i += 13 {
		i = min(i, len(lines[2])-1)
		dir := t.TempDir()
		bad := bytes.Clone(whole)
		bad[at+i] ^= 0x10
		if err := os.WriteFile(filepath.Join(dir, fileJournal), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		lost := 1
		if i == len(lines[2])-1 {
			lost = 2 // the next one is glued to it
		}
		var log bytes.Buffer
		s := openStore(t, dir, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if st := s.Stats(); st.Entries != 5-lost || st.Damage.Lines != 1 || !strings.Contains(log.String(), fileDamaged) {
			t.Fatalf("byte %d: %+v, log %q", i, st, log.String())
		}
		put(t, s, lost, numbered(0, 5)...)
		closeStore(t, s)
		if got, d := all(t, dir); len(got) != 5 || d != (Damage{}) {
			t.Fatalf("byte %d: %d entries, damage %+v", i, len(got), d)
		}
		kept, err := os.ReadFile(filepath.Join(dir, fileDamaged))
		if err != nil || !bytes.Contains(bad, kept) || len(kept) < len(lines[2]) {
			t.Fatalf("byte %d: kept %q, %v", i, kept, err)
		}
	}
}

// TestDamageThatCannotBeTakenOut: the store opens all the same, and readers pass the line over.
func TestDamageThatCannotBeTakenOut(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	put(t, s, 3, numbered(0, 3)...)
	closeStore(t, s)
	path := filepath.Join(dir, fileJournal)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[3] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, fileDamaged), 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	put(t, s, 1, numbered(0, 4)[0])
	closeStore(t, s)
	if got, d := all(t, dir); len(got) != 3 || d.Lines != 1 {
		t.Errorf("%d entries, damage %+v", len(got), d)
	}
	if _, err := os.Stat(filepath.Join(dir, fileNew)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a half-made journal was left: %v", err)
	}
}

func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := s.Put(numbered(i*8+w/2*2, 2)); err != nil { // each pair twice
					t.Error(err)
				}
				if _, err := Scan(dir, func(*Entry) bool { return true }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closeStore(t, s)
	if got, d := all(t, dir); len(got) != 80 || d != (Damage{}) {
		t.Errorf("%d entries, damage %+v", len(got), d)
	}
}

// FuzzLine gives the decoder any body under a checksum that is right, and any line as it is.
func FuzzLine(f *testing.F) {
	seed := func(e Entry) {
		line, err := appendLine(nil, &e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line[:len(line)-1-sumLen])
		f.Add(line[:len(line)-1])
	}
	seed(full())
	seed(refused(3))
	f.Add([]byte(`{"time":"2026-12-01T00:00:00Z","event_time":null,"quality":"good","kind":"raw","identity":{"a":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var e Entry
		_ = parseLine(body, &e)
		line := appendSum(bytes.Clone(body), body)
		if parseLine(line[:len(line)-1], &e) != nil {
			return
		}
		again, err := appendLine(nil, &e)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", body, err)
		}
		var back Entry
		if err := parseLine(again[:len(again)-1], &back); err != nil {
			t.Fatalf("%q was read, written as %q and cannot be read: %v", body, again, err)
		}
		twice, err := appendLine(nil, &back)
		if err != nil || !bytes.Equal(again, twice) {
			t.Fatalf("written %q, then %q, %v", again, twice, err)
		}
		again[len(again)/3] ^= 1
		if again[len(again)/3] != '\n' && parseLine(again[:len(again)-1], &back) == nil {
			t.Fatalf("a wrong byte was not noticed: %q", again)
		}
	})
}
