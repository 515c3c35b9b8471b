package input

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/envelope"
	"edge/runtime/config"
	"edge/runtime/spool"
)

func TestMapping(t *testing.T) {
	const id = "0123456789ABCDEF0011223344556677"
	hashed := envelope.HashID("r7.lab/in", []byte("a\n1")).String()[:4]
	seven := envelope.HashID("r7.lab/in", []byte("7")).String()[:4]
	f := func(format, text, want string) {
		t.Helper()
		r := newRig(t)
		r.write(text)
		cfg := r.cfg()
		cfg.Map.TimeFormat = format
		if n, refused := r.run(cfg); n != 1 || refused != 0 {
			t.Fatalf("%s: captured %d, refused %d: %q", text, n, refused, r.refused())
		}
		r.want(r.events(), []string{"imu.ndjson:1 " + want + " " + strings.TrimSuffix(text, "\n")})
	}
	f("", `{"id":"`+id+`","ts":"1970-01-01T00:00:01Z","q":"bad","site":"lab","robot":"r7"}`+"\n", `0123 bad 1000000000 "lab" "r7"`)
	f("", `{"id":"a\n1","robot":7,"site":true}`+"\n", hashed+` good - "true" "7"`)
	f("", `{"id":7,"robot":null,"site":{}}`+"\n", seven+` good - "" ""`)
	f("", `{"id":"","ts":"","q":"?"}`+"\n", `- uncertain - "" ""`)
	f("", `{"id":null,"ts":null,"q":null}`+"\n", `- good - "" ""`)
	f("", `{"id":[1],"ts":"yesterday","q":"good"}`+"\n", `- uncertain - "" ""`)
	f("", `{"ts":"yesterday","q":"bad"}`+"\n", `- bad - "" ""`)
	f("", `{"ts":"2026-10-10T08:00:00.000000001+02:00"}`+"\n", `- good 1791612000000000001 "" ""`)
	f(config.TimeUnix, `{"ts":1.5}`+"\n", `- good 1500000000 "" ""`)
	f(config.TimeUnix, `{"ts":"1.5"}`+"\n", `- good 1500000000 "" ""`)
	f(config.TimeUnixMilli, `{"ts":-1}`+"\n", `- good -1000000 "" ""`)
	f(config.TimeUnixMicro, `{"ts":1}`+"\n", `- good 1000 "" ""`)
	f(config.TimeUnixNano, `{"ts":1791612000000000001}`+"\n", `- good 1791612000000000001 "" ""`)
	f(config.TimeUnixNano, `{"ts":99999999999999999999}`+"\n", `- uncertain - "" ""`)
}

func TestLines(t *testing.T) {
	f := func(text, events string, refused ...string) {
		t.Helper()
		r := newRig(t)
		r.write(text)
		n, bad := r.run(r.cfg())
		r.want(r.bodies(), events)
		got := r.refused()
		if len(got) != len(refused) || bad != len(refused) || n != len(r.events())+bad {
			t.Fatalf("%.80q: got %q, captured %d, refused %d", text, got, n, bad)
		}
		for i := range got {
			if !strings.HasPrefix(got[i], refused[i]) {
				t.Fatalf("%.80q: got %q, want %q", text, got[i], refused[i])
			}
		}
	}
	long := `{"a":"` + strings.Repeat("x", 1024-8) + `"}`
	f("", "")
	f("\n\n", "")
	f("{}", "{}")
	f("{}\n", "{}")
	f("{}\r\n{ }\r\n", "{} { }")
	f("\uFEFF{}\n", "{}")
	f("\uFEFF", "")
	f("\n  \t\r\n\n{}\n\n", "{}")
	f("{}\nbad\n{}\n", "{} {}", `imu.ndjson:2 not_json "bad"; line 2, at byte 3: `)
	f("[1]\n{}\n", "{}", `imu.ndjson:1 not_an_object "[1]"; line 1, at byte 0: `)
	f("{}\n{\"a\":\"\xff\"}\n{}", "{} {}", `imu.ndjson:2 invalid_utf8 "{\"a\":\"\xff\"}"; line 2, at byte 3: `)
	f("\x00\x00\n{}\n\uFEFF{}\n", "{}", `imu.ndjson:1 not_json "\x00\x00"`, `imu.ndjson:3 not_json "\ufeff{}"`)
	f("{} {}\n{\"a\":1\n", "", `imu.ndjson:1 not_json "{} {}"`, `imu.ndjson:2 not_json "{\"a\":1"`)
	f(long+"\n{}\n", long+" {}")
	f(long+"\r\n{}\n", long+" {}")
	f(long, long)
	f(long+" \n{}\n", "{}", `imu.ndjson:1 line_too_long "{\"a\":\"xxx`)
	f("{}\n"+long+" ", "{}", `imu.ndjson:2 line_too_long "{\"a\":\"xxx`)
}

