package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goccy/go-json/jsontext"
)

// checkNative compares AppendNative with the oracle: the members of the prefix, then the record's, first wins.
func checkNative(t *testing.T, doc []byte, valid bool) {
	t.Helper()
	e := sample()
	e.Identity = levels("robot", "r\"7\u2028", "_event_id", "no", "a", "1", "robot", "no")
	e.Body = doc
	var w Writer
	var got []byte
	for range 2 { // the second run finds the scratch of the first
		var err error
		got, err = w.AppendNative([]byte("x"), e, 1<<30)
		if valid != (err == nil) {
			t.Fatalf("valid is %v, AppendNative says %v: %q", valid, err, doc)
		}
		if !bytes.HasPrefix(got, []byte("x")) {
			t.Fatalf("lost what was in dst: %q", got)
		}
		got = got[1:]
	}
	if !valid {
		if len(got) != 0 {
			t.Fatalf("output beside an error: %q", got)
		}
		return
	}
	want := parseTree(t, []byte(`{"_event_id":"010203000000000000000000000000ff","_ingest_time":"2026-10-10T06:00:00.000000001Z",`+
		`"_event_time":"2026-10-10T05:59:59.500000000Z","_quality_status":"uncertain","robot":"r\"7\u2028","a":"1"}`))
	record := parseTree(t, doc)
	want.keys, want.values = append(want.keys, record.keys...), append(want.values, record.values...)
	if s := parseTree(t, got).String(); s != want.String() {
		t.Fatalf("%q\nbecame %s\nwant   %s", doc, s, want)
	}
	if !jsontext.Value(got).IsValid() { // the default refuses repeated names, at every depth
		t.Fatalf("%q became %q, which is not strict JSON", doc, got)
	}
	checkLimit(t, &w, e, got)
}

// checkLimit proves that the limit is exact and that the buffer does not grow when it is passed.
func checkLimit(t *testing.T, w *Writer, e *Event, want []byte) {
	t.Helper()
	dst := make([]byte, 3, 3+len(want))
	got, err := w.AppendNative(dst, e, len(want))
	if err != nil || !bytes.Equal(got[3:], want) || &got[0] != &dst[0] {
		t.Fatalf("limit %d: %v", len(want), err)
	}
	for _, limit := range []int{len(want) - 1, len(want) / 2, 1, 0, -1, math.MinInt} {
		var r *RejectError
		dst := make([]byte, 3)
		got, err := w.AppendNative(dst, e, limit)
		if !errors.As(err, &r) || r.Reason != TooLarge || len(got) != 3 || cap(got) != cap(dst) {
			t.Fatalf("limit %d of %d: %v, %d bytes", limit, len(want), err, len(got))
		}
	}
}

