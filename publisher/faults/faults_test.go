package faults

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher"
)

// What runs without flags: every kind of fault, topology and mode, see TestPlan, in about a minute.
const (
	defaultSeeds  = 6
	defaultEvents = 2000
)

var (
	seeds  = flag.Int("faults.seeds", defaultSeeds, "number of schedules")
	first  = flag.Uint64("faults.first", 1, "seed of the first schedule")
	events = flag.Int("faults.events", defaultEvents, "events of a schedule")
)

// scheduleTime bounds one schedule. Who needs as much hangs.
const scheduleTime = 4 * time.Minute

// TestSchedules runs the schedules. See the package's comment for what it holds.
func TestSchedules(t *testing.T) {
	ws := &worlds{t: t, free: make(map[bool][]*world)}
	for i := range uint64(*seeds) {
		p := newPlan(*first+i, *events)
		t.Run(fmt.Sprintf("seed=%d", p.seed), func(t *testing.T) {
			t.Parallel()
			t.Log(p)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to repeat: go test ./publisher/faults -run TestSchedules -v -faults.seeds 1 -faults.first %d -faults.events %d", p.seed, len(p.events))
				}
			})
			w := ws.take(p.cluster)
			runSchedule(t, p, w)
			if !t.Failed() {
				ws.give(w)
			}
		})
	}
}

// schedule is one plan at work. It belongs to the goroutine of its test; the lane has one of its own.
type schedule struct {
	t      *testing.T
	plan   *plan
	world  *world
	lane   *lane
	ctx    context.Context // ends with the lane
	nc     *nats.Conn      // independent of what is tested
	js     jetstream.JetStream
	stream jetstream.Stream
	eaten  int // acknowledgements
}

// runSchedule lets the lane work and inflicts the faults, and looks at the stream when both have ended.
func runSchedule(t *testing.T, p *plan, w *world) {
	s := &schedule{t: t, plan: p, world: w}
	ctx, stop := context.WithTimeout(t.Context(), scheduleTime)
	defer stop()
	s.prepare(ctx)

	s.lane = newLane(p, s.newLife)
	inflicting, over := context.WithCancel(ctx)
	s.ctx = inflicting
	ended := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() {
		defer over()
		ended <- s.lane.run(ctx)
	})
	defer work.Wait()
	defer stop() // first, if the test ends in the middle

	var flights []int64 // at each fault
	for i, f := range p.faults {
		if !s.await(f.at) {
			t.Errorf("the caller ended before fault %d", i)
			break
		}
		flights = append(flights, s.lane.flight.Load())
		if err := s.inflict(f); err != nil {
			t.Errorf("fault %d, %s: %v", i, f.kind, err)
			stop()
		}
	}
	s.lane.allow.Store(int64(len(p.events)))
	if err := <-ended; err != nil {
		t.Errorf("the caller has not come to its end: %v\n%s", err, stacks())
	}
	work.Wait()
	for _, text := range s.lane.broken {
		t.Error(text)
	}
	s.noGoroutines()
	if s.eaten > 0 && p.mode == publisher.ModeSingle && s.lane.total.duplicates+s.lane.total.cancelled == 0 {
		t.Errorf("%d acknowledgements were eaten, and nothing was a duplicate", s.eaten)
	}
	s.compare(t.Context())
	t.Logf("%d acknowledgements eaten, %d in flight at each fault; results %v of none, accepted, retryable, unknown, permanent, fatal; %d duplicates, %d cancelled, %d acknowledged twice",
		s.eaten, flights, s.lane.total.outcome, s.lane.total.duplicates, s.lane.total.cancelled, s.lane.extra)
	if err := s.js.DeleteStream(t.Context(), p.stream); err != nil {
		t.Errorf("delete the stream: %v", err)
	}
	s.nc.Close()
	if p.always && !t.Failed() {
		w.restart("2m")
	}
}

// prepare connects and makes the stream.
func (s *schedule) prepare(ctx context.Context) {
	w, t := s.world, s.t
	if s.plan.always {
		w.restart("always")
	}
	if w.cluster != nil {
		w.cluster.Ready(t)
	}
	s.nc = w.connect(t)
	var err error
	if s.js, err = jetstream.New(s.nc); err != nil {
		t.Fatal(err)
	}
	err = insist(ctx, "make the stream", func(ctx context.Context) error {
		s.stream, err = s.js.CreateStream(ctx, s.config())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// config is the stream's configuration.
func (s *schedule) config() jetstream.StreamConfig {
	m := s.plan.mode
	return jetstream.StreamConfig{
		Name: s.plan.stream, Subjects: []string{fmt.Sprintf("faults%d.>", s.plan.seed)}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		Replicas: len(s.world.servers), Duplicates: time.Hour, MaxMsgs: -1, MaxMsgSize: streamLimit,
		AllowAtomicPublish: m == publisher.ModeAtomic || m == publisher.ModeAuto,
		AllowBatchPublish:  m == publisher.ModeFast || m == publisher.ModeAuto,
	}
}

// await waits until so many events are settled, and then until the lane has started what it can of the plan's slack of
// further ones. false means that the lane has ended before.
func (s *schedule) await(settled int) bool {
	slack := s.plan.slack()
	s.lane.allow.Store(max(int64(settled), s.lane.settled.Load()) + int64(slack/4))
	for s.lane.settled.Load() < int64(settled) {
		select {
		case <-s.lane.moved:
		case <-s.ctx.Done():
			return false
		}
	}
	s.lane.allow.Store(s.lane.settled.Load() + int64(slack))
	s.lane.armed.Store(true)
	select {
	case <-s.lane.loaded:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// life is one Publisher from New to the end of Run.
type life struct {
	p     *publisher.Publisher
	stop  func() // ends Run and waits for it
	tally tally
}

// newLife starts a Publisher. Its goroutines carry the seed as a label.
func (s *schedule) newLife() (*life, error) {
	cfg := publisher.Config{
		URL: s.world.proxy.URL(), Token: s.world.servers[0].Token(), Name: "faults", Stream: s.plan.stream, Subjects: []string{fmt.Sprintf("faults%d.>", s.plan.seed)},
		Mode: s.plan.mode, RequestTimeout: s.plan.timeout, MaxInFlight: s.plan.window, MaxInFlightBytes: s.plan.bytes,
		Logger: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
	}
	if s.plan.direct {
		cfg.URL = s.world.cluster.URL()
	}
	p, err := publisher.New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go pprof.Do(ctx, pprof.Labels("faults", strconv.FormatUint(s.plan.seed, 10)), func(ctx context.Context) {
		defer close(done)
		p.Run(ctx)
	})
	return &life{p: p, stop: func() {
		cancel()
		<-done
	}}, nil
}

// noGoroutines waits until nothing is left that a Publisher of this schedule has started, the client library included.
func (s *schedule) noGoroutines() {
	label := fmt.Appendf(nil, `"faults":"%d"`, s.plan.seed)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var b bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			s.t.Errorf("list goroutines: %v", err)
			return
		}
		if !bytes.Contains(b.Bytes(), label) {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("goroutines stay after Run:\n%s", b.Bytes())
			return
		}
	}
}

// compare holds what the stream has against what the Results said.
func (s *schedule) compare(ctx context.Context) {
	all, err := read(ctx, s.js, s.plan.stream, len(s.world.servers))
	if err != nil {
		s.t.Error(err)
		return
	}
	errs := judge(s.plan, all)
	for _, err := range errs[:min(len(errs), maxBroken)] {
		s.t.Error(err)
	}
	if len(errs) > maxBroken {
		s.t.Errorf("and %d more", len(errs)-maxBroken)
	}
}

func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}
