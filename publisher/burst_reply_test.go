package publisher

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// TestBatchReplies: reply subjects of batches are read back, and no other.
func TestBatchReplies(t *testing.T) {
	const random = "0123456789abcdef01234567"
	f := func(text string, number uint64, seq uint32, want bool) {
		t.Helper()
		if n, s, ok := parseBatchReply(random, text); ok != want || n != number || s != seq {
			t.Errorf("%q is %d, %d, %v", text, n, s, ok)
		}
	}
	f(random+"-1", 1, 0, true)
	f(random+"-zz.1000.fail.17.1.$FI", 35*36+35, 17, true)
	f(string(appendFast(appendBatchID(nil, random, 1<<64-1), 1000, true)), 1<<64-1, 1000, true)
	f(random+"-", 0, 0, false)
	f(random+"-0", 0, 0, false)
	f(random, 0, 0, false)
	f(random+"-1.1000.ok.1.1.$FI", 0, 0, false)
	f(random+"-1.1000.fail.0.1.$FI", 0, 0, false)
	f(random+"-1.1000.fail.1.$F", 0, 0, false)
	f("1123456789abcdef01234567-1", 0, 0, false)
	f(string(appendToken(nil, 1, 1)), 0, 0, false)
	if id := appendBatchID(nil, random, 1<<64-1); len(id) > 64 {
		t.Errorf("%d characters", len(id))
	}
}

func FuzzBatchReply(f *testing.F) {
	const random = "0123456789abcdef01234567"
	f.Add(random + "-1")
	f.Add(random + "-zz.1000.fail.17.1.$FI")
	f.Fuzz(func(t *testing.T, s string) {
		number, seq, ok := parseBatchReply(random, s)
		if !ok {
			if number != 0 || seq != 0 {
				t.Errorf("%q is refused as %d, %d", s, number, seq)
			}
			return
		}
		again := appendBatchID(nil, random, number)
		if seq > 0 {
			again = appendFast(again, seq, false)
		}
		if n, q, ok := parseBatchReply(random, string(again)); !ok || n != number || q != seq {
			t.Errorf("%q becomes %q", s, again)
		}
	})
}

func FuzzNote(f *testing.F) {
	f.Add("", []byte(`{"stream":"EDGE","seq":4711,"batch":"ab-1","count":12}`))
	f.Add("", []byte(`{"type":"err","seq":3,"error":{"code":400,"err_code":10165,"description":"x"}}`))
	f.Add("503", []byte(nil))
	f.Add("", []byte(`{"type":"ack","seq":3,"msgs":10}`))
	w := newWant("EDGE", "", true)
	f.Fuzz(func(t *testing.T, status string, data []byte) {
		var h nats.Header
		if status != "" {
			h = nats.Header{"Status": {status}}
		}
		n := parseNote(w, h, data)
		if n.idle == (n.ack.form != silence) {
			t.Errorf("%q is %+v", data, n)
		}
		if n.batch != "" && n.idle {
			t.Errorf("%q is %+v", data, n)
		}
	})
}
