package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"edge/envelope"
	"edge/publisher"
)

// Bounds of the caller's behaviour.
const (
	maxWrites   = 2   // Writes at once
	maxDelivers = 4   // Delivers at once
	maxWrite    = 150 // messages in a Write
	maxBroken   = 10  // broken promises after which a lane gives up
)

// lane is the caller: it brings every event to its end. One goroutine owns it but for what says otherwise.
//
// Invariant: flight is the number of events with an open attempt, len(tags) of them by Send.
type lane struct {
	plan    *plan
	life    *life
	newLife func() (*life, error)
	dice    *rand.Rand
	broken  []string // promises that were not kept

	first   int          // the next event without an attempt
	todo    []int        // events to be sent again, in the order of their answers
	flight  atomic.Int64 // read by the schedule
	writes  int
	deliver int
	tags    map[uint64]int // of attempts by Send: their event
	tag     uint64
	calls   chan call
	callers sync.WaitGroup

	// The gate: after an answer that was no yes, nothing goes out before until, and then one at a time.
	narrow bool
	rounds int
	until  time.Time

	reborn  chan struct{} // the schedule asks for a new Publisher
	moved   chan struct{} // one place: settled has changed
	allow   atomic.Int64  // events before this one may start; set by the schedule
	settled atomic.Int64
	armed   atomic.Bool   // the schedule waits for loaded
	loaded  chan struct{} // one place: what may start has started
	total   tally
	extra   uint64 // acknowledgements of what was acknowledged
}

// call is what a Write or Deliver came to.
type call struct {
	life    *life
	events  []int
	results []publisher.Result
	batch   publisher.Batch
	err     error // of a Write
	ended   bool  // its context had a time limit
	deliver bool
}

func newLane(p *plan, newLife func() (*life, error)) *lane {
	return &lane{plan: p, newLife: newLife, dice: rand.New(rand.NewPCG(p.seed, 0x6c616e65)), tags: make(map[uint64]int),
		calls: make(chan call, maxWrites+maxDelivers), reborn: make(chan struct{}, 1), moved: make(chan struct{}, 1), loaded: make(chan struct{}, 1)}
}

// run brings every event to its end. It returns early if ctx ends or too many promises are broken. All it has
// started has ended then, the last Publisher too.
func (l *lane) run(ctx context.Context) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer l.callers.Wait()
	defer stop()
	if l.life, err = l.newLife(); err != nil {
		return err
	}
	defer l.end()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for int(l.settled.Load()) < len(l.plan.events) {
		armed := l.armed.Load()
		if l.offer(ctx); armed && l.flight.Load() > 0 && l.armed.CompareAndSwap(true, false) {
			l.loaded <- struct{}{}
		}
		select {
		case r := <-l.life.p.Results():
			l.answer(r)
		case c := <-l.calls:
			l.called(c)
		case <-l.reborn:
			l.end()
			next, err := l.newLife()
			if err != nil {
				return err
			}
			l.life = next
		case <-l.life.p.Changed():
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d events have ended: %w: %+v", l.settled.Load(), len(l.plan.events), ctx.Err(), l.life.p.Status())
		}
		if len(l.broken) >= maxBroken {
			return errors.New("too many broken promises")
		}
	}
	return nil
}

// offer sends what the gate and the plan let through.
func (l *lane) offer(ctx context.Context) {
	for !time.Now().Before(l.until) {
		// A few more than the window has, so that it is full at times.
		room := l.plan.window + 8 - int(l.flight.Load())
		if l.narrow {
			room = 1 - int(l.flight.Load())
		}
		i, ok := l.peek()
		if !ok || room <= 0 || !l.launch(ctx, i, room) {
			return
		}
	}
}

// peek is the event whose turn it is.
func (l *lane) peek() (int, bool) {
	if len(l.todo) > 0 {
		return l.todo[0], true
	}
	return l.first, l.first < int(l.allow.Load())
}

// start notes that the event from peek has an open attempt.
func (l *lane) start(i int) {
	if len(l.todo) > 0 {
		l.todo = l.todo[1:]
	} else {
		l.first++
	}
	l.plan.events[i].open = true
	l.flight.Add(1)
}

// launch begins an attempt of event i, of several events if it goes by Write. false means that it must wait.
func (l *lane) launch(ctx context.Context, i, room int) bool {
	switch l.plan.events[i].way {
	case byWrite:
		return l.launchWrite(ctx, room)
	case byDeliver:
		return l.launchDeliver(ctx)
	}
	err := l.life.p.Send(&l.plan.events[i].msg, l.tag)
	switch {
	case err == nil:
		l.start(i)
		l.tags[l.tag] = i
		l.tag++
		return true
	case errors.Is(err, publisher.ErrFull) && len(l.tags) == 0:
		l.breaks(i, errors.New("Send is full although no Result is outstanding"))
	case !errors.Is(err, publisher.ErrFull) && !errors.Is(err, publisher.ErrNotReady):
		l.breaks(i, fmt.Errorf("Send: %w", err))
	}
	return false
}