func TestAppendNative(t *testing.T) {
	const head = `{"_event_id":"010203000000000000000000000000ff","_ingest_time":"2026-10-10T06:00:00.000000001Z",` +
		`"_event_time":"2026-10-10T05:59:59.500000000Z","_quality_status":"uncertain","site":"hall-3","robot":"r7"`
	var w Writer
	f := func(body, rest string, reason Reason) {
		t.Helper()
		e := sample()
		e.Body = []byte(body)
		got, err := w.AppendNative(nil, e, 1<<20)
		wantReason(t, body, err, reason)
		want := head + rest
		if reason != "" {
			want = ""
		}
		if string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
	f(`{}`, `}`, "")
	f(` { } `, `}`, "")
	f(`{"temp":43.25}`, `,"temp":43.25}`, "")
	f(`{"n":18446744073709551617,"x":1e400,"y":-0,"z":1.50}`, `,"n":18446744073709551617,"x":1e400,"y":-0,"z":1.50}`, "")
	f(`{"s":"caf\u00e9 é \/"}`, `,"s":"caf\u00e9 é \/"}`, "") // bytes as they were
	f(`{"robot":"x"}`, `}`, "")
	f(`{"robot":"x","t":1}`, `,"t":1}`, "")
	f(`{"t":1,"robot":"x"}`, `,"t":1}`, "")
	f(`{"r\u006fbot":"x","_event_id":[1,{"a":2}],"t":1}`, `,"t":1}`, "")
	f(`{"t":1,"robot":2,"u":3}`, `,"t":1,"u":3}`, "")
	f(`{"t":1,"t":2,"u":3,"\u0074":4}`, `,"t":1,"u":3}`, "")
	f(`{"t":{"a":1,"a":2,"b":[{"a":1},{"a":2,"\u0061":3}]}}`, `,"t":{"a":1,"b":[{"a":1},{"a":2}]}}`, "")
	f(`{"t":1,"t":{"a":1,"a":2},"u":{"a":1}}`, `,"t":1,"u":{"a":1}}`, "") // what is left out counts no names
	f(`{"t":{"robot":1,"_event_id":2}}`, `,"t":{"robot":1,"_event_id":2}}`, "")
	f(`{"Robot":1,"_Event_id":2,"_event":3}`, `,"Robot":1,"_Event_id":2,"_event":3}`, "")
	f("{ \"t\" : 1 ,\n \"u\" : 2 }", ",\"t\" : 1 ,\n \"u\" : 2}", "")
	f(`[1]`, ``, NotAnObject)
	f(`{"t":1} x`, ``, NotJSON)
	f(`{"robot":01}`, ``, NotJSON) // checked although it is left out
	f(`{"t":1,"t":"\ud800"}`, ``, InvalidUTF8)
	f(``, ``, NotJSON)

	e := sample()
	e.Kind = Raw
	_, err := w.AppendNative(nil, e, 1<<20)
	wantReason(t, "raw", err, NotARecord)
	e = sample()
	e.Identity = levels("robot", "r\xff")
	_, err = w.AppendNative(nil, e, 1<<20)
	wantReason(t, "identity", err, InvalidUTF8)
	e.Identity = levels("ro\xffbot", "r")
	_, err = w.AppendNative(nil, e, 1<<20)
	wantReason(t, "identity", err, InvalidUTF8)
	e = sample()
	e.EventTime, e.Quality, e.Identity = NoTime, Good, nil
	if got, err := w.AppendNative(nil, e, 1<<20); err != nil || !bytes.Contains(got, []byte(`Z","_event_time":null,"_quality_status":"good","temp":43.25}`)) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAppendPrefix(t *testing.T) {
	e := sample()
	e.Identity = levels("site", "", "robot", "a\"\\\n\x01é")
	got, err := AppendPrefix([]byte("x"), e)
	if err != nil || !bytes.HasSuffix(got, []byte(`,"site":"","robot":"a\"\\\n\u0001é"`)) || !bytes.HasPrefix(got, []byte(`x"_event_id":"01`)) {
		t.Errorf("%s, %v", got, err)
	}
	e.Identity = append(e.Identity, levels("x", "\xff")...)
	got, err = AppendPrefix([]byte("x"), e)
	wantReason(t, "prefix", err, InvalidUTF8)
	if string(got) != "x" {
		t.Errorf("dst came back as %q", got)
	}
}

// An identity may be large and grow when it is quoted: the limit is exact there too, and holds for scratch.
func TestNativeLimitOfIdentity(t *testing.T) {
	var w Writer
	for _, value := range []string{"plain", strings.Repeat("\x01", 1000), strings.Repeat("\"", 1000), strings.Repeat("\t\v\u007f", 300), strings.Repeat("é", 1000)} {
		e := sample()
		e.Identity = levels("a", value, value, "b")
		want, err := w.AppendNative(nil, e, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		checkLimit(t, &w, e, want)
		e.Body = []byte(`{}`) // nothing behind the identity to notice what passed the limit
		if want, err = w.AppendNative(nil, e, 1<<20); err != nil {
			t.Fatal(err)
		}
		checkLimit(t, &w, e, want)
		for limit := range len(want) {
			if got, err := w.AppendNative(nil, e, limit); err == nil || len(got) != 0 {
				t.Fatalf("limit %d of %d: %d bytes", limit, len(want), len(got))
			}
		}
		e.EventTime, e.Quality, e.Identity = NoTime, Good, nil
		if want, err = w.AppendNative(nil, e, 1<<20); err != nil {
			t.Fatal(err)
		}
		checkLimit(t, &w, e, want)
	}
	w = Writer{}
	e := sample()
	e.Identity = levels("a", strings.Repeat("\x01", 1<<20))
	if _, err := w.AppendNative(nil, e, 4<<20); err == nil {
		t.Fatal("6 MiB went through 4 MiB")
	}
	if cap(w.prefix) > 1<<20 {
		t.Errorf("scratch of %d bytes", cap(w.prefix))
	}
}

// Many names, many repeats, many escapes: the table grows, stays right, and is given back.
func TestNativeManyNames(t *testing.T) {
	var b, want strings.Builder
	b.WriteString("{")
	for i := range 20_000 {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
		fmt.Fprintf(&want, `,"k%d":%d`, i, i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&b, `,"\u006b%d":0`, i)
	}
	b.WriteString("}")
	var w Writer
	e := sample()
	for range 2 {
		e.Body = []byte(b.String())
		got, err := w.AppendNative(nil, e, 1<<30)
		if err != nil || !bytes.HasSuffix(got, []byte(want.String()+"}")) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if w.names.slots != nil || w.names.arena != nil && cap(w.names.arena) > keepArena {
			t.Errorf("%d slots kept", len(w.names.slots))
		}
		e.Body = []byte(`{"k1":1,"k1":2}`)
		if got, err := w.AppendNative(nil, e, 1<<30); err != nil || !bytes.HasSuffix(got, []byte(`"r7","k1":1}`)) {
			t.Fatalf("%s, %v", got, err)
		}
	}
}

// The round of the name table wraps after 2^32 records; names of the first record must not come back.
func TestNamesRoundWraps(t *testing.T) {
	var w Writer
	e := sample()
	want, err := w.AppendNative(nil, e, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	w.names.round = ^uint32(0)
	for range 3 {
		if got, err := w.AppendNative(nil, e, 1<<20); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s, %v", got, err)
		}
	}
}

// A writer that has just failed renders the next event as a new one does.
func TestWriterAfterReject(t *testing.T) {
	const seed = 11
	s := &scribe{r: rand.New(rand.NewPCG(seed, seed))}
	var used Writer
	e := sample()
	for range 3000 {
		e.Body = s.damage(s.document())
		_, _ = used.AppendNative(nil, e, 100+s.r.IntN(400))
		e.Body = s.document()
		a, errA := used.AppendNative(nil, e, 1<<20)
		b, errB := new(Writer).AppendNative(nil, e, 1<<20)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("seed %d: %q: %q, %v and %q, %v", seed, e.Body, a, errA, b, errB)
		}
	}
}

func TestAppendNativeAllocates(t *testing.T) {
	var w Writer
	e := sample()
	e.Body = []byte(`{"robot":"x","a\"b":1,"t":{"a":1,"a":2},"a\u0022b":3}`)
	var dst []byte
	if n := testing.AllocsPerRun(100, func() { dst, _ = w.AppendNative(dst[:0], e, 1<<20) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !bytes.HasSuffix(dst, []byte(`"r7","a\"b":1,"t":{"a":1}}`)) {
		t.Errorf("%s", dst)
	}
}

func FuzzNativeIdentity(f *testing.F) {
	f.Add("robot", "r7", 1000)
	f.Add("_event_id", "\xff", 1000)
	f.Add("temp", "\x01\"\\", 229)
	f.Fuzz(func(t *testing.T, name, value string, limit int) {
		e := sample()
		e.Identity = levels(name, value)
		got, err := new(Writer).AppendNative(nil, e, limit)
		if err != nil {
			return
		}
		if len(got) > max(limit, 0) {
			t.Fatalf("%d bytes, the limit is %d", len(got), limit)
		}
		if !jsontext.Value(got).IsValid() {
			t.Fatalf("%q", got)
		}
		if v := parseTree(t, got).member(name); !isLineage([]byte(name)) && v.scalar != "string "+value {
			t.Fatalf("%q became %q", value, v.scalar)
		}
	})
}
