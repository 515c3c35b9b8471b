package publisher

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"edge/publisher/natstest"
)

// notProvoked is what no test here makes a real server say, and why. TestLiveCodes prints it.
var notProvoked = map[int]string{
	10009: "the server makes it for itself and keeps silent",
	10063: "a replica whose log contradicts its store, a damage that nobody outside the server can cause",
}

// live is one server that is asked to refuse. Its stream is always S on s.>, made for each case and deleted after it.
type live struct {
	t      *testing.T
	nc     *nats.Conn
	inbox  *nats.Subscription
	prefix string
	asked  int
	proven map[int]bool
}

func newLive(t *testing.T, nc *nats.Conn, proven map[int]bool) *live {
	t.Helper()
	l := &live{t: t, nc: nc, prefix: nats.NewInbox(), proven: proven}
	var err error
	if l.inbox, err = nc.SubscribeSync(l.prefix + ".>"); err != nil {
		t.Fatal(err)
	}
	return l
}

// api asks the management interface, with nothing if request is nil, and returns its answer.
func (l *live) api(verb string, request any) []byte {
	l.t.Helper()
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			l.t.Fatal(err)
		}
	}
	m, err := l.nc.Request("$JS.API.STREAM."+verb+".S", body, time.Minute)
	if err != nil {
		l.t.Fatalf("%s: %v", verb, err)
	}
	var answer struct{ Error *natsserver.ApiError }
	if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Error != nil {
		l.t.Fatalf("%s: %v, %s", verb, err, m.Data)
	}
	return m.Data
}

func (l *live) stream(change func(c *natsserver.StreamConfig)) natsserver.StreamConfig {
	l.t.Helper()
	c := natsserver.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Storage: natsserver.FileStorage, Replicas: 1}
	if change != nil {
		change(&c)
	}
	l.api("CREATE", c)
	return c
}

func (l *live) drop() {
	l.t.Helper()
	l.api("DELETE", nil)
}

// stored is how many messages the stream has taken so far.
func (l *live) stored() uint64 {
	l.t.Helper()
	var info natsserver.StreamInfo
	if err := json.Unmarshal(l.api("INFO", nil), &info); err != nil {
		l.t.Fatal(err)
	}
	return info.State.LastSeq
}

// send publishes m with a reply subject of its own. What m has as reply is put behind it: fast batches live there.
func (l *live) send(m *nats.Msg) (reply string) {
	l.t.Helper()
	l.asked++
	c := *m
	c.Reply = fmt.Sprintf("%s.%d%s", l.prefix, l.asked, m.Reply)
	if err := l.nc.PublishMsg(&c); err != nil {
		l.t.Fatal(err)
	}
	return c.Reply
}

// answer waits for the next answer to one of replies; others are passed over.
func (l *live) answer(replies ...string) *nats.Msg {
	l.t.Helper()
	for {
		m, err := l.inbox.NextMsg(time.Minute)
		if err != nil {
			l.t.Fatalf("no answer: %v", err)
		}
		if slices.Contains(replies, m.Subject) {
			return m
		}
	}
}

// judge takes an answer the way of the publisher.
func judge(m *nats.Msg) (ack, Result) {
	w := newWant("S", "", true)
	a := parseAnswer(w, m.Header, m.Data)
	return a, classify(w, evidence{ack: a, written: true})
}

// check holds an answer against what is expected, and notes its code as proven.
func (l *live) check(m *nats.Msg, code int, want Outcome, text string) {
	l.t.Helper()
	a, r := judge(m)
	if a.form != negative || a.errCode != code || r.Outcome != want || !strings.Contains(a.text, text) {
		l.t.Errorf("want %d %q %v, got %v: %v %s", code, text, want, r.Outcome, m.Header, m.Data)
		return
	}
	for _, c := range acknowledged {
		if int(c.id) == code && a.status != c.status {
			l.t.Errorf("%d has status %d, want %d", code, a.status, c.status)
		}
	}
	l.proven[code] = true
}

// refuse sends messages to the stream and expects the last one to be refused. A refusal that is not Unknown must not
// have stored anything.
func (l *live) refuse(code int, want Outcome, text string, msgs ...*nats.Msg) {
	l.t.Helper()
	last := len(msgs) - 1
	for _, m := range msgs[:last] {
		l.answer(l.send(m))
	}
	before := l.stored()
	l.check(l.answer(l.send(msgs[last])), code, want, text)
	if after := l.stored(); want != Unknown && after != before {
		l.t.Errorf("%d stored %d messages", code, after-before)
	}
}

