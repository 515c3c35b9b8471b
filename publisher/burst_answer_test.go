package publisher

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func refused(status, code int) string {
	return fmt.Sprintf(`{"error":{"code":%d,"err_code":%d,"description":"no"},"stream":"EDGE","seq":0}`, status, code)
}

// TestAtomicAnswers has a batch of three answered.
func TestAtomicAnswers(t *testing.T) {
	f := func(answer string, wrote, results string) *stage {
		t.Helper()
		s := newStage(t, ModeAtomic, 16)
		s.queue(1, 2, 3)
		s.write("1.1:1 1.2:2 1.3:3!")
		s.answers(1, 0, answer)
		s.write(wrote)
		s.outcomes(results)
		return s
	}
	const singly = "s:1 s:2 s:3"
	const unknown = "1:unknown 2:unknown 3:unknown"
	f(`{"stream":"EDGE","seq":9,"batch":"%ID","count":3}`, "", "1:accepted@7 2:accepted@8 3:accepted@9")
	f(`{"stream":"EDGE","domain":"hub","seq":9,"batch":"%ID","count":3}`, "", "1:accepted@7 2:accepted@8 3:accepted@9") // the domain is not known
	f(`{"stream":"EDGE","seq":9,"batch":"%ID","count":2}`, "", unknown)
	f(`{"stream":"EDGE","seq":9,"batch":"%ID","count":4}`, "", unknown)
	f(`{"stream":"EDGE","seq":2,"batch":"%ID","count":3}`, "", unknown)
	f(`{"stream":"EDGE","seq":9,"batch":"another","count":3}`, "", unknown)
	f(`{"stream":"EDGE","seq":9}`, "", unknown)
	f(`{"stream":"OTHER","seq":9,"batch":"%ID","count":3}`, "", unknown)
	f(`{"stream":"EDGE","seq":0,"batch":"%ID","count":3}`, "", unknown)
	f(`what`, "", unknown)
	f(refused(429, 10167), "", "1:retryable 2:retryable 3:retryable")
	f(refused(400, 10174), singly, "")
	f(refused(400, 10201), singly, "")
	f(refused(409, 10158), singly, "")
	f(refused(429, 10210), singly, "")
	if s := f(refused(400, 10199), singly, ""); s.longest != minBurst {
		t.Errorf("the next batch is of %d", s.longest)
	}

	// A refusal that proves that nothing is stored lets the single one speak for itself.
	s := f(refused(400, 10054), singly, "")
	s.single(1, `{"stream":"EDGE","seq":1}`)
	s.single(2, refused(400, 10054))
	s.single(3, refused(503, 10023))
	s.outcomes("1:accepted@1 2:permanent 3:retryable")
	// One that does not prove it makes everything but an acknowledgement unknown.
	s = f(refused(500, 10063), singly, "")
	s.single(1, `{"stream":"EDGE","seq":1,"duplicate": true}`)
	s.single(2, refused(400, 10054))
	s.single(3, refused(400, 10109))
	s.outcomes("1:accepted@1d 2:unknown 3:unknown")
	// A quota is held against an id that one replica has looked up before.
	s = f(refused(400, 10002), singly, "")
	s.single(1, `{"stream":"EDGE","seq":1,"duplicate": true}`)
	s.single(2, refused(400, 10002))
	s.single(3, refused(400, 10054))
	s.outcomes("1:accepted@1d 2:retryable 3:unknown")
	// The answer comes twice.
	s = f(refused(400, 10174), singly, "")
	s.answers(1, 0, `{"stream":"EDGE","seq":9,"batch":"%ID","count":3}`)
	s.outcomes("")
	if s.count.LateAcks != 1 || s.count.Resent != 3 || len(s.doubt) != 1 {
		t.Errorf("%+v", s.count)
	}
}