func TestOverlongLineIsBounded(t *testing.T) {
	r := newRig(t)
	cfg := r.cfg()
	cfg.MaxLine = 100 << 10
	r.write("{}\n" + strings.Repeat("x", 5<<20) + "\n{}\n" + strings.Repeat("y", 200<<10))
	r.run(cfg)
	r.want(r.bodies(), "{} {}")
	got := r.refused()
	want := `line 2, at byte 3: it is longer than max_line, 102400 bytes; only its first 65536 bytes of 5242881 are kept`
	if len(got) != 2 || !strings.HasSuffix(got[0], want) || !strings.Contains(got[0], fmt.Sprintf("%q;", strings.Repeat("x", 65536))) {
		t.Fatalf("got %d entries, the first ends in %s", len(got), got[0][len(got[0])-len(want):])
	}
	s := splitter{max: cfg.MaxLine}
	for range 1000 {
		s.next(make([]byte, 100_000))
	}
	if cap(s.carry) > 4*cfg.MaxLine {
		t.Fatalf("the splitter keeps %d bytes", cap(s.carry))
	}
}

func TestRaw(t *testing.T) {
	r := newRig(t)
	cfg := r.cfg()
	cfg.Format, cfg.Map = config.FormatRaw, config.Map{}
	r.write("a\x00b\r\n\n \n\xff")
	if n, refused := r.run(cfg); n != 3 || refused != 0 {
		t.Fatalf("captured %d, refused %d", n, refused)
	}
	r.want(r.events(), []string{"imu.ndjson:1 - good - \"\" \"\" a\x00b", `imu.ndjson:3 - good - "" ""  `, "imu.ndjson:4 - good - \"\" \"\" \xff"})
}

func TestPositionIsRemembered(t *testing.T) {
	r := newRig(t)
	f := func(captured int, bodies string) {
		t.Helper()
		r.restart()
		before := r.spool.Stats().Commits
		if n, _ := r.run(r.cfg()); n != captured {
			t.Fatalf("captured %d, want %d", n, captured)
		}
		r.want(r.bodies(), bodies)
		if captured == 0 && r.spool.Stats().Commits != before {
			t.Fatal("a run with nothing new wrote something")
		}
	}
	r.write("")
	f(0, "")
	r.append("{}\n{\"a\":1}\n")
	f(2, `{} {"a":1}`)
	f(0, `{} {"a":1}`)
	r.append("{\"a\":2}") // without a line break it is a line all the same
	f(1, `{} {"a":1} {"a":2}`)
	f(0, `{} {"a":1} {"a":2}`)
	r.append("\nbad\n") // the line break ends it, and counts as no line
	f(1, `{} {"a":1} {"a":2}`)
	if got := r.refused(); len(got) != 1 || !strings.HasPrefix(got[0], `imu.ndjson:4 not_json "bad"`) {
		t.Fatalf("got %q", got)
	}
	// Cut and written again: another generation, whose refused line is a new one even at the same place.
	r.write("{\"a\":3}\nbad\n")
	f(2, `{} {"a":1} {"a":2} {"a":3}`)
	if !strings.Contains(r.log.String(), "file is read from its beginning") {
		t.Fatalf("no warning in %s", r.log)
	}
	f(0, `{} {"a":1} {"a":2} {"a":3}`)
	r.write("bad\n")
	f(1, `{} {"a":1} {"a":2} {"a":3}`)
	r.write("{}\nbad\n") // not shorter than what was read, but its beginning differs
	f(2, `{} {"a":1} {"a":2} {"a":3} {}`)
	r.write("")
	f(0, `{} {"a":1} {"a":2} {"a":3} {}`)
	if got := r.refused(); len(got) != 4 {
		t.Fatalf("got %q", got)
	}
}

