package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"edge/envelope"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
)

// chunkBytes is how much is read at once.
const chunkBytes = 128 << 10

// chunk is one result of Read.
type chunk struct {
	buf []byte
	n   int
	err error // io.EOF at the end
}

// run is one Run. Three goroutines work on it: one reads chunks, this one makes a batch of them, and one makes the
// batch before durable. All fields belong to the middle one.
//
// Invariant: pos is behind the last line that is in a batch; the unfinished line begins there.
type run struct {
	*Input
	key    string // under which the spool keeps pos; "" for stdin
	pos    position
	place  []byte // what this stream is called in the ids of refused lines
	eager  bool   // more may take for ever: hand over what there is as soon as the spool is free
	finish bool   // when ctx ends, store what was read
	shrunk func(read int64) bool

	trail trail  // of a file: up to the last line that is in a batch, or to the end of the last chunk
	ahead []byte // what follows the trail in the chunk that is being read

	split    splitter
	begun    bool // past the byte order mark
	now      time.Time
	filling  *batch
	resting  *batch
	inFlight bool
	done     chan error // of the batch in flight
	warned   bool
}

// loop reads r to its end or until ctx ends. store bounds what makes batches durable.
func (r *run) loop(ctx, store context.Context, src io.Reader) (err error) {
	r.split.max = r.cfg.MaxLine
	r.filling, r.resting, r.done = new(batch), new(batch), make(chan error, 1)
	chunks, free, stop := make(chan chunk), make(chan []byte, 2), make(chan struct{})
	free <- make([]byte, chunkBytes)
	free <- make([]byte, chunkBytes)
	readerDone := make(chan struct{})
	go func() {
		defer close(readerDone)
		readChunks(src, chunks, free, stop)
	}()
	defer func() {
		close(stop)
		if wake(src) || err == nil && ctx.Err() == nil {
			<-readerDone
		}
		if r.inFlight { // only after another error
			<-r.done
		}
	}()
	for {
		c, ok, err := r.wait(ctx, store, chunks)
		if err != nil {
			return err
		}
		if !ok {
			return r.interrupted(store)
		}
		r.deps.Counts.Bytes.Add(uint64(c.n))
		if err := r.feed(store, c.buf[:c.n]); err != nil {
			return r.failed(ctx, err)
		}
		switch {
		case ctx.Err() != nil: // io.EOF may only mean that the reader was woken
			return r.interrupted(store)
		case c.err == io.EOF:
			return r.failed(ctx, r.end(store))
		case c.err != nil:
			if err := r.flush(store); err != nil {
				return r.failed(ctx, err)
			}
			return r.failed(ctx, errors.Join(fmt.Errorf("read %s at byte %d: %w", r.capture.name, r.pos.offset+r.split.size, c.err), r.settle()))
		}
		free <- c.buf
	}
}

