package input

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"edge/runtime/config"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
)

// Spool is what an input needs of the spool. Append returns when the batch is durable, and then has forgotten its
// slices.
type Spool interface {
	Append(ctx context.Context, b spool.Batch) (spool.Seq, error)
	Offset(key string) ([]byte, error)
}

// Quarantine keeps what is no event. Put returns when the entries are durable; a repeated one is not kept again.
type Quarantine interface {
	Put(entries []quarantine.Entry) (added int, err error)
}

// Deps is what an input works with. All but Stdin are needed.
type Deps struct {
	Agent      string // its id: a part of the ids that are made here
	Spool      Spool
	Quarantine Quarantine
	Stdin      io.Reader // for an input of that kind
	Now        func() time.Time
	Logger     *slog.Logger
	Counts     *Counts
}

// Counts is what an input has done so far, for whoever looks on.
type Counts struct {
	Captured atomic.Uint64 // events that are durable, in the spool or refused and in quarantine
	Refused  atomic.Uint64 // of Captured: lines that were no event
	Bytes    atomic.Uint64 // read; in a file, the position, so what an earlier run read is included
	Total    atomic.Int64  // bytes of the file; 0 if there is none
}

// Input is one configured source of events. Run may be called once.
type Input struct {
	cfg     config.Input
	deps    Deps
	log     *slog.Logger
	capture *capture
}

// New makes an input and checks that its file can be read. The dataset is the one that cfg names.
func New(cfg config.Input, ds config.Dataset, deps Deps) (*Input, error) {
	name := "stdin"
	switch cfg.Kind {
	case config.KindStdin:
		if deps.Stdin == nil {
			return nil, fmt.Errorf("open input %s: there is no standard input here", cfg.ID)
		}
	case config.KindFile:
		name = filepath.Base(cfg.Path)
		f, _, err := openFile(cfg.Path)
		if err != nil {
			return nil, fmt.Errorf("open input %s: %w", cfg.ID, err)
		}
		f.Close()
	default:
		return nil, fmt.Errorf("open input %s: unknown kind %q", cfg.ID, cfg.Kind)
	}
	c, err := newCapture(cfg, ds, deps.Agent, name)
	if err != nil {
		return nil, fmt.Errorf("open input %s: %w", cfg.ID, err)
	}
	return &Input{cfg: cfg, deps: deps, log: deps.Logger.With("input", cfg.ID), capture: c}, nil
}

// Run reads to the end, or until ctx ends, and returns when everything it read is durable. The end of ctx is no
// error: a file's position is kept; what stdin has delivered is still stored if that takes no longer than grace.
//
// On systems with poll, Run interrupts an *os.File that is waiting. Another reader, or any on Windows, is left with
// the one goroutine that waits in Read, until Read returns.
func (in *Input) Run(ctx context.Context) error {
	if in.cfg.Kind == config.KindStdin {
		return in.runStdin(ctx)
	}
	return in.runFile(ctx)
}

// grace is how long Run goes on storing what stdin delivered before ctx ended.
const grace = 2 * time.Second

func (in *Input) runStdin(ctx context.Context) error {
	store, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cut) })()
	var read io.Reader = in.deps.Stdin
	if f, ok := read.(*os.File); ok {
		p, err := newPolled(f)
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
		defer p.close()
		defer context.AfterFunc(ctx, func() { p.wake() })()
		read = p
	}
	r := &run{Input: in, eager: true, finish: true}
	// Nothing of a pipe can be read again, so a refused line needs an id of this run.
	r.place = fmt.Appendf(nil, "stdin %d %d", os.Getpid(), in.deps.Now().UnixNano())
	return r.loop(ctx, store, read)
}

func (in *Input) runFile(ctx context.Context) error {
	f, info, err := openFile(in.cfg.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	key := "file/" + in.cfg.ID
	stored, err := in.deps.Spool.Offset(key)
	if err != nil {
		return fmt.Errorf("look up the position in %s: %w", in.cfg.Path, err)
	}
	pos, trail, why, err := resume(stored, f, info)
	if err != nil {
		return fmt.Errorf("look up the position in %s: %w", in.cfg.Path, err)
	}
	switch {
	case why != "":
		in.log.Warn("file is read from its beginning", "path", in.cfg.Path, "cause", why)
	case pos.offset > 0:
		in.log.Debug("file goes on", "path", in.cfg.Path, "byte", pos.offset, "line", pos.line)
	}
	in.deps.Counts.Total.Store(info.Size())
	in.deps.Counts.Bytes.Store(uint64(pos.offset))
	r := &run{Input: in, key: key, pos: pos, place: pos.place(), trail: trail}
	r.shrunk = func(read int64) bool {
		now, err := f.Stat()
		return err == nil && now.Size() < read
	}
	return r.loop(ctx, ctx, io.NewSectionReader(f, pos.offset, 1<<62-pos.offset))
}

// openFile opens a regular file.
func openFile(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path) // first: opening a pipe waits for its writer
	if err != nil {
		return nil, nil, err
	}
	switch {
	case info.IsDir():
		return nil, nil, fmt.Errorf("%s is a folder: name one file", path)
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a regular file: for a pipe, use kind: stdin and < %s", path, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
