package natstest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// cut runs chunks through a parser and returns what it forwards and the acknowledgements it sees.
func cut(chunks ...[]byte) (f frames, out []byte, acks []string) {
	for _, c := range chunks {
		for len(c) > 0 {
			var o, a []byte
			o, a, c = f.next(c)
			out = append(out, o...)
			if a != nil {
				acks = append(acks, string(a))
			}
		}
	}
	return f, out, acks
}

// split is s, cut behind every n bytes.
func split(s string, n int) (chunks [][]byte) {
	for c := range slices.Chunk([]byte(s), n) {
		chunks = append(chunks, c)
	}
	return chunks
}

func TestFrames(t *testing.T) {
	f := func(in, want string, acks ...string) {
		t.Helper()
		for n := 1; n <= len(in); n++ {
			if _, out, got := cut(split(in, n)...); string(out) != want || !slices.Equal(got, acks) {
				t.Fatalf("cut behind every %d bytes: %q is forwarded with acknowledgements %q\nwant %q with %q", n, out, got, want, acks)
			}
		}
	}
	same := func(in string, acks ...string) {
		t.Helper()
		f(in, in, acks...)
	}
	ack := `{"stream":"S","seq":1}`
	same("PING\r\nPONG\r\n+OK\r\n-ERR 'Permissions Violation'\r\n")
	same("MSG _INBOX.a.1 1 22\r\n"+ack+"\r\nPING\r\n", ack)
	same("MSG _INBOX.a.1 1 reply.to 22\r\n"+ack+"\r\nPING\r\n", ack)
	same("HMSG _INBOX.a.1 1 12 34\r\nNATS/1.0\r\n\r\n"+ack+"\r\nPING\r\n", ack)
	same("HMSG _INBOX.a.1 1 reply 12 34\r\nNATS/1.0\r\n\r\n"+ack+"\r\nMSG _INBOX.a 1 22\r\n"+ack+"\r\n", ack, ack)
	same("MSG other.a 1 22\r\n" + ack + "\r\nPING\r\n")
	same("HMSG _INBOX.a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\nPING\r\n") // no responders
	same("MSG _INBOX.a 1 0\r\n\r\nMSG a 1 0\r\n\r\nPING\r\n")
	// A payload that looks like frames is none.
	same("MSG a 1 44\r\nMSG _INBOX.a.1 1 22\r\n" + ack + "\r\n\r\nPING\r\n")
	// Behind what can not be understood nothing is looked at.
	same("MSG _INBOX.a 1 21\r\n" + ack + "\r\nMSG _INBOX.a 1 22\r\n" + ack + "\r\n")
	same("MSG _INBOX.a 22\r\n" + ack + "\r\nMSG _INBOX.a 1 22\r\n" + ack + "\r\n")
	same("MSG _INBOX.a 1 -5\r\n" + ack + "\r\nMSG _INBOX.a 1 22\r\n" + ack + "\r\n")
	same("MSG _INBOX.a 1 99999999999999999999\r\n" + ack + "\r\n")
	same("HMSG _INBOX.a 1 23 22\r\n" + ack + "\r\nMSG _INBOX.a 1 22\r\n" + ack + "\r\n")
	same("HMSG\r\n")
	same("HMSG \r\nx")
	same("\x16\x03\x01MSG _INBOX.a 1 22\r\n" + ack + "\r\n")
	same("PINGS\r\nMSG _INBOX.a 1 22\r\n" + ack + "\r\n")
	same("-ERR " + strings.Repeat("x", 300) + "\r\n")

	f(`INFO {"a":1,"connect_urls":["127.0.0.1:1"],"ws_connect_urls":["x"],"z":[18446744073709551615]}`+" \r\nPING\r\n", `INFO {"a":1,"z":[18446744073709551615]}`+"\r\nPING\r\n")
	same("INFO {\"z\":1,  \"a\":2} \r\nPING\r\n")
	same("INFO {\"connect_urls\" \r\nPING\r\n")
	same("INFO \r\n")
}

// TestFramesAtOnce proves that bytes of unknown meaning do not wait for a line's end: a TLS handshake has none.
func TestFramesAtOnce(t *testing.T) {
	if _, out, _ := cut([]byte("INFO {}\r\n\x16\x03")); string(out) != "INFO {}\r\n\x16\x03" {
		t.Errorf("%q", out)
	}
	long := "-ERR " + strings.Repeat("x", maxLine)
	if f, out, _ := cut(split(long, 1000)...); string(out) != long || !f.raw {
		t.Errorf("%d of %d bytes of an endless line came through", len(out), len(long))
	}
}

func TestIsAck(t *testing.T) {
	f := func(payload string, want bool) {
		t.Helper()
		if isAck([]byte(payload)) != want {
			t.Errorf("%s: %v", payload, !want)
		}
	}
	f(`{"stream":"S","seq":1}`, true)
	f(`{"stream":"S","domain":"d","seq":1,"duplicate": true}`, true)
	f(`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}`, true)
	f(`{"type":"ack","seq":3,"msgs":10}`, true)
	f(`{"type":"gap","last_seq":1,"seq":3}`, true)
	f(`{"type":"err","seq":3,"error":{"code":400}}`, true)
	f(`{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","stream":"S","seq":1}`, false)
	f(`{"stream":"S"}`, false)
	f(`{"seq":1}`, false)
	f(`{"stream":"S","seq":-1}`, false)
	f(`+ACK`, false)
	f(``, false)
	f(`{`, false)
}

// FuzzFrames offers a stream in two ways of cutting it: both forward the same, which is the input but for INFO lines
// and what is held back, and no claim of a length makes the parser keep more than its limit.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("INFO {\"connect_urls\":[]}\r\nMSG _INBOX.a 1 22\r\n{\"stream\":\"S\",\"seq\":1}\r\nPING\r\n"), 3)
	f.Add([]byte("HMSG _INBOX.a 1 12 34\r\nNATS/1.0\r\n\r\n{\"stream\":\"S\",\"seq\":1}\r\nMSG a 1 2000000000\r\nabc"), 7)
	f.Add([]byte("MSG _INBOX.a 1 16384\r\nabc"), 1)
	f.Add([]byte("\x16\x03\x01"), 1)
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		n = 1 + (n&0x7fffffff)%512
		one, out, acks := cut(slices.Clone(in))
		two, parts, partAcks := cut(split(string(in), n)...)
		if !bytes.Equal(out, parts) || !slices.Equal(acks, partAcks) || one.raw != two.raw || one.skip != two.skip {
			t.Fatalf("whole %q %q, in parts of %d %q %q", out, acks, n, parts, partAcks)
		}
		held := two.held
		if two.done {
			held = nil
		}
		if !bytes.Contains(in, []byte("connect_urls")) && !bytes.Contains(in, []byte(`\u`)) && string(in) != string(parts)+string(held) {
			t.Fatalf("%q became %q and %q", in, parts, held)
		}
		if limit := 2 * (maxLine + maxAck); cap(two.held) > limit {
			t.Fatalf("%d bytes are held, limit %d", cap(two.held), limit)
		}
	})
}