// msg is a message to s.1 with headers, given as names and values in turn.
func msg(body string, headers ...string) *nats.Msg {
	m := nats.NewMsg("s.1")
	m.Data = []byte(body)
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	return m
}

// batch is a message of an atomic batch.
func batch(id, seq string, headers ...string) *nats.Msg {
	return msg("x", append([]string{"Nats-Batch-Id", id, "Nats-Batch-Sequence", seq}, headers...)...)
}

// fast is a message of a fast batch, whose place is told by the end of its reply subject: id, how many messages until
// an acknowledgement, what to do about a gap, sequence, operation.
func fast(id string, seq, op int) *nats.Msg {
	m := msg("x")
	m.Reply = fmt.Sprintf(".%s.100.fail.%d.%d.$FI", id, seq, op)
	return m
}

const ( // operations of a fast batch
	fastStart  = 0
	fastAppend = 1
)

// TestLiveCodes has a real server refuse publications by every number that can be provoked, and sends its answers
// through the publisher's own parser and decision.
func TestLiveCodes(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Authorization(""), natstest.Extra(fmt.Sprintf(`
max_payload: 48MB
jetstream { store_dir: %q, max_mem: %d, max_file: %d, sync_interval: always, max_buffered_msgs: %d }
accounts {
	ROOMY { jetstream: enabled, users: [{ user: roomy, password: p }] }
	TIGHT { jetstream: { max_mem: 1MB, max_file: 1MB }, users: [{ user: tight, password: p }] }
}`, t.TempDir(), natstest.MaxMemory, natstest.MaxFile, queued))) // the second jetstream block replaces the first
	proven := make(map[int]bool)
	l := newLive(t, srv.Connect(t, nats.UserInfo("roomy", "p")), proven)

	plainRefusals(l)
	featureRefusals(l)
	batchRefusals(l)
	storeRefusals(l)
	fullQueue(l)
	fullServer(l)
	fullAccount(newLive(t, srv.Connect(t, nats.UserInfo("tight", "p")), proven))
	lostTier(t, proven)
	doubledID(t, proven)

	for _, c := range acknowledged {
		code := int(c.id)
		why, excused := notProvoked[code]
		switch {
		case proven[code] && excused:
			t.Errorf("%d is proven: take it out of notProvoked", code)
		case !proven[code] && !excused:
			t.Errorf("%d %q is neither proven nor excused", code, c.text)
		case excused:
			t.Logf("not provoked here: %d %q: %s", code, c.text, why)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(notProvoked)) {
		if !inTable(code) {
			t.Errorf("%d is excused, but is not in the table", code)
		}
	}
	t.Logf("%d of %d numbers proven", len(proven), len(acknowledged))
}

// plainRefusals need a plain stream and a message that it does not like.
func plainRefusals(l *live) {
	l.stream(nil)
	l.refuse(10060, Fatal, "expected stream does not match", msg("x", "Nats-Expected-Stream", "OTHER"))
	l.refuse(10070, Permanent, "wrong last msg ID", msg("x", "Nats-Expected-Last-Msg-Id", "other"))
	l.refuse(10071, Permanent, "wrong last sequence: 0", msg("x", "Nats-Expected-Last-Sequence", "9"))
	l.refuse(10071, Permanent, "wrong last sequence: 0", msg("x", "Nats-Expected-Last-Subject-Sequence", "9"))
	l.refuse(10193, Permanent, "missing sequence", msg("x", "Nats-Expected-Last-Subject-Sequence-Subject", "s.2"))
	l.refuse(10097, Permanent, "header size", msg("x", "H", strings.Repeat("v", 70<<10)))
	l.refuse(10111, Fatal, "rollup not permitted", msg("x", "Nats-Rollup", "all"))
	l.refuse(10166, Fatal, "TTL is disabled", msg("x", "Nats-TTL", "5s"))
	l.refuse(10168, Fatal, "counters is disabled", msg("", "Nats-Incr", "1"))
	l.refuse(10188, Fatal, "schedules is disabled", msg("x", "Nats-Schedule", "@every 1h", "Nats-Schedule-Target", "s.2"))
	l.refuse(10212, Permanent, "scheduler", msg("x", "Nats-Scheduler", "s.2"))
	l.refuse(10227, Permanent, "source header", msg("x", "Nats-Stream-Source", "OTHER 1 > >"))
	l.refuse(10174, Fatal, "atomic publish is disabled", batch("b", "1"))
	l.refuse(10205, Fatal, "batch publish is disabled", fast("b", 1, fastStart))
	l.drop()

	c := l.stream(nil)
	c.Sealed = true
	l.api("UPDATE", c)
	l.refuse(10109, Fatal, "sealed", msg("x"))
	l.drop()
}

