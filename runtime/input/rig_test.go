package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edge/envelope"
	"edge/runtime/config"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
)

// bound is far beyond what anything here takes: a test that reaches it hangs.
const bound = 60 * time.Second

var (
	ingest = time.Date(2026, 10, 10, 6, 0, 0, 1, time.UTC)
	imu    = config.Dataset{Name: "imu", Identity: []string{"site", "robot"}}
)

// rig is a real spool and a real quarantine with an input's file beside them.
type rig struct {
	t     *testing.T
	dir   string
	spool *spool.Spool
	quar  *quarantine.Store
	log   *strings.Builder
	agent string
	stop  func()
	// what goes between the input and them, if anything
	wrapSpool func(Spool) Spool
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), log: new(strings.Builder), agent: "r7.lab"}
	r.open()
	t.Cleanup(func() { r.stop() })
	return r
}

// open opens the stores and runs the committer, as the agent does.
func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.spool, err = spool.Open(filepath.Join(r.dir, "spool"), spool.Options{Sinks: []string{"sink"}}); err != nil {
		r.t.Fatal(err)
	}
	if r.quar, err = quarantine.Open(filepath.Join(r.dir, "quarantine"), quarantine.Options{}); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.spool.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("spool: %v", err)
		}
		if err := errors.Join(r.spool.Close(), r.quar.Close()); err != nil {
			r.t.Errorf("close: %v", err)
		}
		r.stop = func() {}
	}
}

// restart is what a new process would find.
func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.open()
}

func (r *rig) path() string { return filepath.Join(r.dir, "imu.ndjson") }

func (r *rig) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) append(text string) {
	r.t.Helper()
	f, err := os.OpenFile(r.path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) cfg() config.Input {
	return config.Input{ID: "in", Kind: config.KindFile, Path: r.path(), Dataset: "imu", Format: config.FormatJSON, MaxLine: 1024,
		Map: config.Map{ID: "/id", Time: "/ts", Quality: "/q", Identity: map[string]string{"site": "/site", "robot": "/robot"}}}
}

func (r *rig) make(cfg config.Input, stdin io.Reader) (*Input, *Counts) {
	r.t.Helper()
	var s Spool = r.spool
	if r.wrapSpool != nil {
		s = r.wrapSpool(s)
	}
	counts := new(Counts)
	in, err := New(cfg, imu, Deps{Agent: r.agent, Spool: s, Quarantine: r.quar, Stdin: stdin, Now: func() time.Time { return ingest }, Counts: counts,
		Logger: slog.New(slog.NewTextHandler(r.log, nil))})
	if err != nil {
		r.t.Fatal(err)
	}
	return in, counts
}

// run reads to the end and returns what was counted.
func (r *rig) run(cfg config.Input) (captured, refused int) {
	r.t.Helper()
	in, counts := r.make(cfg, nil)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := in.Run(ctx); err != nil {
		r.t.Fatal(err)
	}
	if ctx.Err() != nil {
		r.t.Fatal("hangs")
	}
	return int(counts.Captured.Load()), int(counts.Refused.Load())
}

// events returns everything that is in the spool, one event a line: source id quality time site robot body.
func (r *rig) events() (out []string) {
	r.t.Helper()
	rd, err := r.spool.Reader("sink")
	if err != nil {
		r.t.Fatal(err)
	}
	var (
		b spool.Block
		e envelope.Event
	)
	for {
		n, err := rd.Read(&b, 1000, 1<<20)
		if err != nil {
			r.t.Fatal(err)
		}
		if n == 0 {
			return out
		}
		for _, rec := range b.Records {
			if err := envelope.ParseEvent(rec, &e); err != nil {
				r.t.Fatal(err)
			}
			if string(e.Dataset) != "imu" || string(e.Input) != "in" || e.IngestTime != ingest.UnixNano() {
				r.t.Fatalf("got %+v", e)
			}
			id, at := "-", "-"
			if e.ID != (envelope.ID{}) {
				id = e.ID.String()[:4]
			}
			if e.EventTime != envelope.NoTime {
				at = fmt.Sprint(e.EventTime)
			}
			site, _ := e.Level("site")
			robot, _ := e.Level("robot")
			out = append(out, fmt.Sprintf("%s %s %s %s %q %q %s", e.Source, id, e.Quality, at, site, robot, e.Body))
		}
	}
}

// bodies returns the bodies of events.
func (r *rig) bodies() string {
	r.t.Helper()
	var b []string
	for _, e := range r.events() {
		_, body, _ := strings.Cut(e, `" `) // behind the site
		_, body, _ = strings.Cut(body, `" `)
		b = append(b, body)
	}
	return strings.Join(b, " ")
}

// refused returns what is in quarantine, one entry a line: source reason raw; detail.
func (r *rig) refused() (out []string) {
	r.t.Helper()
	_, err := quarantine.Scan(filepath.Join(r.dir, "quarantine"), func(e *quarantine.Entry) bool {
		if e.Input != "in" || e.Dataset != "imu" || e.Sink != "" || e.ID == (envelope.ID{}) || e.EventTime != envelope.NoTime {
			r.t.Fatalf("got %+v", e)
		}
		out = append(out, fmt.Sprintf("%s %s %q; %s", e.Source, e.Reason, e.Raw, e.Detail))
		return true
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) want(got, want any) {
	r.t.Helper()
	if g, w := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); g != w {
		r.t.Fatalf("got  %s\nwant %s", g, w)
	}
}
