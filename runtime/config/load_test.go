package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// whole uses every key there is.
const whole = `agent:
  id: edge-01.lab
  data_dir: state
  drain_time: 1m30s
datasets:
  - name: imu
    identity: [site, robot]
  - name: battery
    identity: [robot]
inputs:
  - id: imu-log
    kind: file
    path: imu.ndjson
    dataset: imu
    format: json
    max_line: 64KiB
    map: { id: /id, time: /header/stamp, time_format: unix_ns, quality: /q, identity: { site: /site, robot: /robot } }
  - id: pipe
    kind: stdin
    dataset: battery
    format: raw
sinks:
  - id: nats-out
    kind: nats
    transform:
      module: m.wasm
      sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
      config: { z: 1, a: [yes, true, null, 1.50, 0x1f, 123456789012345678901234567890, "q\"\n"], m: { t: 2026-10-10 } }
      limits: { memory: 64MiB, time: 20ms, input: 2MiB, output: 4096, fuel: 1000000 }
    retry: { min_backoff: 10ms, max_backoff: 2s }
    config:
      url: tls://nats.internal:4222, tls://other.internal
      stream: EDGE
      create_stream: true
      duplicate_window: 10m
      user: bob
      password: "${env:PASSWORD}"
      payload: json
      request_timeout: 300s
      max_in_flight: "${env:WINDOW:-512}"
      datasets: [imu]
      subject: edge.{dataset}.{site}.{robot}
      allow_subjects: ["edge.>"]
  - id: local
    kind: nats
    config: { url: "embedded://", stream: LOCAL, subject: "all.{dataset}.{robot}", token: "${file:secret}" }
  - id: secure
    kind: nats
    config:
      url: nats://far.internal
      stream: SECURE
      subject: one.subject
      creds_file: secret
      tls: { ca_file: secret, client_cert: secret, client_key: secret, first: true }
      discovered_servers: true
      publish_mode: atomic
      message_ttl: 1h
      binding: strict
      on_denied: quarantine
      max_in_flight_bytes: 1MiB
      datasets: ["imu"]
spool: { max_bytes: 2GiB }
quarantine: { max_bytes: 4194304 }
`

// rawWarning is what is to be said of whole's second input.
const rawWarning = `inputs[1].format: raw bodies are no records, and sinks[1] has no module that makes messages of them: it rejects every one (not_a_record): give it a transform, or datasets without "battery"`