// TestCutFileRefusesAgain holds that the lines of a file that was cut and begins as before are new ones, also those
// that are refused.
func TestCutFileRefusesAgain(t *testing.T) {
	r := newRig(t)
	text := "bad\n" + strings.Repeat("{}\n", 400)
	r.write(text + "{}\n")
	r.run(r.cfg())
	r.write(text)
	if n, refused := r.run(r.cfg()); n != 401 || refused != 1 {
		t.Fatalf("captured %d, refused %d", n, refused)
	}
	if got := r.refused(); len(got) != 2 {
		t.Fatalf("got %q", got)
	}
}

func TestReplacedFile(t *testing.T) {
	r := newRig(t)
	r.write("{}\n")
	r.run(r.cfg())
	if err := os.Rename(r.path(), r.path()+".1"); err != nil {
		t.Fatal(err)
	}
	r.write("{}\n{}\n") // begins as the old one did, but is another file
	if n, _ := r.run(r.cfg()); n != 2 {
		t.Fatalf("captured %d", n)
	}
	other := r.cfg()
	other.ID = "in2" // another input has a position of its own
	if n, _ := r.run(other); n != 2 {
		t.Fatalf("captured %d", n)
	}
}

func TestUnreadable(t *testing.T) {
	r := newRig(t)
	f := func(path, want string) {
		t.Helper()
		cfg := r.cfg()
		cfg.Path = path
		_, err := New(cfg, imu, Deps{})
		if err == nil || !strings.Contains(err.Error(), "open input in: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	f(filepath.Join(r.dir, "none"), "no such file")
	f(r.dir, "is a folder: name one file")
	f(os.DevNull, "is not a regular file")
	cfg := r.cfg()
	cfg.Kind = config.KindStdin
	if _, err := New(cfg, imu, Deps{}); err == nil || !strings.Contains(err.Error(), "there is no standard input here") {
		t.Errorf("got %v", err)
	}
}

func TestStrangePosition(t *testing.T) {
	r := newRig(t)
	r.write("{}\n")
	if _, err := r.spool.Append(context.Background(), spool.Batch{Offset: spool.Offset{Key: "file/in", Value: []byte{positionVersion + 1, 0}}}); err != nil {
		t.Fatal(err)
	}
	in, _ := r.make(r.cfg(), nil)
	err := in.Run(context.Background())
	var p *PositionError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), "give the input another id") {
		t.Fatalf("got %v", err)
	}
}

// broken is a spool that fails at the n-th batch, before or behind the write: what a crash leaves.
type broken struct {
	Spool
	left   int
	behind bool
}

var errCrash = errors.New("crash")

func (b *broken) Append(ctx context.Context, batch spool.Batch) (spool.Seq, error) {
	if b.left--; b.left >= 0 {
		return b.Spool.Append(ctx, batch)
	}
	if b.behind && b.left == -1 {
		if _, err := b.Spool.Append(ctx, batch); err != nil {
			return 0, err
		}
	}
	return 0, errCrash
}

// TestCrash stops between the quarantine and the spool, and behind both, at each batch, and reads on: nothing is lost
// or there twice.
func TestCrash(t *testing.T) {
	var text, want strings.Builder
	refused := 0
	for i := range 4 * batchEvents {
		if i%7 == 3 {
			fmt.Fprintf(&text, "bad %d\n", i)
			refused++
			continue
		}
		fmt.Fprintf(&text, "{\"a\":%d}\n", i)
		fmt.Fprintf(&want, " {\"a\":%d}", i)
	}
	f := func(batches int, behind bool) {
		t.Helper()
		r := newRig(t)
		r.write(text.String())
		r.wrapSpool = func(s Spool) Spool { return &broken{Spool: s, left: batches, behind: behind} }
		in, _ := r.make(r.cfg(), nil)
		if err := in.Run(context.Background()); !errors.Is(err, errCrash) {
			t.Fatalf("got %v", err)
		}
		r.wrapSpool = nil
		r.restart()
		r.run(r.cfg())
		r.want(r.bodies(), want.String()[1:])
		if got := r.refused(); len(got) != refused {
			t.Fatalf("%d refused lines, want %d", len(got), refused)
		}
	}
	for batches := range 4 {
		f(batches, false)
		f(batches, true)
	}
}

