package transform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edge/envelope"
	"edge/wasm"
	"edge/wasm/wasmtest"
)

func event(body string) envelope.Event {
	return envelope.Event{
		ID: envelope.HashID("test", []byte(body)), Dataset: []byte("test"), Input: []byte("in"), Source: []byte("a.ndjson:1"),
		IngestTime: 1_700_000_000_000_000_000, EventTime: envelope.NoTime, Body: []byte(body),
		Identity: []envelope.Level{{Name: []byte("robot"), Value: []byte("r7")}},
	}
}

func template(t testing.TB, text string) *envelope.Template {
	t.Helper()
	tpl, err := envelope.ParseTemplate(text, []string{"robot"})
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// module returns a renderer over a guest, with limits that make hostile guests end soon.
func module(t testing.TB, code []byte, cfg Config) *Renderer {
	t.Helper()
	engine, err := wasm.NewEngine(wasm.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Limits == (wasm.Limits{}) {
		cfg.Limits = wasm.DefaultLimits()
		cfg.Limits.Fuel = 1 << 22
	}
	m, err := engine.Load(t.Context(), code, cfg.Limits)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Instance, err = m.NewInstance(t.Context(), wasm.InstanceConfig{}); err != nil {
		t.Fatal(err)
	}
	r := New(cfg)
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), m.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// outcome writes a batch's verdicts as a line each: "emit subject payload", "drop", "reject reason".
func outcome(out *Rendered) (lines []string) {
	for _, v := range out.Verdicts {
		switch v.Kind {
		case Emit:
			var s []string
			for i, m := range out.Messages[v.First : v.First+v.Count] {
				if m.Copy != i {
					s = append(s, fmt.Sprintf("BAD COPY %d", m.Copy))
				}
				s = append(s, fmt.Sprintf("emit %s %s", m.Subject, m.Payload))
			}
			lines = append(lines, strings.Join(s, "; "))
		case Drop:
			lines = append(lines, "drop")
		case Reject:
			lines = append(lines, "reject "+string(v.Reason))
		default:
			lines = append(lines, "NO VERDICT")
		}
	}
	return lines
}

func TestNative(t *testing.T) {
	r := New(Config{Template: template(t, "edge.{robot}"), Payload: 512})
	bad := event(`{"n":2}`)
	bad.Identity = []envelope.Level{{Name: []byte("robot"), Value: []byte("two tokens.here")}}
	raw := event("anything")
	raw.Kind = envelope.Raw
	events := []envelope.Event{event(`{"n":1}`), bad, raw, event(`{"x":"` + strings.Repeat("y", 600) + `"}`), event(`{"n":5}`)}
	var out Rendered
	for range 3 { // reuse changes nothing
		if err := r.Render(events, 1<<30, &out); err != nil {
			t.Fatal(err)
		}
		got := outcome(&out)
		want := []string{"emit edge.r7", "reject bad_subject_token", "reject not_a_record", "reject too_large", "emit edge.r7"}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("event %d: %s, want %s…", i, got[i], want[i])
			}
		}
		if !strings.HasSuffix(got[4], `"robot":"r7","n":5}`) {
			t.Errorf("payload: %s", got[4])
		}
	}
}

func TestNativeAllow(t *testing.T) {
	r := New(Config{Template: template(t, "edge.{robot}"), Allow: []string{"edge.r8", "other.>"}})
	var out Rendered
	if err := r.Render([]envelope.Event{event(`{}`)}, 1<<30, &out); err != nil {
		t.Fatal(err)
	}
	if got := outcome(&out); !slices.Equal(got, []string{"reject subject_not_allowed"}) {
		t.Errorf("got %v", got)
	}
}

