package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small returns a configuration with these sinks, each the text behind "- id".
func small(sinks ...string) string {
	text := "agent: { id: a, data_dir: d }\n" +
		"datasets: [{ name: imu, identity: [robot] }, { name: gps, identity: [robot] }]\n" +
		"inputs: [{ id: in, kind: file, path: imu.ndjson, dataset: imu, map: { identity: { robot: /r } } }]\nsinks:\n"
	for i, s := range sinks {
		text += fmt.Sprintf("  - { id: s%d, kind: nats, %s }\n", i, s)
	}
	return text
}

// expect parses text and expects this one mistake, or none, and this one warning, or none.
func expect(t *testing.T, dir, text, mistake, warning string) {
	t.Helper()
	c, err := parse("edge.yaml", text, surroundings{dir: dir, env: env})
	switch {
	case mistake == "" && err != nil:
		t.Errorf("%s: got %v", text, err)
	case mistake != "" && (err == nil || strings.Count(err.Error(), "edge.yaml:") != 1 || !strings.Contains(err.Error(), mistake)):
		t.Errorf("%s: got %v, want %s", text, err, mistake)
	}
	if err != nil {
		return
	}
	if got := strings.Join(c.Warnings, "\n"); warning == "" && got != "" || warning != "" && (len(c.Warnings) != 1 || !strings.Contains(got, warning)) {
		t.Errorf("%s: got %q, want %q", text, got, warning)
	}
}

func TestOneStreamTwoSinks(t *testing.T) {
	dir := folder(t)
	const (
		mistake = `edge.yaml:6:`
		reason  = `sinks[1].config.stream: sinks[0] sends dataset "imu" to stream "A" of the same server already, and the stream would take the second message of an event for a repeat and drop it: name another stream, or keep one sink with a module`
	)
	f := func(a, b, mistake, warning string) {
		t.Helper()
		expect(t, dir, small("config: { subject: a, "+a+" }", "config: { subject: b, "+b+" }"), mistake, warning)
	}
	f(`url: "nats://h", stream: A`, `url: "nats://h", stream: A`, mistake, "")
	f(`url: "nats://h", stream: A`, `url: "nats://h", stream: A`, reason, "")
	f(`url: "nats://h", stream: A`, `url: "nats://H:4222/", stream: A`, reason, "")
	f(`url: "nats://h", stream: A`, `url: "tls://g, tls://h:4222", stream: A`, reason, "")
	f(`url: "embedded://", stream: A`, `url: "embedded://", stream: A`, reason, "")
	f(`url: "tls://h", stream: A, datasets: [imu]`, `url: "tls://h", stream: A, datasets: [gps, imu]`, reason, "")
	f(`url: "tls://h", stream: A, token: x`, `url: "tls://h", stream: A, token: x`, reason, "")
	f(`url: "tls://h", stream: A, user: x, password: y`, `url: "tls://h", stream: A, user: x, password: z`, reason, "")
	f(`url: "nats://127.0.0.1", stream: A`, `url: "nats://localhost:4222", stream: A`, reason, "")
	f(`url: "nats://127.0.0.1", stream: A`, `url: "nats://[::ffff:127.0.0.1]", stream: A`, reason, "")
	f(`url: "embedded://127.0.0.1:4300", stream: A`, `url: "nats://localhost:4300", stream: A`, reason, "")
	f(`url: "embedded://127.0.0.1:0", stream: A`, `url: "nats://localhost", stream: A`, "", "")
	f(`url: "nats://h", stream: A`, `url: "nats://h", stream: B`, "", "")
	f(`url: "nats://h", stream: A`, `url: "nats://g", stream: A`, "", "")
	f(`url: "nats://h", stream: A`, `url: "nats://h:4223", stream: A`, "", "")
	f(`url: "nats://h", stream: A`, `url: "embedded://", stream: A`, "", "")
	f(`url: "nats://h", stream: A, datasets: [imu]`, `url: "nats://h", stream: A, datasets: [gps]`, "", "")
	f(`url: "tls://h", stream: A, user: x, password: y`, `url: "tls://h", stream: A, user: z, password: y`, "", "edge.yaml:6:")
	f(`url: "tls://h", stream: A, user: x, password: y`, `url: "tls://h", stream: A, user: z, password: y`, "", `sinks[1].config.stream: sinks[0] sends dataset "imu" to a stream of this name on the same server: if both are of one account`)
	// Of three, each is reported once.
	expect(t, dir, small(`config: { subject: a, url: "nats://h", stream: A }`, `config: { subject: b, url: "nats://h", stream: B }`, `config: { subject: c, url: "nats://h", stream: A }`),
		`edge.yaml:7:74: sinks[2].config.stream: sinks[0] sends`, "")
}

