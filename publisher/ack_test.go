package publisher

import (
	"math"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
)

// TestCommonAck holds the byte path to the forms that servers write. Without it a change there would only cost speed,
// and nobody would notice.
func TestCommonAck(t *testing.T) {
	f := func(domain, body string, seq uint64, duplicate, fast bool) {
		t.Helper()
		w := newWant("EDGE", domain, true)
		gotSeq, gotDup, ok := commonAck(w.prefix, []byte(body))
		if ok != fast || ok && (gotSeq != seq || gotDup != duplicate) {
			t.Errorf("%s: %d, %v, %v", body, gotSeq, gotDup, ok)
		}
		if !fast {
			return
		}
		data := []byte(body)
		if n := testing.AllocsPerRun(50, func() { parseAck(w, data) }); n != 0 {
			t.Errorf("%s costs %v allocations", body, n)
		}
	}
	f("", `{"stream":"EDGE","seq":1}`, 1, false, true)
	f("", `{"stream":"EDGE","seq":4711,"duplicate": true}`, 4711, true, true)
	f("", `{"stream":"EDGE","seq":4711,"duplicate":true}`, 4711, true, true)
	f("hub", `{"stream":"EDGE","domain":"hub","seq":4711}`, 4711, false, true)
	f("hub", `{"stream":"EDGE","domain":"hub","seq":4711,"duplicate": true}`, 4711, true, true)
	f("", `{"stream":"EDGE","seq":9999999999999999999}`, 9999999999999999999, false, true)
	f("", `{"stream":"EDGE","seq":10000000000000000000}`, 0, false, false) // 20 digits
	f("", `{"stream":"EDGE","seq":0}`, 0, false, false)
	f("", `{"stream":"EDGE","seq":01}`, 0, false, false)
	f("", `{"stream":"EDGE","seq":}`, 0, false, false)
	f("", `{"stream":"EDGE","seq":1`, 0, false, false)
	f("", `{"stream":"EDGE","seq":1} `, 0, false, false)
	f("", `{"stream":"EDGE","seq":1,"duplicate": false}`, 0, false, false)
	f("", `{"stream":"EDGE", "seq":1}`, 0, false, false)
	f("", `{"stream":"EDGE2","seq":1}`, 0, false, false)
	f("", `{"stream":"EDGE","domain":"hub","seq":1}`, 0, false, false)
	f("hub", `{"stream":"EDGE","seq":1}`, 0, false, false)
}

func TestToken(t *testing.T) {
	f := func(slot, gen uint32) {
		t.Helper()
		b := appendToken([]byte("x"), slot, gen)
		if s, g, ok := parseToken(string(b[1:])); !ok || s != slot || g != gen {
			t.Errorf("%d, %d became %s became %d, %d, %v", slot, gen, b, s, g, ok)
		}
	}
	f(0, 1)
	f(1, 0)
	f(255, 1<<31)
	f(math.MaxUint32, math.MaxUint32)
	for _, s := range []string{"", "-1", "a.b", "zzzzzzzzzzzzzzzzz", "*"} {
		if _, _, ok := parseToken(s); ok {
			t.Errorf("%q is a token", s)
		}
	}
}

// FuzzAck: the byte path and the JSON path tell the same, with and without a status, and no answer is accepted that
// does not name the stream, the domain and a sequence, or that answers what was not written.
func FuzzAck(f *testing.F) {
	f.Add("", "", []byte(`{"stream":"EDGE","seq":1}`))
	f.Add("", "", []byte(`{"stream":"EDGE","seq":12,"duplicate": true}`))
	f.Add("", "", []byte(`{"stream":"EDGE","seq":12,"batch":"b","count":3}`))
	f.Add("hub", "", []byte(`{"stream":"EDGE","domain":"hub","seq":3}`))
	f.Add("h\"b", "", []byte(`{"stream":"EDGE","domain":"h\"b","seq":3}`))
	f.Add("\xe9", "", []byte(`{"error":{}}`))
	f.Add("", "", []byte(`{"error":{"code":400,"err_code":10060,"description":"x"}}`))
	f.Add("", "", []byte(`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"EDGE","seq":0}`))
	f.Add("", "429", []byte(`{"error":{"code":429,"err_code":10167,"description":"too many requests"},"stream":"EDGE","seq":0}`))
	f.Add("", "429", []byte(``))
	f.Add("", "503", []byte(``))
	f.Add("", "503", []byte(`{"stream":"EDGE","seq":1}`))
	f.Fuzz(func(t *testing.T, domain, status string, body []byte) {
		var h nats.Header
		if status != "" {
			h = nats.Header{"Status": {status}}
		}
		w := newWant("EDGE", domain, true)
		fast := parseAnswer(w, h, body)
		slowly := *w
		slowly.prefix = []byte("no answer begins like this")
		slow := parseAnswer(&slowly, h, body)
		// A domain that is not valid UTF-8 cannot come back from JSON as it went in.
		if fast != slow && utf8.ValidString(domain) {
			t.Fatalf("%q %s: %+v, by JSON %+v", status, body, fast, slow)
		}
		if fast.form == silence {
			t.Fatalf("%q %s is read as silence", status, body)
		}
		for _, own := range []bool{false, true} {
			r := classify(w, evidence{ack: fast, written: true, own: own})
			proven := fast.form == positive && status == "" && fast.stream == "EDGE" && fast.domain == domain && fast.seq > 0
			if (r.Outcome == Accepted) != proven || r.Outcome == Accepted && r.Sequence != fast.seq || (r.Err == nil) != proven {
				t.Fatalf("%q %s: %+v", status, body, r)
			}
			if r := classify(w, evidence{ack: fast, own: own}); r.Outcome != Retryable || r.Err == nil {
				t.Fatalf("%q %s before it was written: %+v", status, body, r)
			}
		}
	})
}

func TestParseViolation(t *testing.T) {
	f := func(text string, kind violationKind, subject string) {
		t.Helper()
		if v := parseViolation(text); v.kind != kind || v.subject != subject {
			t.Errorf("%s: %+v", text, v)
		}
	}
	f(`Permissions Violation for Publish to "a.b"`, violatesPublish, "a.b")
	f(`Permissions Violation for Publish to "a.\"q\".größe"`, violatesPublish, `a."q".größe`)
	f(`Permissions Violation for Publish with Reply of "_INBOX.x.1"`, violatesReply, "_INBOX.x.1")
	f(`Permissions Violation for Subscription to "_INBOX.x.*" (sid "3")`, violatesSubscribe, "_INBOX.x.*")
	f(`Permissions Violation for Subscription to "a" using queue "q"`, violatesSubscribe, "a")
	f(`Permissions Violation for Publish to a.b`, violatesNothing, "")
	f(`Permissions Violation for Publish to "a.b`, violatesNothing, "")
	f(`Permissions Violation`, violatesNothing, "")
	f(``, violatesNothing, "")
}

func FuzzViolation(f *testing.F) {
	f.Add(`Permissions Violation for Publish to "a.b"`)
	f.Add(`Permissions Violation for Subscription to "_INBOX.x.*" (sid "3")`)
	f.Fuzz(func(t *testing.T, text string) {
		if v := parseViolation(text); v.kind == violatesNothing && v.subject != "" {
			t.Fatalf("%q: %+v", text, v)
		}
	})
}