// folder makes the files that whole names.
func folder(t testing.TB) string {
	dir := t.TempDir()
	for name, text := range map[string]string{"imu.ndjson": "{}\n", "m.wasm": "", "secret": "hunter2-token\n", "long": strings.Repeat("x", maxReferenced+1), "bin": "\xff\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func env(name string) (string, bool) {
	v, ok := map[string]string{"PASSWORD": "hunter2-password", "EMPTY": "", "TEN": "10", "QUOTE": "a\"b\\c\nhunter2"}[name]
	return v, ok
}

func TestLoadWhole(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(dir, "edge.yaml")
	t.Setenv("PASSWORD", "hunter2-password")
	secret := filepath.Join(dir, "secret")
	want := &Config{
		File:     file,
		Agent:    Agent{ID: "edge-01.lab", DataDir: filepath.Join(dir, "state"), DrainTime: 90 * time.Second},
		Datasets: []Dataset{{Name: "imu", Identity: []string{"site", "robot"}}, {Name: "battery", Identity: []string{"robot"}}},
		Inputs: []Input{
			{ID: "imu-log", Kind: KindFile, Path: filepath.Join(dir, "imu.ndjson"), Dataset: "imu", Format: FormatJSON, MaxLine: 64 << 10,
				Map: Map{ID: "/id", Time: "/header/stamp", TimeFormat: TimeUnixNano, Quality: "/q", Identity: map[string]string{"site": "/site", "robot": "/robot"}}},
			{ID: "pipe", Kind: KindStdin, Dataset: "battery", Format: FormatRaw, MaxLine: DefaultMaxLine},
		},
		Sinks: []Sink{
			{ID: "nats-out", Kind: KindNATS,
				Transform: &Transform{Module: filepath.Join(dir, "m.wasm"), SHA256: strings.Repeat("0123456789abcdef", 4),
					Config: []byte(`{"z":1,"a":["yes",true,null,1.50,31,123456789012345678901234567890,"q\"\n"],"m":{"t":"2026-10-10"}}`),
					Limits: TransformLimits{Memory: 64 << 20, Output: 4096, Input: 2 << 20, Time: 20 * time.Millisecond, Fuel: 1000000}},
				NATS: NATS{URL: "tls://nats.internal:4222, tls://other.internal", Subject: "edge.{dataset}.{site}.{robot}", Stream: "EDGE", CreateStream: true,
					DuplicateWindow: 10 * time.Minute, User: "bob", Password: NewSecret("hunter2-password"), Payload: "json",
					RequestTimeout: 300 * time.Second, MaxInFlight: 512, Datasets: []string{"imu"}, AllowSubjects: []string{"edge.>"},
					Binding: "template", PublishMode: "single", OnDenied: "halt", MaxInFlightSize: 8 << 20},
				Retry: Retry{MinBackoff: 10 * time.Millisecond, MaxBackoff: 2 * time.Second}},
			{ID: "local", Kind: KindNATS,
				NATS: NATS{URL: "embedded://", Subject: "all.{dataset}.{robot}", Stream: "LOCAL", DuplicateWindow: 2 * time.Minute, Token: NewSecret("hunter2-token"), TokenFile: secret,
					Payload: "json", RequestTimeout: 10 * time.Second, MaxInFlight: 256, Datasets: []string{"imu", "battery"},
					Binding: "template", PublishMode: "single", OnDenied: "halt", MaxInFlightSize: 8 << 20},
				Retry: Retry{MinBackoff: 250 * time.Millisecond, MaxBackoff: 30 * time.Second}},
			{ID: "secure", Kind: KindNATS,
				NATS: NATS{URL: "nats://far.internal", Subject: "one.subject", Stream: "SECURE", DuplicateWindow: 2 * time.Minute, CredsFile: secret,
					TLS: TLS{CAFile: secret, ClientCert: secret, ClientKey: secret, First: true}, Discovered: true,
					Binding: "strict", PublishMode: "atomic", OnDenied: "quarantine", MessageTTL: time.Hour, MaxInFlightSize: 1 << 20,
					Payload: "json", RequestTimeout: 10 * time.Second, MaxInFlight: 256, Datasets: []string{"imu"}},
				Retry: Retry{MinBackoff: 250 * time.Millisecond, MaxBackoff: 30 * time.Second}},
		},
		Spool:      Spool{MaxBytes: 2 << 30},
		Quarantine: Quarantine{MaxBytes: 4 << 20},
	}
	f := func(text string, line int) {
		t.Helper()
		want.Warnings = []string{fmt.Sprintf("%s:%d:13: %s", file, line, rawWarning)}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		if got, want := got.Levels(&got.Sinks[1]), []string{"robot"}; !reflect.DeepEqual(got, want) {
			t.Fatalf("levels that both datasets have: got %q, want %q", got, want)
		}
	}
	f(whole, 21)
	f("\uFEFF---\n"+strings.ReplaceAll(whole, "\n", "\r\n"), 22)
	f("# a comment\n"+strings.ReplaceAll(whole, "    kind: stdin", "    kind: stdin # here"), 22)
}

func TestMistakes(t *testing.T) {
	dir := folder(t)
	// f replaces one text of whole and expects exactly these mistakes, each as "line:column: message".
	f := func(old, new string, want ...string) {
		t.Helper()
		if strings.Count(whole, old) != 1 {
			t.Fatalf("%q is %d times in the text", old, strings.Count(whole, old))
		}
		_, err := parse("edge.yaml", strings.Replace(whole, old, new, 1), surroundings{dir: dir, env: env})
		var all *Errors
		if !errors.As(err, &all) {
			t.Fatalf("%q: got %v, want mistakes", new, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("%q: a secret is in the error:\n%v", new, err)
		}
		var got []string
		for _, e := range all.List {
			head, _, _ := strings.Cut((&Errors{File: "f", List: []Error{e}}).Error(), "\n")
			got = append(got, strings.TrimPrefix(head, "f:"))
			if e.Line > 0 && e.Excerpt == "" && !strings.Contains(e.Path, "password") && !strings.Contains(e.Path, "token") {
				t.Errorf("%q: no excerpt for %q", new, head)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q: got %q, want %q", new, got, want)
			return
		}
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%q: got %q, want %q", new, got[i], want[i])
			}
		}
	}
	// keys
	f("  drain_time: 1m30s", "  drain_tme: 1m30s", `4:3: unknown key "drain_tme" (did you mean "drain_time"?)`)
	f("  drain_time: 1m30s", "  id: again", `4:3: key "id" is given twice, first in line 2: keep one`)
	f("  drain_time: 1m30s", "  drain_time:", `4:3: key "drain_time" has no value`)
	f("  data_dir: state\n", "", `1:1: agent: missing key "data_dir"`)
	f("spool: { max_bytes: 2GiB }", "spol: { max_bytes: 2GiB }", `unknown key "spol" (did you mean "spool"?)`)
	f("spool: { max_bytes: 2GiB }", "status: { listen: 1 }", `unknown key "status" (known here: agent, datasets, inputs, sinks, spool, quarantine)`)
	f("spool: { max_bytes: 2GiB }", "spool: 3", `spool: expected a mapping, got a number`)
	f("    identity: [robot]", "    identity: robot", `9:15: datasets[1].identity: expected a list, got a text`)
	f("  - id: pipe", "  -", `19:5: inputs[1]: missing key "id"`)
	f("      stream: EDGE\n", "", `sinks[0].config: missing key "stream"`)
	// texts
	f("id: edge-01.lab", "id: 17", `2:7: agent.id: expected a text, got a number: put it into quotes`)
	f("id: edge-01.lab", "id: ''", `2:7: agent.id: "" is no name`)
	f("id: edge-01.lab", "id: a b", `2:7: agent.id: "a b" is no name: use letters, digits, dots, - and _ only`)
	f("id: edge-01.lab", "id: [a]", `agent.id: expected a text, got a list`)
	f("data_dir: state", "data_dir: ''", `agent.data_dir: may not be empty`)
	f("id: pipe", "id: imu-log", `18:9: id "imu-log" is taken by inputs[0]: give each its own`)
	f("id: local", "id: nats-out", `id "nats-out" is taken by sinks[0]`)
	f("name: battery", "name: im.u", `datasets[1].name: "im.u" is no name`, `inputs[1].dataset: dataset "battery" is not declared`)
	f("identity: [site, robot]", "identity: [site, robot, dataset]", `"dataset" is not usable as a level`)
	f("identity: [site, robot]", "identity: [site, robot, _x]", `names that begin with _ belong to the envelope`)
	f("identity: [site, robot]", "identity: [site, robot, site]", `7:29: datasets[0].identity[2]: level "site" is given twice`)
	// inputs
	f("kind: stdin", "kind: stdinn", `19:11: inputs[1].kind: unknown value "stdinn" (did you mean "stdin"?)`)
	f("kind: stdin", "kind: http", `inputs[1].kind: unknown value "http" (known here: file, stdin)`)
	f("kind: stdin", "kind: stdin\n    path: x.ndjson", `inputs[1].path: stat`, `inputs[1].path: stdin has no path`)
	f("    path: imu.ndjson\n", "", `inputs[0]: missing key "path"`)
	f("path: imu.ndjson", "path: folder", `13:11: inputs[0].path: "folder" is a folder`)
	f("path: imu.ndjson", "path: nope", `13:11: inputs[0].path: stat`)
	f("dataset: imu", "dataset: imv", `14:14: inputs[0].dataset: dataset "imv" is not declared (did you mean "imu"?)`)
	f("kind: file\n    path: imu.ndjson", "kind: stdin", `18:11: inputs[0] reads stdin already`)
	f("map: { id: /id,", "map: { id: id,", `inputs[0].map.id: json pointer "id": must begin with "/"`)
	f("map: { id: /id,", "map: { id: '',", `inputs[0].map.id: json pointer`)
	f("time: /header/stamp, ", "", `inputs[0].map.time_format: there is no time to read`)
	f("time_format: unix_ns", "time_format: unix", `unknown value "unix" (did you mean "unix_s"?)`)
	f("identity: { site: /site,", "identity: { sit: /site,", `17:89: inputs[0].map.identity: dataset "imu" has no level "sit" (did you mean "site"?)`)
	f("identity: { site: /site,", "identity: { robot: /r,", `key "robot" is given twice`)
	f("    format: raw", "    format: raw\n    map: { id: /id }", `inputs[1].map: a raw body has no fields`)
	f("max_line: 64KiB", "max_line: 0", `inputs[0].max_line: "0" is out of bounds: from 64 to 32MiB`)
	// numbers, sizes, durations
	f("max_line: 64KiB", "max_line: 64KB", `inputs[0].max_line: "64KB" is no size`)
	f("max_line: 64KiB", "max_line: -1", `inputs[0].max_line: "-1" is out of bounds`)
	f("max_line: 64KiB", "max_line: 1.5MiB", `is no size: write a whole number`)
	f("max_line: 64KiB", "max_line: '65536'", `expected a size such as 16MiB, got a text in quotes`)
	f("max_line: 64KiB", "max_line: 99999999999999999999", `is no size`)
	f("max_bytes: 2GiB", "max_bytes: 8388608TiB", `"8388608TiB" is out of bounds`)
	f("max_bytes: 2GiB", "max_bytes: 1MiB", `"1MiB" is out of bounds: from 8MiB`)
	f("max_bytes: 4194304", "max_bytes: 1", `quarantine.max_bytes: "1" is out of bounds`)
	f("drain_time: 1m30s", "drain_time: 90", `agent.drain_time: "90" is no duration: write 250ms, 10s, 2m or 1h`)
	f("drain_time: 1m30s", "drain_time: 0s", `agent.drain_time: "0s" is out of bounds`)
	f("drain_time: 1m30s", "drain_time: -1s", `agent.drain_time: "-1s" is out of bounds`)
	f("request_timeout: 300s", "request_timeout: 301s", `sinks[0].config.request_timeout: "301s" is out of bounds`)
	f(`"${env:WINDOW:-512}"`, "0", `sinks[0].config.max_in_flight: "0" is out of bounds: from 1 to 1024`)
	f(`"${env:WINDOW:-512}"`, "1025", `from 1 to 1024`)
	f(`"${env:WINDOW:-512}"`, "010", `expected a whole number, got "010"`)
	f(`"${env:WINDOW:-512}"`, "1.5", `expected a whole number`)
	f(`"${env:WINDOW:-512}"`, "'5'", `expected a number, got a text in quotes`)
	f("create_stream: true", "create_stream: yes", `expected true or false, got "yes"`)
	f("create_stream: true", "create_stream: 1", `expected true or false, got "1"`)
	f("min_backoff: 10ms", "min_backoff: 10s", `sinks[0].retry: min_backoff 10s is longer than max_backoff 2s`)
	f("memory: 64MiB", "memory: 0", `sinks[0].transform.limits.memory: "0" is out of bounds`)
	f("fuel: 1000000", "fuel: -5", `sinks[0].transform.limits.fuel: "-5" is out of bounds`)
	f("time: 20ms", "time: off", `sinks[0].transform.limits.time: "off" is no duration`)
	// sinks
	f("module: m.wasm", "module: n.wasm", `26:15: sinks[0].transform.module: stat`)
	f(`sha256: "0123`, `sha256: "X123`, `is no SHA-256`)
	f("config: { z: 1,", "config: { z: 1, z: 2,", `key "z" is given twice`)
	f("config: { z: 1,", "config: { z: .nan,", `sinks[0].transform.config.z: ".nan" is no number that JSON has`)
	f("config: { z: 1, a: [yes, true, null, 1.50, 0x1f, 123456789012345678901234567890, \"q\\\"\\n\"], m: { t: 2026-10-10 } }", "config: 3", `sinks[0].transform.config: expected a mapping for the module, got a number`)
	f("stream: EDGE", "stream: ED.GE", `sinks[0].config.stream: "ED.GE" is no stream name`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: http://x", `unknown scheme`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: nats.internal:4222", `sinks[0].config.url: "nats.internal:4222" has an unknown scheme`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: 'tls://'", `names no host`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: tls://h:99999", `no usable port`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: nats://a, embedded://", `mixes the embedded server`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: embedded://0.0.0.0:4222", `the embedded server listens on 127.0.0.1`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: embedded://nats.internal:4222", `is not on loopback`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: embedded://127.0.0.1", `names a host without a port`)
	f("subject: edge.{dataset}.{site}.{robot}", "subject: edge.pre-{robot}", `sinks[0].config.subject: subject template "edge.pre-{robot}": token "pre-{robot}"`)
	f("subject: edge.{dataset}.{site}.{robot}", "subject: edge.{sit}", `token "{sit}"`)
	f(`subject: "all.{dataset}.{robot}"`, `subject: "all.{site}"`, `sinks[1].config.subject: subject template "all.{site}": token "{site}"`)
	f(`subject: "all.{dataset}.{robot}", `, ``, `sinks[1].config: missing key "subject"`)
	f(`allow_subjects: ["edge.>"]`, `allow_subjects: ["edge.>.x"]`, `sinks[0].config.allow_subjects: "edge.>.x" is no subject pattern`)
	f("datasets: [imu]", "datasets: [imx]", `sinks[0].config.datasets: dataset "imx" is not declared (did you mean "imu"?)`)
	f("datasets: [imu]", "datasets: [imu, imu]", `"imu" is given twice`)
	f("datasets: [imu]", "datasets: []", `an empty list`)
	f("      subject: edge.{dataset}.{site}.{robot}\n      allow_subjects: [\"edge.>\"]\n", "", `34:22: sinks[0].config.create_stream: nothing says what the stream listens to`)
	f(`stream: LOCAL, `, `allow_subjects: [other.>, "all.*"], stream: LOCAL, `, `sinks[1].config.allow_subjects: none of them takes a subject of "all.{dataset}.{robot}", so every event would wait in quarantine: add "all.*.*"`)
	f(`spool: { max_bytes: 2GiB }`, `  - { id: third, kind: nats, config: { url: "embedded://127.0.0.1:4222", stream: T, subject: t } }`+"\nspool: { max_bytes: 2GiB }",
		`sinks[3].config: there is one embedded server: give it the url and token of sinks[1]`)
	f(`allow_subjects: ["edge.>"]`, `allow_subjects: ["$JS.>"]`, `subjects under $ belong to the server`)
	f(`url: "embedded://"`, `url: "embedded:///"`, `has something behind host and port`)
	f("user: bob\n", "token: hunter2\n", `sinks[0].config: both token and password: keep one`)
	f("creds_file: secret", "creds_file: secret\n      nkey_file: secret", `sinks[2].config: both creds_file and nkey_file: keep one`)
	f("creds_file: secret", "creds_file: secret\n      token: hunter2", `sinks[2].config: both token and creds_file: keep one`)
	f("creds_file: secret", "creds_file: nope", `sinks[2].config.creds_file: stat`)
	f("creds_file: secret", "nkey_file: folder", `sinks[2].config.nkey_file: "folder" is a folder`)
	f("creds_file: secret", "cred_file: secret", `unknown key "cred_file" (did you mean "creds_file"?)`)
	f("ca_file: secret", "ca_file: nope", `sinks[2].config.tls.ca_file: stat`)
	f("ca_file: secret", "cafile: secret", `unknown key "cafile" (did you mean "ca_file"?)`)
	f("client_cert: secret, ", "", `client_key without client_cert`)
	f("client_key: secret, ", "", `client_cert without client_key`)
	f("first: true", "first: maybe", `expected true or false`)
	f("url: nats://far.internal", "url: embedded://", `sinks[2].config: there is one embedded server`, `the embedded server knows a token only`, `speaks no TLS`)
	f("publish_mode: atomic", "publish_mode: atomc", `unknown value "atomc" (did you mean "atomic"?)`)
	f("on_denied: quarantine", "on_denied: quarantin", `(did you mean "quarantine"?)`)
	f("message_ttl: 1h", "message_ttl: 1500ms", `"1500ms" has a fraction of a second`)
	f("message_ttl: 1h", "message_ttl: 0s", `is out of bounds`)
	f("max_in_flight_bytes: 1MiB", "max_in_flight_bytes: 1KiB", `"1KiB" is out of bounds: from 64KiB to 16MiB`)
	f("binding: strict", "binding: loose", `unknown value "loose"`)
	f("subject: one.subject", "subject: one.{dataset}", `a strict binding is to one subject without placeholders`)
	f("subject: one.subject", "subject: one.größe", `a strict binding takes letters, digits`)
	f("subject: one.subject\n", "allow_subjects: [one.subject]\n", `missing key "subject"`, `a strict binding allows its subject only`, `a strict binding is to one subject: give it`)
	f("      user: bob\n", "", `password without user`)
	f("user: bob\n", "user: bob\n      pasword: hunter2\n", `unknown key "pasword" (did you mean "password"?)`)
	f("user: bob\n", "user: bob\n      tokne: hunter2\n", `unknown key "tokne" (did you mean "token"?)`)
	f(`"${env:PASSWORD}"`, "[hunter2]", `sinks[0].config.password: expected a text, got a list`)
	f(`"${env:PASSWORD}"`, "1234", `sinks[0].config.password: expected a text, got a number`)
	f(`"${env:PASSWORD}"`, `"${env:QUOTE}"`, `holds a line break`)
	f("url: tls://nats.internal:4222, tls://other.internal", "url: tls://bob:hunter2@h:1", `holds a credential: give it as token`)
	// references
	f(`"${env:PASSWORD}"`, `"${env:NOPE}"`, `37:17: sinks[0].config.password: environment variable NOPE is not set: set it`)
	f(`"${env:PASSWORD}"`, `"${env:EMPTY}"`, `sinks[0].config.password: may not be empty`)
	f(`"${env:PASSWORD}"`, `"${env:1}"`, `"1" is no name of an environment variable`)
	f(`"${env:PASSWORD}"`, `"${vault:x}"`, `unknown reference ${vault...}`)
	f(`"${env:PASSWORD}"`, `"${env:PASSWORD"`, `"${" without "}"`)
	f("${file:secret}", "${file:nope}", `sinks[1].config.token: read referenced file: stat`)
	f("${file:secret}", "${file:folder}", `it is not a regular file`)
	f("${file:secret}", "${file:long}", `it is larger than 65536 bytes`)
	f("${file:secret}", "${file:bin}", `it is not UTF-8`)
	f("stream: EDGE", "stream: ${env:PASSWORD}.x", `sinks[0].config.stream: what the reference brought in is no stream name`)
	f("stream: EDGE", `stream: "${env:QUOTE}"`, `what the reference brought in is no stream name`)
	f("subject: edge.{dataset}.{site}.{robot}", "subject: ${env:PASSWORD}.{nope}", `sinks[0].config.subject: subject template "[redacted].{nope}"`)
	f("id: pipe", "id: ${env:PASSWORD}\n    kind: stdin\n    dataset: imu\n  - id: ${env:PASSWORD}", `is taken by inputs[1]`, `inputs[1] reads stdin already`)
	// several at once, in the order of the file
	f("  data_dir: state\n  drain_time: 1m30s\n", "  data_dri: state\n  drain_time: 5\n", `1:1: agent: missing key "data_dir"`, `3:3: unknown key "data_dri"`, `4:15: agent.drain_time`)
}

func TestNotAConfiguration(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := parse("edge.yaml", text, surroundings{dir: t.TempDir(), env: env})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %s", text, err, want)
		}
	}
	f("", "edge.yaml: is empty: a configuration needs")
	f("# only a comment\n", "edge.yaml: is empty")
	f("---\n", "edge.yaml: is empty")
	f("agent", "edge.yaml:1:1: expected a mapping, got a text")
	f("- agent\n", "edge.yaml:1:1: expected a mapping, got a list")
	f("17", "edge.yaml:1:1: expected a mapping, got a number")
	f("agent:\n\tid: x\n", "edge.yaml:2:1: not YAML: ")
	f("agent: [\n", "edge.yaml:1:8: not YAML: ")
	f("agent: \"x\n", "edge.yaml:1:8: not YAML: ")
	f("agent: {id: x}\n---\nagent: {id: y}\n", "edge.yaml:3:1: a second document begins")
	f("a: &x b\nc: *x\n", "edge.yaml:1:4: anchors are not supported")
	f("a: *x\n", "edge.yaml:1:4: aliases are not supported")
	f("<<: {a: b}\n", "edge.yaml:1:1: merge keys are not supported")
	f("a: !!str b\n", "edge.yaml:1:4: tags are not supported")
	f("? a\n: b\n", "edge.yaml:1:1: keys that begin with")
	f("%YAML 1.2\n---\na: b\n", "edge.yaml:1:1: directives are not supported")
	f("a: \xff\n", "edge.yaml:1:4: a byte that is not UTF-8")
	f("é: \x00\n", "edge.yaml:1:4: control character 0x0")
	f("é: ü\nß: \xff", "edge.yaml:2:4: a byte that is not UTF-8")
	f("a: "+strings.Repeat("[", 70)+strings.Repeat("]", 70), "edge.yaml:1:68: more than 64 levels")
	f(strings.Repeat("- ", 70)+"a", "edge.yaml:1:129: more than 64 levels")
	f(strings.Repeat("[", 1<<19), "edge.yaml:1:20001: more than 20000 YAML tokens")
	f(strings.Repeat("a: b\n", 1<<17), "edge.yaml:6667:4: more than 20000 YAML tokens")
	f("a:\n"+func() (s string) {
		for i := range 80 {
			s += strings.Repeat(" ", i+1) + "a:\n"
		}
		return s
	}(), "edge.yaml:66:67: more than 64 levels")
}