// TestGuilty: in each batch the third and the seventh event begin with X, and only they pay for it.
func TestGuilty(t *testing.T) {
	f := func(name string, code []byte, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r := module(t, code, Config{Template: template(t, "edge.{robot}")})
			var events []envelope.Event
			var lines []string
			for i := range 10 {
				body := fmt.Sprintf("event %d", i)
				line := "emit edge.test " + body
				if i == 2 || i == 6 {
					body = "X" + body
					line = strings.ReplaceAll(want, "DATA", body)
				}
				events = append(events, event(body))
				lines = append(lines, line)
			}
			var out Rendered
			for range 2 { // the instance is as good as new afterwards
				if err := r.Render(events, 1<<30, &out); err != nil {
					t.Fatal(err)
				}
				if got := outcome(&out); !slices.Equal(got, lines) {
					t.Errorf("got\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(lines, "\n "))
				}
			}
		})
	}
	f("trap", wasmtest.TrapX(), "reject module_fault_trap")
	f("out of bounds", wasmtest.OutOfBoundsX(), "reject module_fault_memory")
	f("spin", wasmtest.SpinX(), "reject module_fault_fuel")
	f("recurse", wasmtest.RecurseX(), "reject module_fault_depth")
	f("tree of calls", wasmtest.ExpTreeX(), "reject module_fault_fuel")
	f("fill", wasmtest.FillX(), "reject module_fault_fuel")
	f("wild result", wasmtest.WildResultX(), "reject module_fault_frame")
	f("lying record", wasmtest.LyingRecordX(), "reject module_fault_record")
	f("grow", wasmtest.GrowX(), "emit edge.test DATA")
	f("reject", wasmtest.RejectX(), "reject module_rejected")
	f("drop", wasmtest.DropX(), "drop")
	f("fan out", wasmtest.FanOutX(), "emit edge.test DATA; emit edge.test DATA")
}

