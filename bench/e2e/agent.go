package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// buildBinaries builds what is measured, from this tree: the agent, and the server that go.mod names.
func buildBinaries(dir string) (edge, natsServer string, err error) {
	edge, natsServer = filepath.Join(dir, "edge"), filepath.Join(dir, "nats-server")
	if runtime.GOOS == "windows" {
		edge, natsServer = edge+".exe", natsServer+".exe"
	}
	for out, pkg := range map[string]string{edge: "edge/cmd/edge", natsServer: "github.com/nats-io/nats-server/v2"} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("build %s (run this inside the repository): %w\n%s", pkg, err, b)
		}
	}
	return edge, natsServer, nil
}

// agentConfig is the configuration of one run.
func agentConfig(o options, dir, events, url, token string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("agent: { id: bench, data_dir: %q }", filepath.Join(dir, "data"))
	p("datasets: [ { name: imu, identity: [site, robot] } ]")
	p("inputs:")
	p("  - id: events")
	if o.stdin {
		p("    kind: stdin")
	} else {
		p("    kind: file")
		p("    path: %q", events)
	}
	p("    dataset: imu")
	p("    format: json")
	p("    map: { id: /id, time: /ts, identity: { site: /site, robot: /robot } }")
	p("sinks:")
	p("  - id: nats-out")
	p("    kind: nats")
	if o.module != "builtin" {
		p("    transform: { module: %q, config: { unit: si }, limits: { memory: %s } }", o.module, o.memory)
	}
	p("    config:")
	p("      url: %q", url)
	if token != "" {
		p("      token: %q", token)
	}
	p("      stream: EDGE")
	p("      create_stream: true")
	p("      duplicate_window: 2m")
	p("      subject: edge.{dataset}.{robot}")
	if o.window > 0 {
		p("      max_in_flight: %d", o.window)
	}
	return b.String()
}

// agentRun is what one run of the agent has cost and says of itself.
type agentRun struct {
	began   time.Time
	cpu     time.Duration
	peakRSS int64 // bytes; 0 where the system does not tell
	summary map[string]any
}

// runAgent runs the agent to its end. Its log goes to a file and comes back in the error only.
func runAgent(o options, edge, dir, config, events string) (agentRun, error) {
	var r agentRun
	path := filepath.Join(dir, "edge.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return r, err
	}
	log, err := os.Create(filepath.Join(dir, "edge.log"))
	if err != nil {
		return r, err
	}
	defer log.Close()
	cmd := exec.Command(edge, "run", "-c", path, "--once", "--json")
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, log
	if o.stdin {
		f, err := os.Open(events)
		if err != nil {
			return r, err
		}
		defer f.Close()
		cmd.Stdin = struct{ io.Reader }{f} // a plain reader, so that the agent gets a pipe and not the file
	}
	r.began = time.Now()
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start the agent: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	watch := time.NewTicker(20 * time.Millisecond)
	defer watch.Stop()
	for running := true; running; {
		select {
		case err = <-done:
			running = false
		case <-watch.C:
			r.peakRSS = max(r.peakRSS, highWater(cmd.Process.Pid))
		}
	}
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return r, fmt.Errorf("run the agent: %w\n%s%s", err, stdout.Bytes(), tail(text, 4000))
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err := json.Unmarshal(stdout.Bytes(), &r.summary); err != nil {
		return r, fmt.Errorf("read the agent's summary: %w\n%s", err, stdout.Bytes())
	}
	return r, nil
}

// highWater returns the most memory a process has had resident, in bytes, 0 if the system does not tell. The number
// that comes with a process's end is not used: on Linux it begins with the memory of the process that started it.
func highWater(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kb * 1024
		}
	}
	return 0
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