func TestLoadUnreadable(t *testing.T) {
	dir := folder(t)
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#\n", maxFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(path, want string) {
		t.Helper()
		_, err := Load(path)
		var all *Errors
		if !errors.As(err, &all) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	f(filepath.Join(dir, "none.yaml"), "no such file")
	f(dir, "it is a folder: name the file in it")
	f(os.DevNull, "it is not a regular file")
	f(big, "it is larger than 1048576 bytes")
}

func TestSpoolHoldsLines(t *testing.T) {
	text := strings.NewReplacer("max_line: 64KiB", "max_line: 3MiB", "max_bytes: 2GiB", "max_bytes: 8MiB").Replace(whole)
	_, err := parse("edge.yaml", text, surroundings{dir: folder(t), env: env})
	if err == nil || !strings.Contains(err.Error(), "spool.max_bytes: 8MiB are too few for inputs[0].max_line 3MiB") {
		t.Fatalf("got %v", err)
	}
}

func TestWarnings(t *testing.T) {
	dir := folder(t)
	f := func(old, new string, want ...string) {
		t.Helper()
		c, err := parse("edge.yaml", strings.Replace(whole, old, new, 1), surroundings{dir: dir, env: env})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, rawWarning)
		if len(c.Warnings) != len(want) {
			t.Fatalf("got %q, want %q", c.Warnings, want)
		}
		for i := range want {
			if !strings.Contains(c.Warnings[i], want[i]) {
				t.Errorf("got %q, want %q", c.Warnings[i], want[i])
			}
		}
	}
	const url = "url: tls://nats.internal:4222, tls://other.internal"
	f(url, url)
	f(url, "url: nats://nats.internal", "edge.yaml:32:12: sinks[0].config.url: a credential goes over the network in the clear")
	f(url, "url: tls://a, nats://b", "in the clear")
	f(url, "url: nats://127.0.0.1:4222")
	f(url, "url: nats://[::1]:4222")
	f(url, "url: nats://localhost")
	f("identity: { site: /site, robot: /robot }", "identity: { site: /site }", `edge.yaml:11:5: inputs[0]: level "robot" of dataset "imu" is not mapped`)
}

