package envelope_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"edge/envelope"
	"edge/wasm"
)

// The members that the host puts before a record's own, as they come from the agent.
const prefix = `"_event_id":"0123456789abcdef0011223344556677","_ingest_time":"2026-10-10T06:00:00.000000001Z",` +
	`"_event_time":"2026-10-10T05:59:59.500000000Z","_quality_status":"good","site":"lab","host":"edge-01"`

// recording is the quickstart's, a line each.
func recording(tb testing.TB) []string {
	b, err := os.ReadFile("../../quickstart/recording.ndjson")
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// pair is the same module twice: whatever one says, the other must say too.
type pair struct{ c, golang *guest }

func loadPair(tb testing.TB, config string) pair {
	return pair{load(tb, modules.c, config), load(tb, modules.golang, config)}
}

func (p pair) call(t *testing.T, in []input) []output {
	t.Helper()
	fromC, err := p.c.call(in)
	if err != nil {
		t.Fatalf("C module: %v", err)
	}
	fromGo, err := p.golang.call(in)
	if err != nil {
		t.Fatalf("Go module: %v", err)
	}
	if len(fromC) != len(in) || len(fromGo) != len(in) {
		t.Fatalf("%d events: %d records from C, %d from Go", len(in), len(fromC), len(fromGo))
	}
	for i := range fromC {
		if fromC[i] != fromGo[i] {
			t.Fatalf("event %.300q:\n C  %+.600v\n Go %+.600v", in[i].data, fromC[i], fromGo[i])
		}
		if int(fromC[i].index) != i {
			t.Fatalf("record %d is for event %d", i, fromC[i].index)
		}
	}
	return fromC
}

// TestRecording sends the whole recording through both modules, and compares with what a text editor would make.
func TestRecording(t *testing.T) {
	p := loadPair(t, `{"unit":"si"}`)
	for lines := range slices.Chunk(recording(t), 64) {
		var in []input
		for _, line := range lines {
			in = append(in, input{line, prefix, "edge.counters.edge-01"})
		}
		for i, got := range p.call(t, in) {
			want := strings.Replace(lines[i][1:], `"site":"lab","host":"edge-01",`, "", 1)
			want = `{` + prefix + `,"unit":"si",` + strings.Replace(want, `"metric":`, `"data":`, 1)
			_, kind, _ := strings.Cut(lines[i], `"kind":"`)
			kind, _, _ = strings.Cut(kind, `"`)
			if got.reject || got.subject != in[i].subject || got.headers != "Edge-Kind: "+kind+"\r\n" || got.payload != want {
				t.Fatalf("%s:\n got %+v\nwant %s", lines[i], got, want)
			}
		}
	}
}

func TestMembers(t *testing.T) {
	p := loadPair(t, `{ "unit":"si", "_event_id":"mine", "list":[1, {"a":null}], "unit":2 }`)
	f := func(record, want, headers string) {
		t.Helper()
		got := p.call(t, []input{{record, `"_event_id":"i","host":"h"`, "a.b"}})[0]
		want = `{"_event_id":"i","host":"h","unit":"si","list":[1, {"a":null}]` + want + `}`
		if got.reject || got.payload != want || got.headers != headers || got.subject != "a.b" {
			t.Errorf("%s:\n got %+v\nwant %s", record, got, want)
		}
	}
	f(`{}`, ``, "")
	f(" \t\r\n{ \n} ", ``, "")
	f(`{"a":1}`, `,"a":1`, "")
	f(`{ "a" : 1 , "b" : [ 1 , 2 ] }`, `,"a" : 1,"b" : [ 1 , 2 ]`, "")
	f(`{"metric":{"metric":1}}`, `,"data":{"metric":1}`, "")
	f(`{"data":0,"metric":1}`, `,"data":0`, "")
	f(`{"metric":1,"data":0}`, `,"data":1`, "")
	f(`{"_event_id":"forged","host":"x","unit":"x","list":0,"a":2}`, `,"a":2`, "")
	f(`{"\u005fevent_id":"forged","h\u006Fst":"x","\u0061":1,"a":2}`, `,"\u0061":1`, "")
	f(`{"a":1,"a":2,"A":3}`, `,"a":1,"A":3`, "")
	f(`{"":0,"":1}`, `,"":0`, "")
	f(`{"é":0,"\u00e9":1,"😀":0,"\ud83d\uDE00":1,"\u20ac":0,"€":1}`, `,"é":0,"😀":0,"\u20ac":0`, "")
	f(`{"n":18446744073709551617,"f":-1.50e+10,"z":-0}`, `,"n":18446744073709551617,"f":-1.50e+10,"z":-0`, "")
	f(`{"kind":"disk"}`, `,"kind":"disk"`, "Edge-Kind: disk\r\n")
	f(`{"k\u0069nd":"disk","kind":"x"}`, `,"k\u0069nd":"disk"`, "Edge-Kind: disk\r\n")
	f(`{"kind":"a b"}`, `,"kind":"a b"`, "")
	f(`{"kind":"a\r\nNats-Rollup: all"}`, `,"kind":"a\r\nNats-Rollup: all"`, "")
	f(`{"kind":"é"}`, `,"kind":"é"`, "")
	f(`{"kind":7}`, `,"kind":7`, "")
	f(`{"kind":""}`, `,"kind":""`, "")
	long := strings.Repeat("k", 64)
	f(`{"kind":"`+long+`"}`, `,"kind":"`+long+`"`, "Edge-Kind: "+long+"\r\n")
	f(`{"kind":"`+long+`k"}`, `,"kind":"`+long+`k"`, "")

	got := p.call(t, []input{{`{"a":1}`, "", ""}})[0]
	if want := `{"unit":"si","_event_id":"mine","list":[1, {"a":null}],"a":1}`; got.payload != want || got.subject != "" {
		t.Errorf("no prefix and no subject:\n got %+v\nwant %s", got, want)
	}
	got = loadPair(t, "").call(t, []input{{`{"a":1}`, "", ""}})[0]
	if want := `{"a":1}`; got.payload != want {
		t.Errorf("nothing configured:\n got %+v\nwant %s", got, want)
	}
}

func TestRejects(t *testing.T) {
	p := loadPair(t, "")
	f := func(record, reason string) {
		t.Helper()
		got := p.call(t, []input{{record, prefix, "a"}, {`{"a":1}`, prefix, "a"}})
		if want := "the record is not a usable JSON object: " + reason; !got[0].reject || got[0].payload != want || got[0].subject+got[0].headers != "" {
			t.Errorf("%.100q: %+v, want %s", record, got[0], want)
		}
		if got[1].reject {
			t.Errorf("%.100q harmed its neighbour: %+v", record, got[1])
		}
	}
	f(``, "an opening brace was expected at byte 0")
	f(`  [1]`, "an opening brace was expected at byte 2")
	f(`"text"`, "an opening brace was expected at byte 0")
	f(`{`, "a name in quotes was expected at byte 1")
	f(`{"a"`, "a colon was expected at byte 4")
	f(`{"a":`, "the text ends too early at byte 5")
	f(`{"a":1`, "a comma or the closing brace was expected at byte 6")
	f(`{"a":1]`, "a comma or the closing brace was expected at byte 6")
	f(`{"a":1,}`, "a name in quotes was expected at byte 7")
	f(`{"a":1}}`, "more text behind the object at byte 7")
	f(`{"a":01}`, "a comma or the closing brace was expected at byte 6")
	f(`{"a":1.}`, "a digit was expected at byte 7")
	f(`{"a":[1 2]}`, "a comma or the closing bracket was expected at byte 8")
	f(`{"a":nul}`, "a value was expected at byte 5")
	f(`{"a":"\x"}`, "malformed escape at byte 6")
	f(`{"a":"\ud800"}`, "half of a surrogate pair at byte 6")
	f(`{"a":"\ud800\u0041"}`, "half of a surrogate pair at byte 6")
	f("{\"a\":\"\n\"}", "control character in a string at byte 6")
	f("{\"a\":\"\xff\"}", "broken UTF-8 at byte 6")
	f("{\"a\":\"\xc0\x80\"}", "broken UTF-8 at byte 6")
	f("{\"a\":\"\xed\xa0\x80\"}", "broken UTF-8 at byte 6")
	f("{\"a\":\"\xf4\x90\x80\x80\"}", "broken UTF-8 at byte 6")
	f(`{"a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`, "too many containers inside one another at byte 132")

	names := func(n int) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			fmt.Fprintf(&b, `"n%d":0,`, i)
		}
		return strings.TrimSuffix(b.String(), ",") + "}"
	}
	if got := p.call(t, []input{{names(512 - 6), prefix, "a"}})[0]; got.reject || !strings.HasSuffix(got.payload, `"n505":0}`) {
		t.Errorf("506 names: %+v", got)
	}
	f(names(512-5), "more than 512 names at byte 4453")
	escaped := func(n int) string { return `{"\u0061` + strings.Repeat("b", n) + `":1}` }
	if got := p.call(t, []input{{escaped(4092), prefix, "a"}})[0]; got.reject {
		t.Errorf("escaped name of 4093 bytes: %+v", got)
	}
	f(escaped(4093), "too many names with escapes at byte 4100")
}