// featureRefusals need a stream that takes time limits, schedules or counters.
func featureRefusals(l *live) {
	l.stream(func(c *natsserver.StreamConfig) { c.AllowMsgTTL, c.AllowMsgSchedules, c.AllowRollup = true, true, true })
	l.refuse(10165, Permanent, "invalid per-message TTL", msg("x", "Nats-TTL", "100ms"))
	l.refuse(10165, Permanent, "invalid per-message TTL", msg("x", "Nats-TTL", "soon"))
	l.refuse(10111, Fatal, "rollup value invalid", msg("x", "Nats-Rollup", "some"))
	schedule := func(code int, text string, headers ...string) {
		l.t.Helper()
		l.refuse(code, Permanent, text, msg("x", headers...))
	}
	schedule(10189, "pattern", "Nats-Schedule", "now and then", "Nats-Schedule-Target", "s.2")
	schedule(10190, "target", "Nats-Schedule", "@every 1h")
	schedule(10190, "target", "Nats-Schedule", "@every 1h", "Nats-Schedule-Target", "elsewhere")
	schedule(10191, "TTL", "Nats-Schedule", "@every 1h", "Nats-Schedule-Target", "s.2", "Nats-Schedule-TTL", "100ms")
	schedule(10192, "rollup", "Nats-Schedule", "@every 1h", "Nats-Schedule-Target", "s.2", "Nats-Schedule-Rollup", "all")
	schedule(10203, "source", "Nats-Schedule", "@every 1h", "Nats-Schedule-Target", "s.2", "Nats-Schedule-Source", "s.2")
	schedule(10223, "time zone", "Nats-Schedule", "0 0 5 * * *", "Nats-Schedule-Target", "s.2", "Nats-Schedule-Time-Zone", "Nowhere/Town")
	schedule(10212, "scheduler", "Nats-Schedule-Next", "later", "Nats-Scheduler", "s.2")
	l.drop()

	l.stream(func(c *natsserver.StreamConfig) { c.AllowMsgCounter = true })
	l.refuse(10169, Fatal, "increment is missing", msg("x"))
	l.refuse(10170, Permanent, "has payload", msg("x", "Nats-Incr", "1"))
	l.refuse(10171, Permanent, "increment is invalid", msg("", "Nats-Incr", "one"))
	l.refuse(10171, Permanent, "increment is invalid", msg("", "Nats-Incr", "1", "Nats-Expected-Stream", "S"))
	l.refuse(10172, Fatal, "counter is broken", msg("", "Nats-Incr", "1", "Nats-Counter-Sources", "none"), msg("", "Nats-Incr", "1"))
	l.drop()
}

// batchRefusals are those of atomic and fast batches. Each case is a batch of its own.
func batchRefusals(l *live) {
	l.stream(func(c *natsserver.StreamConfig) { c.AllowAtomicPublish, c.AllowBatchPublish = true, true })
	commit := []string{"Nats-Batch-Commit", "1"}
	with := func(headers ...string) []string { return append(headers, commit...) }
	l.refuse(10175, Fatal, "sequence is missing", msg("x", "Nats-Batch-Id", "none"))
	l.refuse(10176, Retryable, "incomplete", batch("middle", "2"))
	l.refuse(10177, Fatal, "unsupported header used: Nats-Expected-Last-Msg-Id", batch("odd", "1", with("Nats-Expected-Last-Msg-Id", "m")...))
	l.refuse(10179, Fatal, "batch ID is invalid", batch(strings.Repeat("i", 65), "1"))
	l.refuse(10200, Fatal, "commit is invalid", batch("commit", "1", "Nats-Batch-Commit", "please"))
	l.refuse(10185, Fatal, "api level", batch("level", "1", with("Nats-Required-Api-Level", "9999")...))
	l.refuse(10199, Retryable, "too large: 1000", batch("large", "1001"))
	l.refuse(10164, Permanent, "wrong last sequence", batch("seq", "1", "Nats-Expected-Last-Sequence", "0"), batch("seq", "2", with("Nats-Expected-Last-Sequence", "1")...))
	l.refuse(10201, Unknown, "duplicate message id", batch("twice", "1", "Nats-Msg-Id", "a"), batch("twice", "2", with("Nats-Msg-Id", "a")...))
	l.refuse(10201, Unknown, "duplicate message id", msg("x", "Nats-Msg-Id", "stored"), batch("again", "1", with("Nats-Msg-Id", "stored")...))
	l.refuse(10206, Fatal, "pattern is invalid", fast("f", 1, 9))
	l.refuse(10207, Fatal, "ID is invalid", fast(strings.Repeat("f", 65), 1, fastStart))
	l.refuse(10208, Retryable, "ID unknown", fast("stranger", 2, fastAppend))

	var open []*nats.Msg
	for i := range 50 {
		open = append(open, batch(fmt.Sprintf("open%d", i), "1"))
	}
	l.refuse(10210, Retryable, "too many inflight", append(open, batch("one more", "1"))...)
	open = open[:0]
	for i := range 1000 {
		open = append(open, fast(fmt.Sprintf("open%d", i), 1, fastStart))
	}
	l.refuse(10211, Retryable, "too many inflight", append(open, fast("more", 1, fastStart))...)
	l.drop()
}

