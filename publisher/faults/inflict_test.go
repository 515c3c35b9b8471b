package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

// inflict does one fault and undoes it. What fails in natstest ends the test.
func (s *schedule) inflict(f fault) error {
	w := s.world
	switch f.kind {
	case kill:
		s.kill(w.servers[f.n%len(w.servers)], f.hold)
	case behead:
		s.kill(w.leader(s.t, s.plan.stream), f.hold)
	case pause:
		srv := w.leader(s.t, s.plan.stream)
		srv.Pause()
		s.during(f)
		srv.Resume()
	case cut:
		w.proxy.Cut()
	case refuse:
		w.proxy.Refuse(true)
		w.proxy.Cut()
		s.wait(f.hold)
		w.proxy.Refuse(false)
	case stall:
		w.proxy.Stall()
		s.during(f)
		w.proxy.Resume()
	case delay:
		w.proxy.Delay(f.hold / 10)
		s.during(f)
		w.proxy.Delay(0)
	case eat:
		return s.eat(f)
	case payload:
		w.servers[0].Reload(natstest.Extra(fmt.Sprintf("max_payload: %d", loweredLimit)))
		s.during(f)
		w.servers[0].Reload(natstest.Extra(fmt.Sprintf("max_payload: %d", serverLimit)))
	case edit:
		return s.squeeze(f, func(c *jetstream.StreamConfig, _ *jetstream.StreamState) { c.MaxMsgSize = loweredLimit })
	case full:
		return s.squeeze(f, func(c *jetstream.StreamConfig, now *jetstream.StreamState) { c.MaxMsgs = int64(now.Msgs) + 20 })
	case renew:
		s.renew()
	case depose:
		return s.depose()
	default:
		panic("BUG: no such fault: " + string(f.kind))
	}
	return nil
}

func (s *schedule) kill(srv *natstest.Server, hold time.Duration) {
	srv.Kill()
	s.wait(hold)
	srv.Restart()
}

// renew lets the lane end its Publisher and make another.
func (s *schedule) renew() {
	select {
	case s.lane.reborn <- struct{}{}:
	case <-s.ctx.Done():
	}
}

// during holds a fault, with the other one that it may have in the middle.
func (s *schedule) during(f fault) {
	s.wait(f.hold / 2)
	switch f.mid {
	case cut:
		s.world.proxy.Cut()
	case kill:
		s.kill(s.world.servers[0], 0)
	case renew:
		s.renew()
	}
	s.wait(f.hold / 2)
}

// wait holds a fault. It decides how long the world is broken, and no result.
func (s *schedule) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// eat drops the next acknowledgements of messages that another connection finds in the stream: as many as the fault
// has, or what comes while it holds, but one at least.
func (s *schedule) eat(f fault) error {
	var left atomic.Int64
	left.Store(int64(f.n))
	before := s.world.proxy.Eaten()
	s.world.proxy.EatAcks(func(_ int, data []byte) bool {
		return left.Load() > 0 && s.isStored(data) && left.Add(-1) >= 0
	})
	defer s.world.proxy.EatAcks(nil)
	end := time.Now().Add(f.hold)
	for giveUp := time.Now().Add(patience); ; s.wait(time.Millisecond) {
		eaten := s.world.proxy.Eaten() - before
		switch {
		case eaten >= f.n, eaten > 0 && time.Now().After(end), s.ctx.Err() != nil:
			s.eaten += eaten
			return nil
		case time.Now().After(giveUp):
			return fmt.Errorf("no acknowledgement came that could be eaten: %+v", s.lane.settled.Load())
		}
	}
}

// isStored tells whether an acknowledgement says yes and the stream holds the message. Those of a batch's flow do not
// name a place in the stream; they are believed.
func (s *schedule) isStored(data []byte) bool {
	var a struct {
		Type  string          `json:"type"`
		Seq   uint64          `json:"seq"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &a) != nil || a.Seq == 0 || a.Error != nil {
		return false
	}
	if a.Type != "" {
		return a.Type == "ack"
	}
	ctx, stop := context.WithTimeout(s.ctx, 2*time.Second)
	defer stop()
	m, err := s.stream.GetMsg(ctx, a.Seq)
	return err == nil && m.Sequence == a.Seq
}

// squeeze edits the stream's limits and edits them back.
func (s *schedule) squeeze(f fault, change func(*jetstream.StreamConfig, *jetstream.StreamState)) error {
	was := s.config()
	err := insist(s.ctx, "edit the stream", func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		if err != nil {
			return err
		}
		now := s.config()
		change(&now, &info.State)
		_, err = s.js.UpdateStream(ctx, now)
		return err
	})
	if err != nil {
		return err
	}
	s.during(f)
	return insist(s.ctx, "edit the stream back", func(ctx context.Context) error {
		_, err := s.js.UpdateStream(ctx, was)
		return err
	})
}

// depose asks the stream's leader to step down.
func (s *schedule) depose() error {
	return insist(s.ctx, "let the leader step down", func(ctx context.Context) error {
		m, err := s.nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+s.plan.stream, nil)
		if err != nil {
			return err
		}
		var a struct {
			Success bool `json:"success"`
		}
		if json.Unmarshal(m.Data, &a) != nil || !a.Success {
			return fmt.Errorf("the server says %s", m.Data)
		}
		return nil
	})
}