func TestCreatedStream(t *testing.T) {
	dir := folder(t)
	f := func(rest, mistake string) {
		t.Helper()
		expect(t, dir, small(`config: { url: "embedded://", stream: A, create_stream: true, `+rest+` }`), mistake, "")
		expect(t, dir, small(`config: { url: "embedded://", stream: A, create_stream: false, `+rest+` }`), "", "")
		expect(t, dir, small(`transform: { module: m.wasm }, config: { url: "embedded://", stream: A, create_stream: true, `+rest+` }`), mistake, "")
	}
	f(`subject: "a.{robot}"`, "")
	f(`subject: "{robot}"`, "")
	f(`subject: "{dataset}.{robot}"`, `sinks[0].config.subject: with create_stream, "*.*" takes subjects of the server as well ($JS.>), and the server creates no such stream: begin it with a word, as in edge.*.*`)
	f(`subject: "{dataset}.{robot}"`, "edge.yaml:5:")
	f(`subject: "{dataset}.{robot}", allow_subjects: [imu.*, gps.*]`, "")
	f(`subject: "a.{robot}", allow_subjects: [a.*, ">"]`, `sinks[0].config.allow_subjects[1]: with create_stream, ">" takes every subject there is`)
	f(`subject: "a.{robot}", allow_subjects: ["*.>"]`, `"*.>" takes subjects of the server as well`)
	f(`subject: "a.{robot}", allow_subjects: ["*", a.*]`, "")
	f(`subject: "a.{robot}", allow_subjects: [a.*, b.>, a.x]`, `sinks[0].config.allow_subjects[2]: with create_stream, "a.x" overlaps with "a.*"`)
	f(`subject: "a.{robot}", allow_subjects: [a.*, a.*]`, `"a.*" overlaps with "a.*"`)
}

func TestRawNeedsModule(t *testing.T) {
	dir := folder(t)
	f := func(sink, warning string) {
		t.Helper()
		text := strings.Replace(small(sink), "map: { identity: { robot: /r } }", "format: raw", 1)
		expect(t, dir, text, "", warning)
	}
	const out = `config: { url: "embedded://", stream: A, subject: a`
	f(out+" }", `edge.yaml:3:72: inputs[0].format: raw bodies are no records, and sinks[0] has no module that makes messages of them: it rejects every one (not_a_record): give it a transform, or datasets without "imu"`)
	f(out+", datasets: [gps] }", "")
	f("transform: { module: m.wasm }, "+out+" }", "")
}

func TestNotRegular(t *testing.T) {
	dir := folder(t)
	f := func(path string) {
		t.Helper()
		const sink = `config: { url: "embedded://", stream: A, subject: a }`
		text := strings.Replace(small(sink), "imu.ndjson", path, 1)
		expect(t, dir, text, fmt.Sprintf(`edge.yaml:3:38: inputs[0].path: %q is not a regular file: name one, or read a pipe as kind: stdin`, path), "")
		expect(t, dir, small("transform: { module: "+path+" }, "+sink), fmt.Sprintf(`edge.yaml:5:48: sinks[0].transform.module: %q is not a regular file: name one`, path), "")
	}
	f(os.DevNull)
	for _, name := range irregular(t, dir) {
		f(name)
	}
	if err := os.Symlink(filepath.Join(dir, "imu.ndjson"), filepath.Join(dir, "link")); err == nil { // not everybody may on Windows
		expect(t, dir, strings.Replace(small(`config: { url: "embedded://", stream: A, subject: a }`), "imu.ndjson", "link", 1), "", "")
	}
}
