package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

var testPointers = []string{"/a", "/a/a", "/a/b", "/robot", "/id", "/a/0", "/b/1", "/b/1/a", "/0", "/", "/ü", "/😀", "/a~1b", "/m~0n", "/a/", "/_event_id", "/a/a/a/a", "/b/01", "/a"}

// checkExtract compares Extract and AppendText with the oracle's tree.
func checkExtract(t *testing.T, doc []byte, valid bool) {
	t.Helper()
	x, err := NewExtractor(testPointers)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, len(testPointers))
	for range 2 { // the second run finds the scratch of the first
		err = x.Extract(doc, out)
		if valid != (err == nil) {
			t.Fatalf("valid is %v, Extract says %v: %q", valid, err, doc)
		}
	}
	if !valid {
		var r *RejectError
		if !errors.As(err, &r) {
			t.Fatalf("%T is no RejectError", err)
		}
		for i := range out {
			if out[i] != nil {
				t.Fatalf("a value beside an error: %q", doc)
			}
		}
		return
	}
	root := parseTree(t, doc)
	for i, p := range testPointers {
		want := lookUp(root, p)
		if (want == nil) != (out[i] == nil) {
			t.Fatalf("%s is %q, want %v in %q", p, out[i], want, doc)
		}
		if want == nil {
			continue
		}
		if got := parseTree(t, out[i]); got.String() != want.String() || !bytes.Equal(out[i], bytes.TrimSpace(out[i])) {
			t.Fatalf("%s is %q, want %v in %q", p, out[i], want, doc)
		}
		if cap(out[i]) != len(out[i]) {
			t.Fatalf("%s can be appended to without a copy", p)
		}
		text, err := AppendText(nil, out[i])
		if (err == nil) == (want.object || want.list || want.scalar == "<nil> <nil>") {
			t.Fatalf("text of %q: %v", out[i], err)
		}
		if _, scalar, _ := strings.Cut(want.scalar, " "); err == nil && string(text) != scalar {
			t.Fatalf("text of %q is %q, want %q", out[i], text, scalar)
		}
	}
}

// lookUp is RFC 6901 in its plainest form.
func lookUp(v *tree, pointer string) *tree {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		n, err := strconv.Atoi(token)
		switch {
		case v.object:
			v = v.member(token)
		case v.list && err == nil && strconv.Itoa(n) == token && n >= 0 && n < len(v.values):
			v = v.values[n]
		default:
			return nil
		}
		if v == nil {
			return nil
		}
	}
	return v
}

func TestExtract(t *testing.T) {
	f := func(doc, pointer, want string) {
		t.Helper()
		x, err := NewExtractor([]string{"/zz", pointer})
		if err != nil {
			t.Fatal(err)
		}
		out := make([][]byte, 2)
		if err := x.Extract([]byte(doc), out); err != nil || string(out[1]) != want {
			t.Errorf("%s in %s: %q, %v", pointer, doc, out[1], err)
		}
	}
	f(`{"id":"a", "ts": 5 }`, "/id", `"a"`)
	f(`{"id":"a", "ts": 5 }`, "/ts", `5`)
	f(`{"id":"a"}`, "/ts", ``)
	f(`{"h":{"t":{"s":1}}}`, "/h/t", `{"s":1}`)
	f(`{"h":{"t":{"s":1}}}`, "/h/t/s", `1`)
	f(`{"h":{"t":{"s":1}}}`, "/h/t/s/x", ``)
	f(`{"h":[[1,2],[3,{"x":4}]]}`, "/h/1/1/x", `4`)
	f(`{"h":{"1":5}}`, "/h/1", `5`)
	f(`{"h":[1]}`, "/h/1", ``)
	f(`{"h":[1]}`, "/h/-", ``)
	f(`{"h":[1]}`, "/h/00", ``)
	f(`{"":{"":7}}`, "//", `7`)
	f(`{"a":1,"a":{"b":2}}`, "/a/b", ``)       // the first a counts, and it has no b
	f(`{"a":{"b":1},"a":{"c":2}}`, "/a/c", ``) // nor a c
	f(`{"a":{"b":1,"b":2}}`, "/a/b", `1`)
	f(`{"l":[{"b":1},{"b":2}]}`, "/l/1/b", `2`)
	f(`{"\u0069d":3,"id":4}`, "/id", `3`)
	f(`{"a/b":1}`, "/a~1b", `1`)
	f(`{"~1":1}`, "/~01", `1`)
	f(`{"id":null}`, "/id", `null`)
}

func TestNewExtractorRefuses(t *testing.T) {
	f := func(pointer, say string) {
		t.Helper()
		_, err := NewExtractor([]string{"/ok", pointer})
		var pe *PointerError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v", pointer, err)
		}
	}
	f("", `such as /id`)
	f("id", `such as /id`)
	f("#/id", `such as /id`)
	f("/a~", "~0")
	f("/a~2", "~0")
	f("/~/b", "~0")
	f("/\xff", "UTF-8")
	f(strings.Repeat("/a", 129), "128 tokens")
	if _, err := NewExtractor([]string{strings.Repeat("/a", 128)}); err != nil {
		t.Error(err)
	}
}

func TestAppendText(t *testing.T) {
	f := func(raw, want string, reason Reason) {
		t.Helper()
		got, err := AppendText([]byte("x"), []byte(raw))
		wantReason(t, raw, err, reason)
		if string(got) != "x"+want {
			t.Errorf("%s: %q", raw, got)
		}
	}
	f(`"r7"`, "r7", "")
	f(`""`, "", "")
	f(`"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, "a\"\\/\b\f\n\r\té😀", "")
	f(`-1.50e+3`, "-1.50e+3", "")
	f(`18446744073709551617`, "18446744073709551617", "")
	f(`true`, "true", "")
	f(`false`, "false", "")
	f(`null`, "", NotText)
	f(`{}`, "", NotText)
	f(`["a"]`, "", NotText)
	f(``, "", NotJSON)
	f(`"a`, "", NotJSON)
	f(`"a" `, "", NotJSON)
	f(`"\ud800"`, "", InvalidUTF8)
	f("\"\xff\"", "", InvalidUTF8)
}

func TestExtractAllocates(t *testing.T) {
	x, err := NewExtractor([]string{"/id", "/ts", "/pose/x", "/cells/2", "/n\"ame"})
	if err != nil {
		t.Fatal(err)
	}
	doc := []byte(`{"id":"a","ts":5,"pose":{"x":1},"cells":[1,2,3],"n\"ame":6}`)
	out := make([][]byte, 5)
	if n := testing.AllocsPerRun(100, func() { _ = x.Extract(doc, out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s := fmt.Sprintf("%s", out); s != `["a" 5 1 3 6]` {
		t.Error(s)
	}
}

func FuzzPointer(f *testing.F) {
	f.Add("/a/b", []byte(`{"a":{"b":1}}`))
	f.Add("/a~1b/0", []byte(`{"a/b":[true]}`))
	f.Add("/~01", []byte(`{"~1":{}}`))
	f.Add("//", []byte(`{"":{"":7}}`))
	f.Fuzz(func(t *testing.T, pointer string, doc []byte) {
		x, err := NewExtractor([]string{pointer})
		if err != nil {
			return
		}
		out := make([][]byte, 1)
		if x.Extract(doc, out) != nil {
			return
		}
		want := lookUp(parseTree(t, doc), pointer)
		if (want == nil) != (out[0] == nil) || want != nil && want.String() != parseTree(t, out[0]).String() {
			t.Fatalf("%q in %q: %q, want %v", pointer, doc, out[0], want)
		}
	})
}
