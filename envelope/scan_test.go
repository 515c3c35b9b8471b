package envelope

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// hostile are documents that some parser somewhere accepts or refuses wrongly, or that broke one. They are judged by
// the oracle, so the list says nothing about right and wrong.
func hostile() []string {
	deep := func(n int, open, middle, shut string) string {
		return `{"a":` + strings.Repeat(open, n) + middle + strings.Repeat(shut, n) + `}`
	}
	docs := []string{
		``, ` `, `{`, `}`, `{}`, ` {} `, `{} {}`, `{}x`, "{}\x00", "\x00{}", "\xef\xbb\xbf{}", "{}\xef\xbb\xbf", "\u00a0{}", "{}\u2028",
		`null`, `true`, `1`, `"a"`, `[]`, `[{}]`, `[1`, `[1,]`, `tru`, `nul`, `nulll`, `"a`, `1x`, `-`, `01`, `+1`, `.5`, `NaN`, `Infinity`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1,,"b":2}`, `{"a":1 "b":2}`, `{"a":1;"b":2}`, `{a:1}`, `{'a':1}`, `{"a":'b'}`, `{1:2}`, `{null:1}`,
		`{"a":1}}`, `{"a":[1}`, `{"a":[1]]}`, `{"a":{]}`, `{"a" : 1 , "b" : 2 }`, "{\"a\":\t1\r\n}", "{\"a\":\v1}", "{\"a\":\f1}",
		`{"a":01}`, `{"a":-01}`, `{"a":00}`, `{"a":-0}`, `{"a":-}`, `{"a":+1}`, `{"a":1.}`, `{"a":.1}`, `{"a":1.e1}`, `{"a":1e}`, `{"a":1e+}`, `{"a":1e+-1}`,
		`{"a":1E5}`, `{"a":1e05}`, `{"a":0e0}`, `{"a":1-2}`, `{"a":1.2.3}`, `{"a":0x10}`, `{"a":1_0}`, `{"a":1f}`, `{"a":--1}`, `{"a":1e400}`, `{"a":1e-400}`,
		`{"a":9223372036854775808}`, `{"a":18446744073709551616}`, `{"a":١}`, `{"a":True}`, `{"a":nulL}`, `{"a":truefalse}`, `{"a":undefined}`,
		`{"a":"\q"}`, `{"a":"\x41"}`, `{"a":"\'"}`, `{"a":"\0"}`, `{"a":"\u"}`, `{"a":"\u1"}`, `{"a":"\u12"}`, `{"a":"\u123"}`, `{"a":"\u123g"}`, `{"a":"\U00000041"}`, `{"a":"\`,
		`{"a":"\"}`, `{"a":"\\"}`, `{"a":"\/"}`, `{"a":"\u0000"}`, `{"a":"\u00`, "{\"a\":\"\n\"}", "{\"a\":\"\t\"}", "{\"a\":\"\x1f\"}", "{\"a\":\"\x00\"}", "{\"a\":\"\x7f\"}", "{\"a\u2028\":\"\u2029\"}",
		`{"a":"\ud800"}`, `{"a":"\udc00"}`, `{"a":"\udc00\udc00"}`, `{"a":"\ud800\ud800"}`, `{"a":"\udc00\ud800"}`, `{"a":"\ud800x"}`, `{"a":"\ud800\n"}`, `{"a":"\ud800\u"}`, `{"a":"\ud800\udc0"}`, `{"a":"\ud800\u0041"}`,
		`{"a":"\ud83d\ude00"}`, `{"a":"\uD83D\uDE00"}`, `{"a":"\udbff\udfff"}`, `{"a":"\ud7ff\ue000"}`, `{"a":"\ud800`, `{"a":"\ud800\`, `{"\ud800":1}`, `{"\udc00":1}`,
		"{\"a\":\"\xff\"}", "{\"\xff\":1}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xf4\x90\x80\x80\"}", "{\"a\":\"\xe2\x82\"}", "{\"a\":\xff}", "{\"a\":1}\xff", "{\"a\":\"\xc3\"}",
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"":1,"":2}`, `{"a":{"b":1,"b":2}}`, `/**/{}`, `{/**/}`, `{"a":1//` + "\n}", `{"a":1}#`,
		`{"` + strings.Repeat("k", 70_000) + `":1}`, `{"a":"` + strings.Repeat("v", 70_000), `{"a":1` + strings.Repeat(" ", 10_000) + `}`,
	}
	for n := range 20 { // every place of a quote, an escape and a control character within the words of eight bytes
		pad := strings.Repeat("p", n)
		docs = append(docs, `{"`+pad+`":"`+pad+`"}`, `{"`+pad+`\n":"`+pad+`\n`+pad+`"}`, `{"a":"`+pad+"\x1f"+pad+`"}`, `{"a":"`+pad+`\"`+pad+`"}`, `{"a":"`+pad+"é"+pad+`"}`, `{"a":"`+pad)
	}
	for _, n := range []int{100, 126, 127, 128, 129, 1000, 100_000} {
		docs = append(docs, deep(n, "[", "", "]"), deep(n, "[", "1", "]"), deep(n, `{"a":`, "1", "}"), deep(n, "[", "", ""), deep(n, `{"a":`, "", ""), deep(n, `[{"a":`, "1", "}]"))
	}
	return docs
}

