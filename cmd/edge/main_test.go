package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
	"edge/runtime/status"
	"edge/wasm/wasmtest"
)

// TestMain lets the test binary be the agent, so that tests can kill a real process.
func TestMain(m *testing.M) {
	if os.Getenv("EDGE_TEST_AS_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// agent returns a command that runs edge in a process of its own.
func agent(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "EDGE_TEST_AS_MAIN=1")
	return cmd
}

// edge runs one invocation in this process.
func edge(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(append([]string{"edge"}, args...), streams{strings.NewReader(""), &out, &err})
	return code, out.String(), err.String()
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func records(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"n":%d,"robot":"r%d"}`+"\n", i, i%3)
	}
	return b.String()
}

// folder makes a folder with events and a configuration; sink is the inside of the sink's config.
func folder(t *testing.T, events, sink string) (dir, conf string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "in.ndjson"), events)
	return dir, write(t, filepath.Join(dir, "edge.yaml"), fmt.Sprintf(`agent: { id: cli-test, data_dir: data }
datasets: [ { name: test, identity: [robot] } ]
inputs: [ { id: in, kind: file, path: in.ndjson, dataset: test, map: { identity: { robot: /robot } } } ]
sinks:
  - id: out
    kind: nats
    retry: { min_backoff: 20ms, max_backoff: 200ms }
    config: { %s }
`, sink))
}

const embeddedSink = `url: "embedded://", stream: OUT, create_stream: true, subject: "out.{robot}"`

func TestExitCodes(t *testing.T) {
	dir, conf := folder(t, records(5), embeddedSink)
	good, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	variant := func(old, new string) string {
		t.Helper()
		if !strings.Contains(string(good), old) {
			t.Fatalf("the configuration has no %q", old)
		}
		f, err := os.CreateTemp(dir, "v*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(strings.Replace(string(good), old, new, 1)); err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	write(t, filepath.Join(dir, "bad.wasm"), "no module")
	write(t, filepath.Join(dir, "bomb.wasm"), "\x00asm\x01\x00\x00\x00\x02\x05\xff\xff\xff\xff\x0f")
	write(t, filepath.Join(dir, "echo.wasm"), string(wasmtest.Echo()))

	f := func(want int, says string, args ...string) {
		t.Helper()
		code, _, stderr := edge(t, args...)
		if code != want || !strings.Contains(stderr, says) {
			t.Errorf("edge %s: exit %d with %q, want %d with %q", strings.Join(args, " "), code, stderr, want, says)
		}
	}
	f(0, "", "--help")
	f(0, "", "run", "--help")
	f(0, "", "version")
	f(2, `no command "bogus"`, "bogus")
	f(2, "flag provided but not defined", "run", "--bogus")
	f(2, "flags stand behind their command", "-c", conf, "run")
	f(0, "", "--version")
	f(0, "", "help", "run")
	f(2, "needs a configuration", "run")
	f(2, "takes no argument", "run", "-c", conf, "extra")
	f(2, "no such file", "run", "-c", filepath.Join(dir, "none.yaml"))
	f(0, "", "validate", "-c", conf)
	f(2, "say where to look", "quarantine", "ls")
	f(2, `no command "lss"`, "quarantine", "lss")
	f(2, "no event id", "quarantine", "show", "-c", conf, "xyz")
	f(1, "has an agent run", "quarantine", "ls", "-c", conf)

	transform := func(text string) string {
		return variant("    kind: nats\n", "    kind: nats\n    transform: "+text+"\n")
	}
	for _, verb := range []string{"run", "validate"} {
		f(2, `:8:35: unknown key "strem"`, verb, "-c", variant("stream: OUT", "strem: OUT"))
		f(2, "edge_test_unset", verb, "-c", variant("stream: OUT", `stream: OUT, token: "${env:edge_test_unset}"`))
		f(2, "max_in_flight", verb, "-c", variant("stream: OUT", "stream: OUT, max_in_flight: many"))
		f(2, "in2.ndjson", verb, "-c", variant("path: in.ndjson", "path: in2.ndjson"))
		f(2, "none.wasm", verb, "-c", transform("{ module: none.wasm }"))
		f(2, "bad.wasm", verb, "-c", transform("{ module: bad.wasm }"))
		f(2, "bomb.wasm", verb, "-c", transform("{ module: bomb.wasm }"))
		f(2, "pins", verb, "-c", transform("{ module: echo.wasm, sha256: "+strings.Repeat("ab", 32)+" }"))
	}
	f(0, "", "validate", "-c", transform("{ module: echo.wasm }"))
}

// TestRunJSON: the summary has every documented key, the second run has nothing to do, and what was refused can be
// listed and shown.
func TestRunJSON(t *testing.T) {
	_, conf := folder(t, records(40)+"{ broken\n"+records(10), embeddedSink)
	code, stdout, stderr := edge(t, "run", "-c", conf, "--once", "--json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var keys map[string]any
	if err := json.Unmarshal([]byte(stdout), &keys); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("not one JSON object: %v: %q", err, stdout)
	}
	for _, k := range []string{"captured", "accepted", "duplicates", "dropped", "quarantined", "retries", "unknown_resolved", "spooled", "elapsed_s", "events_per_s"} {
		if _, ok := keys[k].(float64); !ok {
			t.Errorf("the summary has no number %q: %s", k, stdout)
		}
	}
	sink := keys["sinks"].([]any)[0].(map[string]any)
	for _, k := range []string{"id", "state", "delivery_class", "stream", "last_sequence", "module_digest", "publish_mode", "late_acks", "extra_acks", "unexpected_acks", "reconnects"} {
		if _, ok := sink[k]; !ok {
			t.Errorf("the sink has no %q: %s", k, stdout)
		}
	}
	if keys["captured"] != 51.0 || keys["accepted"] != 50.0 || keys["quarantined"] != 1.0 || sink["last_sequence"] != 50.0 {
		t.Errorf("summary %s", stdout)
	}

	_, stdout, _ = edge(t, "run", "-c", conf, "--once", "--json")
	var again status.Summary
	if err := json.Unmarshal([]byte(stdout), &again); err != nil || again.Captured != 0 || again.Accepted != 0 || !again.Balanced {
		t.Errorf("second run: %v: %s", err, stdout)
	}

	_, stdout, _ = edge(t, "quarantine", "ls", "-c", conf)
	for _, want := range []string{"in.ndjson:41", "not_json", "1 entry: 1 not_json"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("quarantine ls has no %q:\n%s", want, stdout)
		}
	}
	id := strings.Fields(strings.Split(stdout, "\n")[1])[3]
	code, stdout, stderr = edge(t, "quarantine", "show", "-c", conf, id)
	if code != 0 || !strings.Contains(stdout, "{ broken") || !strings.Contains(stdout, "in.ndjson:41") {
		t.Errorf("quarantine show: exit %d, %s\n%s", code, stderr, stdout)
	}
	for filter, want := range map[string]string{"--sink=out": "0 entries", "--sink=-": "1 entry", "--reason=not_json": "1 entry", "--reason=other": "0 entries"} {
		if _, stdout, _ = edge(t, "quarantine", "ls", "-c", conf, filter); !strings.Contains(stdout, want) {
			t.Errorf("quarantine ls %s: want %s:\n%s", filter, want, stdout)
		}
	}
}

// TestHalted: a sink that can never work ends the run with exit 3 and says what to do.
func TestHalted(t *testing.T) {
	srv := natstest.Start(t)
	_, conf := folder(t, records(50), fmt.Sprintf(`url: %q, token: %q, stream: NONE, subject: "out.{robot}"`, srv.URL(), srv.Token()))
	code, stdout, stderr := edge(t, "run", "-c", conf, "--once", "--json")
	if code != 3 || !strings.Contains(stderr, "create_stream") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	var s status.Summary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || s.Sinks[0].State != "failed" || s.Spooled != s.Captured || !s.Balanced {
		t.Errorf("%v: %s", err, stdout)
	}
}

// TestKilled: the agent is killed with -9 again and again, at places that a seed chooses, and in the end every
// event is stored exactly once.
func TestKilled(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	const n = 60_000
	dir, conf := folder(t, records(n), fmt.Sprintf(`url: %q, token: %q, stream: OUT, create_stream: true, subject: "out.{robot}"`, srv.URL(), srv.Token()))
	js := srv.JetStream(t)
	stored := func() uint64 {
		st, err := js.Stream(t.Context(), "OUT")
		if err != nil {
			return 0
		}
		return st.CachedInfo().State.Msgs
	}
	for kills := range 5 {
		cmd := agent(t, "run", "-c", conf, "--once")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		goal := uint64(n / 7 * (kills + 1))
		for stored() < goal {
			time.Sleep(time.Millisecond)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("the agent was to be killed and ended by itself: %v", err)
		}
	}
	out, err := agent(t, "run", "-c", conf, "--once", "--json").Output()
	if err != nil {
		t.Fatalf("last run: %v", err)
	}
	var s status.Summary
	if err := json.Unmarshal(out, &s); err != nil || !s.Balanced || s.Spooled != 0 {
		t.Errorf("last run: %v: %s", err, out)
	}
	st, err := js.Stream(t.Context(), "OUT")
	if err != nil {
		t.Fatal(err)
	}
	c, err := st.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make([]int, n)
	msgs, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer msgs.Stop()
	for range st.CachedInfo().State.Msgs {
		m, err := msgs.Next()
		if err != nil {
			t.Fatal(err)
		}
		var rec struct{ N int }
		if err := json.Unmarshal(m.Data(), &rec); err != nil {
			t.Fatal(err)
		}
		seen[rec.N]++
	}
	if i := slices.IndexFunc(seen, func(c int) bool { return c != 1 }); i >= 0 {
		t.Errorf("event %d is stored %d times (data in %s)", i, seen[i], dir)
	}
}

// TestSignal: SIGTERM ends a serving agent in order, with its summary and exit code 143.
func TestSignal(t *testing.T) {
	_, conf := folder(t, records(100), embeddedSink)
	f := func(sig syscall.Signal, want int) {
		t.Helper()
		cmd := agent(t, "run", "-c", conf)
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 8)
		if _, err := out.Read(first); err != nil { // the summary that says that all is settled
			t.Fatalf("%v: %s", err, log.String())
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		var rest bytes.Buffer
		if _, err := rest.ReadFrom(out); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("exit %d, want %d: %s", code, want, log.String())
		}
		if !strings.Contains(rest.String(), "sink out: settled") {
			t.Errorf("no summary at the end: %s", rest.String())
		}
	}
	f(syscall.SIGTERM, 143)
	f(syscall.SIGINT, 130)
}

// TestSignalWhileFailed: a serving agent whose sink is failed goes on, ends in order at a signal with the signal's exit
// code, and its summary says what is to be mended.
func TestSignalWhileFailed(t *testing.T) {
	srv := natstest.Start(t)
	_, conf := folder(t, records(50), fmt.Sprintf(`url: %q, token: %q, stream: NONE, subject: "out.{robot}"`, srv.URL(), srv.Token()))
	cmd := agent(t, "run", "-c", conf, "--json")
	var out bytes.Buffer
	cmd.Stdout = &out
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), `"state":"failed"`) {
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // to the end
	}
	cmd.Wait()
	var s status.Summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil || s.Sinks[0].State != "failed" || !strings.Contains(s.Sinks[0].Error, "create_stream") || !s.Balanced {
		t.Errorf("%v: %s", err, out.String())
	}
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit %d, want 143", code)
	}
}