func TestReferences(t *testing.T) {
	dir := folder(t)
	f := func(text, want string, foreign bool) {
		t.Helper()
		s := surroundings{dir: dir, env: env}
		got, f, err := s.expand(text)
		if err != nil || got != want || f != foreign {
			t.Errorf("%q: got %q, %v, %v, want %q, %v", text, got, f, err, want, foreign)
		}
	}
	f("plain", "plain", false)
	f("a $ b $$ {c}", "a $ b $$ {c}", false)
	f("$${env:TEN}", "${env:TEN}", false)
	f("a${env:TEN}b${env:TEN}", "a10b10", true)
	f("${env:NOPE:-}", "", true)
	f("${env:EMPTY:-x}", "x", true)
	f("${env:EMPTY}", "", true)
	f("${env:NOPE:-a:-b}", "a:-b", true)
	f("${file:secret}", "hunter2-token", true)
	f("${file:"+dir+"/secret}", "hunter2-token", true)
	f("${env:NOPE:-$${env}", "$${env", true) // what is brought in is not looked at again
}

func TestReferencesAreBounded(t *testing.T) {
	dir := folder(t)
	if err := os.WriteFile(filepath.Join(dir, "some"), []byte(strings.Repeat("x", maxReferenced)), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(whole, "config: { z: 1,", "config: { z: ["+strings.Repeat(`"${file:some}",`, 100)+"1],", 1)
	_, err := parse("edge.yaml", text, surroundings{dir: dir, env: env})
	if err == nil || !strings.Contains(err.Error(), "references bring in more than 1048576 bytes in all") {
		t.Fatalf("got %v", err)
	}
}
