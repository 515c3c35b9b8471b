package input

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"edge/runtime/config"
	"edge/runtime/spool"
)

func (r *rig) stdinCfg() config.Input {
	cfg := r.cfg()
	cfg.Kind, cfg.Path = config.KindStdin, ""
	return cfg
}

func TestStdin(t *testing.T) {
	r := newRig(t)
	in, counts := r.make(r.stdinCfg(), strings.NewReader("\uFEFF{}\nbad\n\n{\"a\":1}"))
	if err := in.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.want(r.events(), []string{`stdin:1 - good - "" "" {}`, `stdin:4 - good - "" "" {"a":1}`})
	if got := r.refused(); len(got) != 1 || !strings.HasPrefix(got[0], `stdin:2 not_json "bad"; line 2, at byte 6: `) {
		t.Fatalf("got %q", got)
	}
	if c, b := counts.Captured.Load(), counts.Bytes.Load(); c != 3 || b != 18 {
		t.Fatalf("captured %d, bytes %d", c, b)
	}
	// The same again is the same again: a pipe has no position.
	in, _ = r.make(r.stdinCfg(), strings.NewReader("{}\n"))
	if err := in.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.want(r.bodies(), `{} {"a":1} {}`)
}

// told is a spool that tells what became durable.
type told struct {
	Spool
	records chan int
}

func (s told) Append(ctx context.Context, b spool.Batch) (spool.Seq, error) {
	seq, err := s.Spool.Append(ctx, b)
	s.records <- len(b.Records)
	return seq, err
}

// TestSlowProducer holds that a line does not wait for the next: the producer writes no second line before the first
// is durable.
func TestSlowProducer(t *testing.T) {
	f := func(stdin io.Reader, producer io.WriteCloser) {
		t.Helper()
		r := newRig(t)
		records := make(chan int, 16)
		r.wrapSpool = func(s Spool) Spool { return told{s, records} }
		in, _ := r.make(r.stdinCfg(), stdin)
		done := make(chan error, 1)
		go func() { done <- in.Run(context.Background()) }()
		for i := range 5 {
			if _, err := io.WriteString(producer, "{\"a\":1}\n{\"a\""); err != nil {
				t.Fatal(err)
			}
			select {
			case n := <-records:
				if n != 1 {
					t.Fatalf("line %d: %d events", i, n)
				}
			case <-time.After(bound):
				t.Fatalf("line %d waits for the next", i)
			}
			if _, err := io.WriteString(producer, ":2}\n"); err != nil {
				t.Fatal(err)
			}
			if n := <-records; n != 1 {
				t.Fatalf("line %d: %d events", i, n)
			}
		}
		if err := producer.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := len(r.events()); got != 10 {
			t.Fatalf("%d events", got)
		}
	}
	pr, pw := io.Pipe()
	f(pr, pw)
	fr, fw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer fr.Close()
	f(fr, fw)
}

// TestStdinStops holds that a silent pipe does not keep Run, that what was delivered is stored, and that no goroutine
// stays behind.
func TestStdinStops(t *testing.T) {
	r := newRig(t)
	before := runtime.NumGoroutine()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	records := make(chan int, 16)
	r.wrapSpool = func(s Spool) Spool { return told{s, records} }
	in, _ := r.make(r.stdinCfg(), pr)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	if _, err := io.WriteString(pw, "{}\n{\"half"); err != nil {
		t.Fatal(err)
	}
	<-records
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(bound):
		t.Fatal("Run does not end")
	}
	r.want(r.bodies(), "{}")
	if got := r.refused(); len(got) != 0 {
		t.Fatalf("the half line is in quarantine: %q", got)
	}
	for deadline := time.Now().Add(bound); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// stopping ends the run's context and then answers as a reader that was woken does.
type stopping struct {
	text io.Reader
	stop func()
}

func (s stopping) Read(b []byte) (int, error) {
	n, err := s.text.Read(b)
	if err != nil {
		s.stop()
	}
	return n, err
}

// TestWokenIsNoEnd holds that a half line is not taken for the last one when the reader was only woken. Which of both
// is noticed first is up to the scheduler, hence the repetition.
func TestWokenIsNoEnd(t *testing.T) {
	r := newRig(t)
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		in, _ := r.make(r.stdinCfg(), stopping{strings.NewReader("{\"half"), cancel})
		if err := in.Run(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if got := r.refused(); len(got) != 0 {
		t.Fatalf("a half line is in quarantine: %q", got)
	}
}

// TestStdinFails holds that a failing store ends Run although the producer is silent.
func TestStdinFails(t *testing.T) {
	r := newRig(t)
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	r.wrapSpool = func(s Spool) Spool { return &broken{Spool: s} }
	in, _ := r.make(r.stdinCfg(), pr)
	if _, err := io.WriteString(pw, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if err := in.Run(context.Background()); !errors.Is(err, errCrash) {
		t.Fatalf("got %v", err)
	}
}

// TestStdinFullSpool holds that Run gives up after grace, and says what is lost.
func TestStdinFullSpool(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.wrapSpool = func(s Spool) Spool { return full{s, cancel} }
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	in, counts := r.make(r.stdinCfg(), pr)
	if _, err := io.WriteString(pw, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if err := in.Run(ctx); !errors.Is(err, context.Canceled) || counts.Captured.Load() != 0 {
		t.Fatalf("got %v, captured %d", err, counts.Captured.Load())
	}
	if !strings.Contains(r.log.String(), "lines that were read are lost") {
		t.Fatalf("not told in %s", r.log)
	}
}

// failing is a reader that fails after some text.
type failing struct{ text io.Reader }

var errBroken = errors.New("broken pipe of a test")

func (f failing) Read(b []byte) (int, error) {
	n, err := f.text.Read(b)
	if err == io.EOF {
		err = errBroken
	}
	return n, err
}

func TestStdinBreaks(t *testing.T) {
	r := newRig(t)
	in, _ := r.make(r.stdinCfg(), failing{strings.NewReader("{}\n{\"half")})
	if err := in.Run(context.Background()); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "read stdin at byte 9") {
		t.Fatalf("got %v", err)
	}
	r.want(r.bodies(), "{}") // and not the half line
}

// TestStdinIsAFile is edge run < file, and edge run < /dev/null.
func TestStdinIsAFile(t *testing.T) {
	f := func(path string, want int) {
		t.Helper()
		r := newRig(t)
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		in, _ := r.make(r.stdinCfg(), file)
		if err := in.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := len(r.events()); got != want {
			t.Fatalf("%s: %d events, want %d", path, got, want)
		}
	}
	path := t.TempDir() + "/x"
	if err := os.WriteFile(path, []byte(strings.Repeat("{\"a\":\"0123456789\"}\n", 20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	f(path, 20_000)
	f(os.DevNull, 0)
}