func (l *lane) launchWrite(ctx context.Context, room int) bool {
	if l.writes >= maxWrites {
		return false
	}
	most := min(room, 1+l.dice.IntN(maxWrite))
	c := call{life: l.life}
	var msgs []envelope.Message
	for len(msgs) < most {
		i, ok := l.peek()
		if !ok || l.plan.events[i].way != byWrite {
			break
		}
		l.start(i)
		c.events, msgs = append(c.events, i), append(msgs, l.plan.events[i].msg)
	}
	l.writes++
	patience := time.Duration(0)
	if l.dice.IntN(4) == 0 {
		patience, c.ended = time.Duration(l.dice.IntN(20_000))*time.Microsecond, true
	}
	l.callers.Go(func() {
		if c.ended {
			short, stop := context.WithTimeout(ctx, patience)
			defer stop()
			ctx = short
		}
		c.results = make([]publisher.Result, len(msgs))
		c.batch, c.err = c.life.p.Write(ctx, msgs, c.results)
		l.calls <- c
	})
	return true
}

func (l *lane) launchDeliver(ctx context.Context) bool {
	if l.deliver >= maxDelivers {
		return false
	}
	i, _ := l.peek()
	l.start(i)
	l.deliver++
	c := call{life: l.life, events: []int{i}, deliver: true}
	l.callers.Go(func() {
		c.results = []publisher.Result{c.life.p.Deliver(ctx, &l.plan.events[i].msg)}
		l.calls <- c
	})
	return true
}

// answer takes a Result of Send.
func (l *lane) answer(r publisher.Result) {
	i, ok := l.tags[r.Tag]
	if !ok {
		l.broken = append(l.broken, fmt.Sprintf("a result for tag %d, which is not outstanding: %+v", r.Tag, r))
		return
	}
	delete(l.tags, r.Tag)
	l.life.tally.add(&r)
	l.total.add(&r)
	l.take(i, r)
}

// called takes what a Write or Deliver came to.
func (l *lane) called(c call) {
	if c.deliver {
		l.deliver--
	} else {
		l.writes--
		if err := c.check(l.plan); err != nil {
			l.breaks(c.events[0], err)
		}
	}
	for k, i := range c.events {
		c.life.tally.add(&c.results[k])
		l.total.add(&c.results[k])
		l.take(i, c.results[k])
	}
}

// check holds what Write says of the batch against what it says of the messages.
func (c *call) check(p *plan) error {
	var msgs []envelope.Message
	var count [publisher.Fatal + 1]int
	duplicates := 0
	for k, i := range c.events {
		r := &c.results[k]
		if r.Tag != uint64(k) || r.Outcome < publisher.Accepted || r.Outcome > publisher.Fatal {
			return fmt.Errorf("Write left result %d as %+v", k, *r)
		}
		count[r.Outcome]++
		if r.Duplicate {
			duplicates++
		}
		msgs = append(msgs, p.events[i].msg)
	}
	want := publisher.Batch{ID: publisher.BatchID(p.stream, msgs), Accepted: count[publisher.Accepted], Duplicates: duplicates,
		Retryable: count[publisher.Retryable], Unknown: count[publisher.Unknown], Permanent: count[publisher.Permanent], Fatal: count[publisher.Fatal]}
	if c.batch != want {
		return fmt.Errorf("Write says %+v of %+v", c.batch, want)
	}
	if errors.Is(c.err, context.DeadlineExceeded) && !c.ended {
		return fmt.Errorf("Write ended by itself: %w", c.err)
	}
	return nil
}

// take gives event i the result of its attempt, and the gate its lesson.
func (l *lane) take(i int, r publisher.Result) {
	e := &l.plan.events[i]
	l.flight.Add(-1)
	if err := e.settle(r, l.plan.lowers, l.plan.mode == publisher.ModeSingle); err != nil {
		l.breaks(i, err)
	}
	switch r.Outcome {
	case publisher.Accepted:
		l.narrow, l.rounds = false, 0
	case publisher.Retryable, publisher.Unknown, publisher.Fatal:
		if !l.narrow || l.flight.Load() == 0 {
			l.narrow = true
			l.rounds = min(l.rounds+1, 6)
			l.until = time.Now().Add(time.Duration(5+l.dice.IntN(10)) * time.Millisecond << l.rounds)
		}
	}
	if e.fate != open {
		l.settled.Add(1)
		l.move()
		return
	}
	if l.dice.IntN(4) == 0 {
		e.way = bySend
	}
	l.todo = append(l.todo, i)
}

// end stops the Publisher and takes what is left of it: for each message that was in flight its Result.
func (l *lane) end() {
	l.life.stop()
	for {
		select {
		case r := <-l.life.p.Results():
			l.answer(r)
			continue
		default:
		}
		break
	}
	for tag, i := range l.tags {
		l.breaks(i, fmt.Errorf("tag %d has no result after the end of Run", tag))
	}
	clear(l.tags)
	for l.writes+l.deliver > 0 {
		l.called(<-l.calls)
	}
	if s := l.life.p.Status(); s.Pending != 0 || s.PendingBytes != 0 || s.State != publisher.Disconnected {
		l.broken = append(l.broken, fmt.Sprintf("after the end of Run: %+v", s))
	} else if err := l.life.tally.check(&s.Counters, l.plan.cluster); err != nil {
		l.broken = append(l.broken, err.Error())
	} else {
		l.extra += s.Counters.ExtraAcks
	}
}

// breaks notes a promise that was not kept to event i.
func (l *lane) breaks(i int, err error) {
	l.broken = append(l.broken, fmt.Sprintf("event %d: %v: %s", i, err, l.plan.events[i].tell()))
}

// move tells the schedule that settled has changed.
func (l *lane) move() {
	select {
	case l.moved <- struct{}{}:
	default:
	}
}