// TestFastAnswers has a batch of four answered.
func TestFastAnswers(t *testing.T) {
	start := func() *stage {
		s := newStage(t, ModeFast, 16)
		s.queue(1, 2, 3, 4)
		s.write("1.1:1 1.2:2 1.3:3 1.4:4!")
		s.answers(1, 1, `{"type":"ack","seq":0,"msgs":500}`)
		s.outcomes("")
		return s
	}
	unknown := "1:unknown 2:unknown 3:unknown 4:unknown"
	f := func(answer, results string) {
		t.Helper()
		s := start()
		s.answers(1, 4, answer)
		s.write("")
		s.outcomes(results)
	}
	f(`{"stream":"EDGE","seq":9,"batch":"%ID","count":4}`, "1:accepted@9 2:accepted@9 3:accepted@9 4:accepted@9")
	f(`{"stream":"EDGE","seq":9,"batch":"%ID","count":5}`, unknown)
	f(`{"stream":"EDGE","seq":9,"batch":"x","count":4}`, unknown)
	f(`{"stream":"OTHER","seq":9,"batch":"%ID","count":4}`, unknown)

	// Flow acknowledgements prove nothing.
	s := start()
	s.answers(1, 3, `{"type":"ack","seq":3,"msgs":1}`)
	s.write("")
	s.outcomes("")

	// The third is refused by a check of its headers: it has its outcome, the rest has an acknowledgement.
	s = start()
	s.answers(1, 3, `{"type":"err","seq":3,"error":{"code":400,"err_code":10165,"description":"invalid per-message TTL"}}`)
	s.outcomes("3:permanent")
	s.answers(1, 3, `{"stream":"EDGE","seq":9,"batch":"%ID","count":2}`)
	s.outcomes("1:accepted@9 2:accepted@9")
	s.write("s:4")
	s.single(4, refused(400, 10054)) // nothing behind the count is stored
	s.outcomes("4:permanent")

	// The second is refused early: the third is a gap.
	s = start()
	s.answers(1, 2, refused(400, 10054))
	s.answers(1, 3, `{"type":"gap","last_seq":2,"seq":3}`)
	s.answers(1, 3, `{"stream":"EDGE","seq":9,"batch":"%ID","count":1}`)
	s.outcomes("1:accepted@9 2:permanent")
	s.answers(1, 4, refused(400, 10208))
	s.write("s:3 s:4")
	if s.count.LateAcks != 0 || s.count.UnexpectedAcks != 0 {
		t.Errorf("%+v", s.count)
	}

	// The first is refused: there is no batch for the rest.
	s = start()
	s.answers(1, 1, refused(400, 10054))
	s.answers(1, 2, refused(400, 10208))
	s.answers(1, 3, refused(400, 10208))
	s.answers(1, 4, refused(400, 10208))
	s.write("s:2 s:3 s:4")
	s.single(2, refused(400, 10054))
	s.outcomes("1:permanent 2:permanent")

	// The last is refused early: the rest is stored, and nothing will ever say so.
	s = start()
	s.answers(1, 4, refused(400, 10054))
	s.write("s:1 s:2 s:3")
	s.single(1, `{"stream":"EDGE","seq":1,"duplicate": true}`)
	s.single(2, refused(400, 10054))
	s.single(3, refused(400, 10002))
	s.outcomes("1:accepted@1d 2:unknown 3:retryable 4:permanent")

	// The server stores the batch but the second, and counts it all the same.
	s = start()
	s.answers(1, 2, refused(400, 10002))
	s.answers(1, 4, `{"stream":"EDGE","seq":9,"batch":"%ID","count":4}`)
	s.outcomes("1:accepted@9 2:retryable 3:accepted@9 4:accepted@9")

	// All are duplicates: no sequence proves it.
	s = start()
	s.answers(1, 4, `{"stream":"EDGE","seq":0,"batch":"%ID","count":4}`)
	s.outcomes("")
	s.write("s:1 s:2 s:3 s:4")
	s.single(1, `{"stream":"EDGE","seq":1,"duplicate": true}`)
	s.single(2, refused(400, 10109))
	s.outcomes("1:accepted@1d 2:unknown")

	// The mode was switched off under way.
	s = start()
	s.answers(1, 3, refused(400, 10205))
	s.answers(1, 4, refused(400, 10205))
	s.write("s:3 s:4 s:1 s:2")
	if len(s.doubt) != 1 {
		t.Error("the stream is not looked at again")
	}

	// Nobody is there, for the last two.
	s = start()
	nobody := &nats.Msg{Subject: s.reply(1, 3), Header: nats.Header{"Status": {"503"}}}
	s.answer(nobody)
	nobody.Subject = s.reply(1, 4)
	s.answer(nobody)
	s.outcomes("3:retryable 4:retryable")
	s.write("s:1 s:2")

	// What may be stored is not sent again where its id may be forgotten.
	s = start()
	s.profile.DuplicateWindow = time.Nanosecond
	s.answers(1, 4, refused(400, 10208))
	s.write("s:4")
	s.outcomes("1:unknown 2:unknown 3:unknown")
}
