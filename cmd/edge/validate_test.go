package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

// TestValidateConnect looks at real servers through the command line: posture, verdict and exit code.
func TestValidateConnect(t *testing.T) {
	srv := natstest.Start(t, natstest.Authorization(`users [
		{ user: admin, password: a }
		{ user: edge, password: e, permissions: { publish: { deny: "no.>" } } }
	]`))
	js := srv.JetStream(t, nats.UserInfo("admin", "a"))
	for _, c := range []jetstream.StreamConfig{
		{Name: "OUT", Subjects: []string{"out.>", "no.>"}, MaxBytes: 10 << 20, MaxMsgs: 1_000_000, Discard: jetstream.DiscardNew},
		{Name: "MEM", Subjects: []string{"mem.>"}, Storage: jetstream.MemoryStorage},
		{Name: "FULL", Subjects: []string{"full.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), "full.1", nil); err != nil {
		t.Fatal(err)
	}
	base := fmt.Sprintf(`url: %q, user: edge, password: e, `, srv.URL())
	f := func(sink string, want int, says ...string) {
		t.Helper()
		_, conf := folder(t, records(1), sink)
		code, stdout, stderr := edge(t, "validate", "-c", conf, "--connect")
		if code != want {
			t.Errorf("%s: exit %d, want %d: %s%s", sink, code, want, stdout, stderr)
		}
		for _, s := range says {
			if !strings.Contains(stdout+stderr, s) {
				t.Errorf("%s: %q is not in\n%s%s", sink, s, stdout, stderr)
			}
		}
	}
	f(base+`stream: OUT, subject: "out.{robot}"`, 0, "natstest 2.", "as user edge", "OUT, which lists out.>, no.>", "file, for ever, 1 replica, discard new, retention limits",
		"idempotent_batch, duplicate window 2m0s, publish mode single", "max_payload 1 MiB", "0 B of 10 MiB, 0 %; 0 of 1,000,000 messages, 0 %",
		"3 streams, no limit", "out.*: allowed", "acks           allowed", "verdict        ready", "edge.yaml: valid")
	f(base+`stream: NEW, create_stream: true, subject: "new.{robot}"`, 0, "NEW: not there, would be created for new.*", "verdict        ready")
	f(base+`stream: NEW, subject: "new.{robot}"`, 3, "verdict        fatal: stream: ", "create_stream: true", "sink out: ")
	f(base+`stream: MEM, subject: "mem.{robot}"`, 3, "is kept in memory", "file storage")
	f(base+`stream: FULL, subject: "full.{robot}"`, 0, "1 of 1 messages, 100 %", "max_msgs is nearly reached")
	f(base+`stream: OUT, subject: "no.{robot}"`, 3, "no.*: denied", "allow it, or correct subject")
	f(base+`stream: OUT, subject: "no.{robot}", on_denied: quarantine`, 0, "no.*: denied", "warning        the server denies no.*")
	f(strings.Replace(base, "password: e", "password: hunter2", 1)+`stream: OUT, subject: "out.{robot}"`, 3, "fatal: user: ", "correct user and password")
	f(`url: "nats://127.0.0.1:1", stream: OUT, subject: "out.{robot}"`, 1, "not reached: ", "connection refused")
	f(embeddedSink, 0, "embedded server: nothing is asked")
	f(base+`stream: OUT, subject: "out.{robot}", tls: { first: true }`, 3, "fatal: tls.first: ")
	f(base+`stream: OUT, subject: "out.{robt}"`, 2, "robt")
	if _, err := js.Stream(t.Context(), "NEW"); err == nil {
		t.Error("validation has created a stream")
	}
}

// TestValidateJSON: the same for programs, on stdout alone.
func TestValidateJSON(t *testing.T) {
	srv := natstest.Start(t)
	dir, conf := folder(t, records(1), fmt.Sprintf(`url: %q, token: "${file:token}", stream: OUT, create_stream: true, subject: "out.{robot}"`, srv.URL()))
	token := write(t, filepath.Join(dir, "token"), srv.Token())
	f := func(want int, connect bool) (got found) {
		t.Helper()
		args := []string{"validate", "-c", conf, "--json"}
		if connect {
			args = append(args, "--connect")
		}
		code, stdout, stderr := edge(t, args...)
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != want || len(got.Sinks) != 1 || strings.Contains(stdout+stderr, srv.Token()) {
			t.Fatalf("exit %d, want %d: %v: %s%s", code, want, err, stdout, stderr)
		}
		return got
	}
	if s := f(0, false).Sinks[0]; s.ID != "out" || s.Verdict != "" || s.Stream != nil {
		t.Errorf("without --connect: %+v", s)
	}
	s := f(0, true).Sinks[0]
	if s.Verdict != "ready" || s.Stream == nil || !s.Stream.Missing || s.Stream.PublishMode != "single" || s.Account == nil || s.Acks != "allowed" || len(s.Publish) != 1 {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(token, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := f(3, true).Sinks[0]; s.Verdict != "fatal" || s.Code != "credentials" || s.Field != "token" || s.Fix == "" || s.Server != "" {
		t.Errorf("%+v", s)
	}
	srv.Kill()
	if s := f(1, true).Sinks[0]; s.Verdict != "unreachable" || s.Error == "" {
		t.Errorf("%+v", s)
	}
}
