package faults

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"edge/envelope"
	"edge/publisher"
)

// kind is what a fault does.
type kind string

const (
	kill    kind = "kill"         // kill -9, and a new start later; in a cluster any server
	pause   kind = "pause"        // the server stands still; in a cluster the stream's leader
	cut     kind = "cut"          // every connection breaks
	eat     kind = "eat"          // acknowledgements of stored messages do not arrive
	refuse  kind = "refuse"       // cut, and no new connection for a while
	stall   kind = "stall"        // connections stay and carry nothing
	delay   kind = "delay"        // answers take longer
	payload kind = "max_payload"  // the server takes less, and says nothing of it
	edit    kind = "max_msg_size" // the stream takes less
	full    kind = "full"         // the stream is full
	renew   kind = "renew"        // the caller ends Run and goes on with another Publisher
	depose  kind = "step_down"    // the stream's leader steps down
	behead  kind = "leader_kill"  // it is killed
)

// fault is one entry of a schedule.
type fault struct {
	kind kind
	at   int           // settled events
	hold time.Duration // how long it lasts
	n    int           // eat: acknowledgements; kill: which server
	mid  kind          // another one in the middle of it: cut, kill or renew; "" for none
}

// Sizes in bytes. What is sound has at most soundSize; large is refused while a limit is lowered; nothing over
// streamLimit is ever taken.
const (
	soundSize    = 2 << 10
	largeSize    = 20 << 10
	loweredLimit = 16 << 10
	streamLimit  = 64 << 10
	serverLimit  = 1 << 20 // the server's default
)

// plan is one schedule. It is made of seed and number of events alone.
type plan struct {
	seed    uint64
	cluster bool
	direct  bool // a cluster without a proxy before it
	mode    publisher.Mode
	window  int
	bytes   int // of the window
	timeout time.Duration
	always  bool // the server syncs every write
	lowers  bool // a limit is lowered on the way, so large events may be refused
	events  []event
	faults  []fault
	stream  string
}

// newPlan draws a schedule. Topology, mode and some kinds of faults go by the seed's number, so that a few seeds have
// them all; the rest is dice.
func newPlan(seed uint64, events int) *plan {
	r := rand.New(rand.NewPCG(seed, 0x6661756c7473))
	p := &plan{seed: seed, stream: fmt.Sprintf("FAULTS%d", seed)}
	p.cluster = seed%5 == 0
	p.direct = p.cluster && seed%10 == 0
	p.mode = []publisher.Mode{publisher.ModeSingle, publisher.ModeAtomic, publisher.ModeFast}[seed%3]
	if seed%7 == 0 {
		p.mode = publisher.ModeAuto
	}
	p.window = []int{8, 64, 256, 256, 1024}[r.IntN(5)]
	p.bytes = []int{64 << 10, 1 << 20, 8 << 20}[r.IntN(3)]
	p.timeout = time.Second + time.Duration(r.IntN(1000))*time.Millisecond
	if p.cluster {
		p.timeout += time.Second // an election takes 4 to 9 s; a short deadline makes unknowns of it
	}
	p.always = r.IntN(8) == 0
	p.drawFaults(r, events)
	p.drawEvents(r, events)
	return p
}

// drawFaults takes one of each kind that the topology must show, two others by the seed's number and perhaps one by
// dice. Every fifth comes together with the one before it.
func (p *plan) drawFaults(r *rand.Rand, events int) {
	must, may := []kind{kill, pause, cut, eat}, []kind{pause, eat, cut, refuse, stall, delay, payload, edit, full, renew}
	switch {
	case p.direct:
		must, may = []kind{behead, pause, depose}, []kind{kill, depose, edit, full, renew}
	case p.cluster:
		must, may = []kind{behead, pause, cut, eat, depose}, []kind{kill, depose, refuse, stall, delay, edit, full, renew}
	}
	kinds := must
	for i := range 2 {
		kinds = append(kinds, may[(2*int(p.seed%100)+i)%len(may)])
	}
	if r.IntN(2) == 0 {
		kinds = append(kinds, may[r.IntN(len(may))])
	}
	for _, k := range kinds {
		f := fault{kind: k, at: events/20 + r.IntN(events*11/20), hold: time.Duration(20+r.IntN(400)) * time.Millisecond}
		if (k == pause || k == stall) && r.IntN(2) == 0 {
			f.hold += p.timeout
		}
		switch k {
		case eat:
			f.n = 1 + r.IntN(max(p.window/2, 1))
		case kill:
			f.n = r.IntN(3)
		case payload, edit:
			p.lowers = true
		}
		mids := []kind{renew, cut, kill}
		switch {
		case p.direct:
			mids = mids[:1]
		case p.cluster || k == delay:
			mids = mids[:2]
		}
		if slices.Contains([]kind{pause, stall, delay, payload, edit, full}, k) && r.IntN(2) == 0 {
			f.mid = mids[r.IntN(len(mids))]
		}
		p.faults = append(p.faults, f)
	}
	slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	for i := range p.faults {
		if i > 0 && r.IntN(5) == 0 {
			p.faults[i].at = p.faults[i-1].at
		}
	}
}