// TestStrict damages real events and holds both modules against the agent's own parser: what it takes, they take.
func TestStrict(t *testing.T) {
	p := loadPair(t, `{"unit":"si"}`)
	x, err := envelope.NewExtractor(nil)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(20261201)
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	seeds := append(recording(t)[:200], `{"a":[true,false,null,-1.5e-3,{"b":"\u00e9\ud83d\ude00\n"}],"é€😀":{},"":[]}`)
	pieces := []string{"{", "}", "[", "]", ",", ":", `"`, `\`, `\u`, `\ud800`, "0", "-", ".", "e", " ", "\x00", "\x80", "\xe2\x82", "null", "tru", "\t", "😀"}
	rejected := 0
	for range 150 {
		in := make([]input, 40)
		for i := range in {
			b := []byte(seeds[dice.IntN(len(seeds))])
			if i%8 == 0 {
				b = []byte(seeds[len(seeds)-1])
			}
			for range 1 + dice.IntN(3) {
				at := dice.IntN(len(b) + 1)
				end := min(len(b), at+dice.IntN(3))
				b = slices.Concat(b[:at], []byte(pieces[dice.IntN(len(pieces))]), b[end:])
			}
			in[i] = input{string(b), prefix, "a"}
		}
		for i, got := range p.call(t, in) {
			err := x.Extract([]byte(in[i].data), nil)
			if (err == nil) == got.reject {
				t.Fatalf("%q: the agent says %v, the module %+v", in[i].data, err, got)
			}
			if got.reject {
				rejected++
			} else if err := x.Extract([]byte(got.payload), nil); err != nil {
				t.Fatalf("%q made an envelope that is no JSON: %v\n%s", in[i].data, err, got.payload)
			}
		}
	}
	if rejected < 1000 || rejected > 5900 {
		t.Errorf("%d of 6000 damaged events were rejected: the test tests nothing", rejected)
	}
}

// TestLarge sends frames that grow and shrink, up to the 8 MiB that the agent sends at most, through one instance.
func TestLarge(t *testing.T) {
	p := loadPair(t, "")
	f := func(events, size int) {
		t.Helper()
		fill := strings.Repeat("0123456789abcdef", size/16)
		in := make([]input, events)
		for i := range in {
			in[i] = input{fmt.Sprintf(`{"i":%d,"fill":"%s"}`, i, fill), prefix, "a"}
		}
		for i, got := range p.call(t, in) {
			if want := fmt.Sprintf(`{%s,"i":%d,"fill":"%s"}`, prefix, i, fill); got.payload != want {
				t.Fatalf("%d events of %d bytes: event %d is damaged: %.200s", events, size, i, got.payload)
			}
		}
	}
	f(1, 16)
	f(1, 1<<20-512)
	f(3, 100_000)
	f(64, 16)
	f(7, 1<<20-512)
	f(64, 1<<10)
	f(1, 1<<20-512)
}

// TestConfig: anything but a small JSON object is refused at load, with the code that README.md names.
func TestConfig(t *testing.T) {
	f := func(want uint32, config string) {
		t.Helper()
		for name, m := range map[string]*wasm.Module{"C": modules.c, "Go": modules.golang} {
			_, err := open(t, m, config)
			var refused *wasm.LoadError
			switch {
			case want == 0 && err == nil:
			case want != 0 && errors.As(err, &refused) && refused.Stage == wasm.StageConfig && refused.Code == want:
			default:
				t.Errorf("%s module with %.100s: %v, want code %d", name, config, err, want)
			}
		}
	}
	f(0, `{}`)
	f(0, ` { } `)
	f(0, `{"unit":"si","more":{"deep":[1]}}`)
	f(1, `unit: si`)
	f(1, `[]`)
	f(1, `null`)
	f(1, `{"a":1} x`)
	f(1, `{"a":1`)
	f(2, `{"\u0061":1}`)
	f(2, `{"a":"`+strings.Repeat("x", 4096)+`"}`)
	f(2, "{"+strings.TrimSuffix(strings.Repeat(`"a":1,`, 65), ",")+"}")
}

// TestLinear gives the modules the records that are most work for their size, and twice as much of each: it must be
// twice the work, in instructions, and no more for a byte than README.md admits to.
func TestLinear(t *testing.T) {
	const size = 128 << 10
	p := loadPair(t, "")
	f := func(name, open, piece, end string) {
		t.Helper()
		var c, golang [2]int64
		for i := range 2 {
			body := strings.Repeat(piece, size*(i+1)/len(piece))
			p.call(t, []input{{open + strings.TrimSuffix(body, ",") + end, prefix, "a"}})
			c[i], golang[i] = p.c.instance.Usage().Fuel, p.golang.instance.Usage().Fuel
		}
		t.Logf("%-14s C %5.1f, Go %5.1f instructions a byte", name, float64(c[0])/size, float64(golang[0])/size)
		if c[1] > c[0]*21/10 || golang[1] > golang[0]*22/10 {
			t.Errorf("%s: twice the size takes %d to %d (C) and %d to %d (Go) instructions", name, c[0], c[1], golang[0], golang[1])
		}
		if c[0] > 100*size || golang[0] > 900*size {
			t.Errorf("%s: more than 100 (C) or 900 (Go) instructions a byte", name)
		}
	}
	f("one string", `{"a":"`, "x", `"}`)
	f("escapes", `{"a":"`, `\n`, `"}`)
	f("pairs", `{"a":"`, `\ud83d\ude00`, `"}`)
	f("two bytes", `{"a":"`, `é`, `"}`)
	f("numbers", `{"a":[`, "0,", `]}`)
	f("long number", `{"a":`, "1", `}`)
	f("empty lists", `{"a":[`, "[],", `]}`)
	f("empty strings", `{"a":[`, `"",`, `]}`)
	f("inner members", `{"a":{`, `"":0,`, `}}`)
	f("one name", `{`, `"a":0,`, `}`)
	f("long name", `{"`, `a`, `":0}`)
	f("white space", `{`, " ", `}`)
}

// TestCommitted holds the committed module against what an edge user expects of it: small, and without imports.
func TestCommitted(t *testing.T) {
	info, err := os.Stat("c/envelope.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 16<<10 {
		t.Errorf("envelope.wasm has %d bytes, want at most 16 KiB", info.Size())
	}
	if imports := modules.c.Imports(); len(imports) != 0 {
		t.Errorf("envelope.wasm imports %v", imports)
	}
}

func BenchmarkC(b *testing.B)  { benchmark(b, modules.c) }
func BenchmarkGo(b *testing.B) { benchmark(b, modules.golang) }

// benchmark sends frames of 64 real events.
func benchmark(b *testing.B, m *wasm.Module) {
	g := load(b, m, `{"unit":"si"}`)
	var in []input
	for _, line := range recording(b)[:64] {
		in = append(in, input{line, prefix, "edge.counters.edge-01"})
	}
	if err := g.run(in); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := g.instance.Run(g.in, &g.out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/event")
	b.ReportMetric(float64(g.instance.Usage().Fuel)/64, "fuel/event")
}