// storeRefusals are a stream's own limits, and the one of the file store.
func storeRefusals(l *live) {
	limit := func(want Outcome, code int, text string, m *nats.Msg, change func(c *natsserver.StreamConfig)) {
		l.t.Helper()
		l.stream(change)
		l.refuse(code, want, text, msg("x"), m)
		l.drop()
	}
	limit(Permanent, 10054, "message size", msg(strings.Repeat("x", 200)), func(c *natsserver.StreamConfig) { c.MaxMsgSize = 100 })
	limit(Permanent, 10054, "message size", msg("x", "H", strings.Repeat("v", 200)), func(c *natsserver.StreamConfig) { c.MaxMsgSize = 100 })
	limit(Retryable, 10077, "maximum messages exceeded", msg("x"), func(c *natsserver.StreamConfig) { c.Discard, c.MaxMsgs = natsserver.DiscardNew, 1 })
	limit(Retryable, 10077, "maximum bytes exceeded", msg(strings.Repeat("x", 200)), func(c *natsserver.StreamConfig) { c.Discard, c.MaxBytes = natsserver.DiscardNew, 100 })
	limit(Retryable, 10077, "maximum messages per subject exceeded", msg("x"), func(c *natsserver.StreamConfig) {
		c.Discard, c.DiscardNewPer, c.MaxMsgsPer = natsserver.DiscardNew, true, 1
	})
	limit(Permanent, 10077, "message too large", msg(strings.Repeat("x", 33<<20)), nil)
}

// queued is how many messages the test server lets wait before a stream. Its default is 100 000, and as the server
// sends a refusal only when it has stored what waits, that would take a minute on a slow disk.
const queued = 1000

// fullQueue publishes faster than a server that syncs every write can store, without waiting for answers, so the queue
// before the stream runs over.
func fullQueue(l *live) {
	l.stream(nil)
	defer l.drop()
	const sent = 30 * queued
	m := msg("x")
	for range sent {
		l.send(m)
	}
	for range sent {
		m, err := l.inbox.NextMsg(time.Minute)
		if err != nil {
			l.t.Errorf("the queue did not run over: %v", err)
			return
		}
		if m.Header == nil {
			continue // stored
		}
		if m.Header.Get("Status") != "429" {
			l.t.Errorf("status %v, want 429", m.Header)
		}
		l.check(m, 10167, Retryable, "too many requests")
		return
	}
	l.t.Error("the queue did not run over")
}

// fullServer fills the memory that the server has for all streams.
func fullServer(l *live) {
	l.stream(func(c *natsserver.StreamConfig) { c.Storage = natsserver.MemoryStorage })
	defer l.drop()
	l.fill(10023, 8<<20, natstest.MaxMemory, "insufficient resources")
}

// fullAccount fills what an account may use.
func fullAccount(l *live) {
	l.stream(nil)
	defer l.drop()
	l.fill(10002, 100<<10, 1<<20, "resource limits exceeded for account")
}

// fill publishes until the server refuses, which it must do by the time that limit bytes are stored.
func (l *live) fill(code, size, limit int, text string) {
	l.t.Helper()
	m := msg(strings.Repeat("x", size))
	for range limit/size + 2 {
		got := l.answer(l.send(m))
		if _, r := judge(got); r.Outcome == Accepted {
			continue
		}
		before := l.stored()
		l.check(got, code, Retryable, text)
		l.check(l.answer(l.send(m)), code, Retryable, text)
		if after := l.stored(); after != before {
			l.t.Errorf("%d stored %d messages", code, after-before)
		}
		return
	}
	l.t.Errorf("%d: %d bytes are stored and none is refused", code, limit)
}