func TestFileStops(t *testing.T) {
	r := newRig(t)
	r.write(strings.Repeat("{}\n", 100))
	in, counts := r.make(r.cfg(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := in.Run(ctx); err != nil || counts.Captured.Load() != 0 {
		t.Fatalf("got %v, captured %d", err, counts.Captured.Load())
	}
	// A spool that is full answers only when ctx ends.
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	r.wrapSpool = func(s Spool) Spool { return full{s, cancel} }
	in, counts = r.make(r.cfg(), nil)
	if err := in.Run(ctx); err != nil || counts.Captured.Load() != 0 {
		t.Fatalf("got %v, captured %d", err, counts.Captured.Load())
	}
	r.wrapSpool = nil
	if n, _ := r.run(r.cfg()); n != 100 {
		t.Fatalf("captured %d", n)
	}
}

// full is a spool without room; asked is called when that is noticed.
type full struct {
	Spool
	asked func()
}

func (f full) Append(ctx context.Context, _ spool.Batch) (spool.Seq, error) {
	f.asked()
	<-ctx.Done()
	return 0, ctx.Err()
}

// cutting cuts the file when the first batch arrives, while more was to be read.
type cutting struct {
	Spool
	cut func()
}

func (c *cutting) Append(ctx context.Context, b spool.Batch) (spool.Seq, error) {
	if c.cut != nil {
		c.cut()
		c.cut = nil
	}
	return c.Spool.Append(ctx, b)
}

func TestCutWhileRead(t *testing.T) {
	r := newRig(t)
	r.write(strings.Repeat("{}\n", 1<<20))
	cut := make(chan struct{})
	r.wrapSpool = func(s Spool) Spool {
		return &cutting{s, func() {
			if err := os.Truncate(r.path(), 10); err != nil {
				t.Error(err)
			}
			close(cut)
		}}
	}
	if n, refused := r.run(r.cfg()); n < batchEvents || n == 1<<20 || refused != 0 {
		t.Fatalf("captured %d, refused %d", n, refused)
	}
	<-cut
	if !strings.Contains(r.log.String(), "file was cut while it was read") {
		t.Fatalf("no warning in %s", r.log)
	}
	r.wrapSpool = nil
	r.write("{\"a\":1}\n")
	if n, _ := r.run(r.cfg()); n != 1 {
		t.Fatalf("captured %d", n)
	}
}

func TestCounts(t *testing.T) {
	r := newRig(t)
	r.write(strings.Repeat("{\"a\":\"0123456789\"}\n", 100_000) + "bad\n")
	size, err := os.Stat(r.path())
	if err != nil {
		t.Fatal(err)
	}
	in, counts := r.make(r.cfg(), nil)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := in.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if c, f, b, n := counts.Captured.Load(), counts.Refused.Load(), counts.Bytes.Load(), counts.Total.Load(); c != 100_001 || f != 1 || int64(b) != n || n != size.Size() {
		t.Fatalf("captured %d, refused %d, bytes %d of %d", c, f, b, n)
	}
	r.append("{}\n")
	in, counts = r.make(r.cfg(), nil)
	if err := in.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if c, b, n := counts.Captured.Load(), counts.Bytes.Load(), counts.Total.Load(); c != 1 || int64(b) != n || n != size.Size()+3 {
		t.Fatalf("captured %d, bytes %d of %d", c, b, n)
	}
	if got := len(r.events()); got != 100_001 {
		t.Fatalf("%d events", got)
	}
}