// readChunks reads until the end, an error or stop. Each chunk it sends brings a buffer that comes back by free.
func readChunks(src io.Reader, chunks chan<- chunk, free <-chan []byte, stop <-chan struct{}) {
	for {
		var buf []byte
		select {
		case buf = <-free:
		case <-stop:
			return
		}
		n, err := src.Read(buf)
		select {
		case chunks <- chunk{buf, n, err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// wake ends a Read of src that waits and tells whether it could: a file never waits long, and a polled one is woken.
func wake(src io.Reader) bool {
	switch src := src.(type) {
	case *io.SectionReader:
		return true
	case *polled:
		return src.wake()
	}
	return false
}

// wait returns the next chunk; ok is false when ctx has ended. While there is none, an eager run hands over what it
// has, as soon as the batch before is durable.
func (r *run) wait(ctx, store context.Context, chunks <-chan chunk) (c chunk, ok bool, err error) {
	for {
		if ctx.Err() != nil {
			return c, false, nil
		}
		if r.eager && r.filling.lines() > 0 && !r.inFlight {
			select {
			case c = <-chunks:
				return c, true, nil
			default:
				r.submit(store)
			}
		}
		var done chan error
		if r.inFlight {
			done = r.done
		}
		select {
		case c = <-chunks:
			return c, true, nil
		case err := <-done:
			r.inFlight = false
			if err != nil {
				return c, false, r.failed(ctx, err)
			}
		case <-ctx.Done():
			return c, false, nil
		}
	}
}

// feed makes events of the lines that end in b.
func (r *run) feed(store context.Context, b []byte) error {
	r.now = r.deps.Now()
	r.ahead = b
	for len(b) > 0 {
		l, rest, ok := r.split.next(b)
		b = rest
		if !ok {
			break
		}
		if err := r.line(store, l); err != nil {
			return err
		}
	}
	if r.key != "" {
		r.mark()
		r.trail.pass(r.ahead) // of the unfinished line
	}
	r.ahead = nil
	return nil
}

// mark gives the position of the batch being filled the hashes of what was read before it. If the trail is past the
// position, no line ended since the last chunk did, and then it has them.
func (r *run) mark() {
	n := r.pos.offset - r.trail.at
	if n < 0 {
		return
	}
	r.trail.pass(r.ahead[:n])
	r.ahead = r.ahead[n:]
	r.trail.mark(&r.pos)
	r.filling.pos = r.pos
}

// line adds one line to the batch, and hands the batch over when it is full.
func (r *run) line(store context.Context, l line) error {
	if !r.begun && r.pos.offset == 0 && len(l.text) >= 3 && string(l.text[:3]) == "\uFEFF" {
		l.text = l.text[3:]
	}
	r.begun = true
	at := r.pos.offset
	r.pos.offset += l.size
	if !r.pos.open { // else this is the rest of a line that was read as far as it was there, or only its line break
		r.pos.line++
	}
	r.pos.open = !l.ended
	b := r.filling
	b.pos, b.moved = r.pos, true
	if !l.cut && r.capture.empty(l.text) {
		return nil
	}
	if e, err := r.capture.read(l, r.pos.line, r.now); err != nil {
		r.refuse(l, at, err)
	} else {
		b.add(e)
	}
	if b.full() {
		return r.flush(store)
	}
	return nil
}

// refuse adds a line that is no event to the batch.
func (r *run) refuse(l line, at int64, cause error) {
	code, detail := reason(cause)
	detail = fmt.Sprintf("line %d, at byte %d: %s", r.pos.line, at, detail)
	raw := l.text
	if l.cut {
		detail += fmt.Sprintf("; only its first %d bytes of %d are kept", len(raw), l.size)
	}
	id := envelope.HashID(r.capture.scope, fmt.Appendf(nil, "%s@%d %s", r.place, at, raw))
	e := quarantine.Entry{
		Time: r.now, ID: id, Input: r.cfg.ID, Source: string(r.capture.appendSource(nil, r.pos.line)), Dataset: string(r.capture.dataset),
		EventTime: envelope.NoTime, Kind: envelope.Raw, Reason: code, Detail: detail, Raw: append([]byte(nil), raw...),
	}
	r.filling.refuse(e)
	if !r.warned {
		r.warned = true
		r.log.Warn("line refused, it is in quarantine; more of them are not logged", "source", e.Source, "reason", code, "detail", detail)
	}
}

// flush hands the batch over once the one before is durable.
func (r *run) flush(store context.Context) error {
	if r.key != "" {
		r.mark()
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.submit(store)
	return nil
}

// settle waits for the batch in flight.
func (r *run) settle() error {
	if !r.inFlight {
		return nil
	}
	err := <-r.done
	r.inFlight = false
	return err
}

// submit starts making the batch durable. None may be in flight. The goroutine ends with its answer in done, which
// loop takes before it returns.
func (r *run) submit(store context.Context) {
	b := r.filling
	if !b.moved {
		return
	}
	r.filling, r.resting = r.resting, b
	r.filling.reset()
	r.inFlight = true
	go func() { r.done <- r.commit(store, b, r.key) }()
}

// commit makes a batch durable: what is refused first, because the position moves with the events.
func (in *Input) commit(ctx context.Context, b *batch, key string) error {
	if len(b.refused) > 0 {
		if _, err := in.deps.Quarantine.Put(b.refused); err != nil {
			return fmt.Errorf("quarantine a refused line: %w", err)
		}
	}
	batch := spool.Batch{Records: b.cut()}
	if key != "" {
		batch.Offset = spool.Offset{Key: key, Value: b.pos.append(nil)}
	}
	if len(batch.Records) > 0 || key != "" {
		if _, err := in.deps.Spool.Append(ctx, batch); err != nil {
			return fmt.Errorf("store what was read: %w", err)
		}
	}
	in.deps.Counts.Refused.Add(uint64(len(b.refused)))
	in.deps.Counts.Captured.Add(uint64(b.lines()))
	return nil
}

// end takes what follows the last line break as a line and makes everything durable.
func (r *run) end(store context.Context) error {
	if read := r.pos.offset + r.split.size; r.shrunk != nil && r.shrunk(read) {
		r.log.Warn("file was cut while it was read: it is read from its beginning the next time", "path", r.cfg.Path, "byte", read)
		r.split.drop() // its end is not there any more
	}
	if l, ok := r.split.last(); ok {
		if err := r.line(store, l); err != nil {
			return err
		}
	}
	if err := r.flush(store); err != nil {
		return err
	}
	return r.settle()
}

// interrupted ends a run whose ctx has ended.
func (r *run) interrupted(store context.Context) error {
	if !r.finish {
		if err := r.settle(); err != nil && store.Err() == nil {
			return err
		}
		return nil
	}
	lines := r.filling.lines()
	err := r.flush(store)
	if err == nil {
		lines = 0
		err = r.settle()
	}
	if r.split.size > 0 {
		r.log.Warn("stopped within a line: its beginning is dropped", "bytes", r.split.size)
	}
	if err != nil {
		r.log.Error("stopped before everything was stored: lines that were read are lost", "lines", lines, "cause", err)
	}
	return err
}

// failed hides an error that is only the end of ctx, unless it means that lines are lost.
func (r *run) failed(ctx context.Context, err error) error {
	if err != nil && !r.finish && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