// judge compares every way in which this package reads a record with the oracle.
func judge(t *testing.T, doc []byte) {
	t.Helper()
	before := string(doc)
	want := strictlyValid(t, doc)
	checkExtract(t, doc, want)
	checkNative(t, doc, want)
	if string(doc) != before {
		t.Fatalf("%q was changed", before)
	}
}

func TestHostileRecords(t *testing.T) {
	valid := 0
	for _, d := range hostile() {
		judge(t, []byte(d))
		if strictlyValid(t, []byte(d)) {
			valid++
		}
	}
	if valid < 100 {
		t.Errorf("only %d documents are valid: the list proves little", valid)
	}
}

func TestRandomRecords(t *testing.T) {
	const seed = 20261201
	s := &scribe{r: rand.New(rand.NewPCG(seed, 1))}
	var valid, damaged int
	for range 5_000 {
		d := s.document()
		if !strictlyValid(t, d) {
			t.Fatalf("seed %d: the scribe wrote %q", seed, d)
		}
		judge(t, d)
		d = s.damage(d)
		judge(t, d)
		damaged++
		if strictlyValid(t, d) {
			valid++
		}
	}
	if valid == 0 || valid == damaged {
		t.Errorf("%d of %d damaged documents are valid: the test proves little", valid, damaged)
	}
}

func TestRejectReasons(t *testing.T) {
	x, err := NewExtractor(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := func(doc string, want Reason, detail string) {
		t.Helper()
		err := x.Extract([]byte(doc), nil)
		wantReason(t, doc, err, want)
		if err != nil && !strings.Contains(err.Error(), detail) {
			t.Errorf("%q: %v does not say %q", doc, err, detail)
		}
	}
	f(`{"a":1}`, "", "")
	f(``, NotJSON, "ends too early at offset 0")
	f(`{"a":1`, NotJSON, "ends too early at offset 6")
	f(`{"a":[1`, NotJSON, "ends too early at offset 7")
	f(`{"a":"x`, NotJSON, "ends too early at offset 7")
	f(`{"a":`, NotJSON, "ends too early at offset 5")
	f(`hello`, NotJSON, "a value was expected at offset 0")
	f(`{"a":x}`, NotJSON, "a value was expected at offset 5")
	f(`{"a":[1 2]}`, NotJSON, "a comma or the closing bracket was expected at offset 8")
	f(`{"a":1}{`, NotJSON, "more text behind the object at offset 7")
	f(`1 2`, NotJSON, "more text")
	f("\ufeff{}", NotJSON, "byte order mark")
	f(`[1]`, NotAnObject, "not an object")
	f(`null`, NotAnObject, "not an object")
	f("{\"a\":\"\xff\"}", InvalidUTF8, "offset 6")
	f(`{"a":"\ud800"}`, InvalidUTF8, "surrogate pair at offset 6")
	f(`{"a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`, TooDeep, "offset 132")
}

func FuzzRecord(f *testing.F) {
	for _, d := range hostile() {
		if len(d) < 300 {
			f.Add([]byte(d))
		}
	}
	s := &scribe{r: rand.New(rand.NewPCG(3, 3))}
	for range 30 {
		f.Add(s.document())
	}
	f.Fuzz(func(t *testing.T, doc []byte) { judge(t, doc) })
}