// slack is how many events may start when a fault comes, so that it meets messages in flight. A quarter more may start
// before. Faults lie in the first three fifths, and all their slack is less than the rest, so no schedule ends before
// its last fault.
func (p *plan) slack() int {
	return min(p.window+100, len(p.events)*2/5*4/5/(len(p.faults)+1))
}

// drawEvents makes the events, in runs that travel the same way.
func (p *plan) drawEvents(r *rand.Rand, events int) {
	epoch := [16]byte{}
	binary.BigEndian.PutUint64(epoch[:], p.seed)
	prefix := fmt.Sprintf("faults%d.", p.seed)
	travel, left := bySend, 0
	p.events = make([]event, events)
	many := 10 // of a thousand are large
	if p.lowers {
		many = 100
	}
	for i := range p.events {
		if left == 0 {
			left = 20 + r.IntN(200)
			travel = []way{bySend, bySend, bySend, byWrite, byWrite, byDeliver}[r.IntN(6)]
			if travel == byDeliver {
				left = 1 + r.IntN(10)
			}
		}
		left--
		e := &p.events[i]
		e.way = travel
		e.msg.ID = envelope.PositionID(epoch, uint64(i))
		e.msg.Copy = r.IntN(2)
		e.msg.Subject = fmt.Appendf(nil, "%s%d", prefix, i%7)
		size := 16 + r.IntN(400)
		switch dice := r.IntN(1000); {
		case dice < 5:
			e.nature, size = poison, streamLimit+1
		case dice < 10:
			e.nature, e.msg.Subject = poison, []byte("elsewhere."+string(e.msg.Subject))
		case dice < 13:
			e.nature, e.msg.Subject = poison, []byte(prefix+".empty")
		case dice < 16:
			e.nature, e.msg.Headers = poison, []byte("Nats-Rollup: all\r\n")
		case dice < 16+many:
			e.nature, size = large, largeSize
		case dice < 200:
			e.msg.Headers = fmt.Appendf(nil, "Edge-Number: %d\r\n", i)
		case dice < 220:
			size = soundSize
		}
		e.msg.Payload = make([]byte, size)
		for j := range e.msg.Payload {
			e.msg.Payload[j] = byte(uint64(i)*31 + uint64(j)*7 + p.seed)
		}
		binary.BigEndian.PutUint64(e.msg.Payload, uint64(i))
	}
}

// String tells a schedule in a line.
func (p *plan) String() string {
	where := "one server"
	switch {
	case p.direct:
		where = "cluster without proxy"
	case p.cluster:
		where = "cluster"
	}
	s := fmt.Sprintf("%s, mode %v, window %d of %d bytes, timeout %v, sync always %v, %d events:", where, p.mode, p.window, p.bytes, p.timeout, p.always, len(p.events))
	for _, f := range p.faults {
		s += fmt.Sprintf(" %s@%d/%v", f.kind, f.at, f.hold)
		if f.mid != "" {
			s += "+" + string(f.mid)
		}
	}
	return s
}

// TestPlan: a seed is one schedule, and the seeds that run by default have every topology, mode and kind of fault.
func TestPlan(t *testing.T) {
	kinds, modes := make(map[kind]int), make(map[publisher.Mode]int)
	clusters := 0
	for seed := uint64(1); seed <= defaultSeeds; seed++ {
		p := newPlan(seed, defaultEvents)
		if !reflect.DeepEqual(p, newPlan(seed, defaultEvents)) {
			t.Errorf("seed %d is two schedules", seed)
		}
		poisoned := 0
		for i := range p.events {
			if p.events[i].nature == poison {
				poisoned++
			}
		}
		if poisoned == 0 {
			t.Errorf("seed %d has no poison", seed)
		}
		for i, f := range p.faults {
			kinds[f.kind]++
			if f.at <= 0 || f.at >= defaultEvents*3/5 || i > 0 && f.at < p.faults[i-1].at {
				t.Errorf("seed %d: fault %d is at %d", seed, i, f.at)
			}
		}
		modes[p.mode]++
		if p.cluster {
			clusters++
		}
	}
	if clusters == 0 || len(modes) < 3 {
		t.Errorf("%d clusters, modes %v", clusters, modes)
	}
	for _, k := range []kind{kill, pause, cut, eat, refuse, stall, delay, payload, edit, full, renew, depose, behead} {
		if kinds[k] == 0 {
			t.Errorf("no %s", k)
		}
	}
}