// TestFrames: batches beyond one frame are cut, and oversized events cost only themselves.
func TestFrames(t *testing.T) {
	lim := wasm.DefaultLimits()
	lim.Input, lim.Output, lim.Batch = 1000, 1000, 4000
	r := module(t, wasmtest.Echo(), Config{Limits: lim})
	var events []envelope.Event
	var want []string
	for i := range 3 * eventsPerCall {
		body := fmt.Sprintf("%d %s", i, strings.Repeat("z", i*7%900))
		line := "emit edge.test " + body
		if i%50 == 49 {
			body += strings.Repeat("w", 1000)
			line = "reject input_too_large"
		}
		events = append(events, event(body))
		want = append(want, line)
	}
	var out Rendered
	if err := r.Render(events, 1<<30, &out); err != nil {
		t.Fatal(err)
	}
	if got := outcome(&out); !slices.Equal(got, want) {
		t.Errorf("got\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

// record writes one raw record for every event instead of the guest's own.
func record(subject, headers, payload string) []byte {
	const at = 4096
	text := subject + headers + payload
	header := []byte{0, 0, 0, 0, 0, 0, byte(len(subject)), 0, byte(len(headers)), 0, 0, 0, byte(len(payload)), 0, 0, 0}
	p := wasmtest.Parts{
		Hook:  wasmtest.Join(wasmtest.Result(wasmtest.I32Const(at), wasmtest.I32Const(int32(len(header)+len(text)))), wasmtest.Return),
		Extra: func(b *wasmtest.Builder) { b.Data(at, string(header)+text) },
	}
	return p.Bytes()
}

// TestRendered holds every subject and header that a module may come up with against the rules.
func TestRendered(t *testing.T) {
	f := func(subject, headers, want string) {
		t.Helper()
		r := module(t, record(subject, headers, "p"), Config{Template: template(t, "edge.{robot}"), Allow: []string{"edge.>", "$JS.>"}})
		var out Rendered
		if err := r.Render([]envelope.Event{event("e")}, 1<<30, &out); err != nil {
			t.Fatal(err)
		}
		if got := outcome(&out); got[0] != want {
			t.Errorf("subject %q, headers %q: %s, want %s", subject, headers, got[0], want)
		}
	}
	f("edge.a", "", "emit edge.a p")
	f("", "", "emit edge.r7 p") // the sink's own
	f("edge.a", "A: b\r\nC: d\r\n", "emit edge.a p")
	f("other.a", "", "reject subject_not_allowed")
	f("$JS.API.STREAM.DELETE.X", "", "reject reserved_subject")
	f("edge.*", "", "reject bad_subject_token")
	f("edge.>", "", "reject bad_subject_token")
	f("edge..a", "", "reject empty_subject_token")
	f("edge.a b", "", "reject bad_subject_token")
	f("edge.a\r\nPUB x", "", "reject bad_subject_token")
	f("edge.a", "Nats-Rollup: all\r\n", "reject reserved_header")
	f("edge.a", "nats-msg-id: 1\r\n", "reject reserved_header")
	f("edge.a", "A: b\r\n\r\nevil", "reject bad_header")
	f("edge.a", "A: b", "reject bad_header")
}

func TestSubjectMissing(t *testing.T) {
	f := func(cfg Config, robot, want string) {
		t.Helper()
		r := module(t, record("", "", "p"), cfg)
		e := event("e")
		e.Identity[0].Value = []byte(robot)
		var out Rendered
		if err := r.Render([]envelope.Event{e}, 1<<30, &out); err != nil {
			t.Fatal(err)
		}
		if got := outcome(&out); got[0] != want {
			t.Errorf("%s, want %s", got[0], want)
		}
	}
	f(Config{}, "r7", "reject subject_missing")
	f(Config{Template: template(t, "edge.{robot}")}, "", "reject empty_subject_token")
}

func TestMeta(t *testing.T) {
	e := event("b")
	e.Identity[0].Value = []byte("r7\r\nDataset: forged\x00")
	got := string(appendMeta([]byte("before "), &e))
	want := "before Dataset: test\r\nKind: record\r\nQuality: good\r\nInput: in\r\nSource: a.ndjson:1\r\nIdentity-robot: r7  Dataset: forged \r\n"
	if got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestPrintable(t *testing.T) {
	if got, want := printable([]byte("a\x1b[2Jb\nc\xff\u009bd é")), "a\uFFFD[2Jb\uFFFDc\uFFFD\uFFFDd é"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	engine, err := wasm.NewEngine(wasm.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f := func(path, pin, want string) {
		t.Helper()
		lim := wasm.DefaultLimits()
		lim.Module = 4096
		m, err := Load(t.Context(), engine, path, pin, lim)
		if err == nil {
			defer m.Close()
		}
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("Load(%s, %q) = %s, want %s", filepath.Base(path), pin, got, want)
		}
	}
	echo := write("echo.wasm", wasmtest.Echo())
	f(echo, "", "nil")
	f(echo, strings.Repeat("0", 64), "pins 0000")
	f(write("big.wasm", make([]byte, 5000)), "", "larger than the limit of 4096 bytes")
	f(write("empty.wasm", nil), "", "empty.wasm")
	f(write("text.wasm", []byte("#!/bin/sh\n")), "", "text.wasm")
	f(filepath.Join(dir, "none.wasm"), "", "no such file")
	f(dir, "", "not a regular file")
	f(os.DevNull, "", "not a regular file")
}

func BenchmarkRender(b *testing.B) {
	var events []envelope.Event
	for i := range 256 {
		events = append(events, event(fmt.Sprintf(`{"seq":%d,"temp":43.25,"state":"ok","load":[1,2,3],"text":"%s"}`, i, strings.Repeat("t", 120))))
	}
	run := func(name string, r *Renderer) {
		b.Run(name, func(b *testing.B) {
			var out Rendered
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Render(events, 1<<30, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
		})
	}
	run("native", New(Config{Template: template(b, "edge.{robot}")}))
	run("module", module(b, wasmtest.Echo(), Config{Template: template(b, "edge.{robot}"), Limits: wasm.DefaultLimits()}))
}
