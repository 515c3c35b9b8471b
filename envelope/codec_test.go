package envelope

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func levels(kv ...string) []Level {
	var l []Level
	for i := 0; i < len(kv); i += 2 {
		l = append(l, Level{Name: []byte(kv[i]), Value: []byte(kv[i+1])})
	}
	return l
}

func sample() *Event {
	return &Event{
		ID:         ID{1, 2, 3, 15: 0xff},
		Dataset:    []byte("imu"),
		Input:      []byte("imu-log"),
		Source:     []byte("imu.ndjson:17"),
		IngestTime: 1_791_612_000_000_000_001,
		EventTime:  1_791_611_999_500_000_000,
		Quality:    Uncertain,
		Identity:   levels("site", "hall-3", "robot", "r7"),
		Body:       []byte(`{"temp":43.25}`),
	}
}

func TestEventRoundTrip(t *testing.T) {
	got := Event{Identity: make([]Level, 0, 1)}
	f := func(e *Event) {
		t.Helper()
		b := AppendEvent([]byte("before"), e)
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatalf("AppendEvent lost what was in dst: %q", b)
		}
		b = b[len("before"):]
		if err := ParseEvent(b, &got); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		// AppendEvent is a function of what is compared here, and nil is as good as empty.
		if again := AppendEvent(nil, &got); !bytes.Equal(again, b) {
			t.Fatalf("wrote %x, read and wrote %x", b, again)
		}
		if got.ID != e.ID || got.IngestTime != e.IngestTime || got.EventTime != e.EventTime || got.Quality != e.Quality ||
			got.Kind != e.Kind || !bytes.Equal(got.Body, e.Body) || len(got.Identity) != len(e.Identity) {
			t.Fatalf("wrote %+v, read %+v", e, &got)
		}
		for n := range b { // a torn record is never an event
			var fe *FormatError
			if err := ParseEvent(b[:n:n], &got); !errors.As(err, &fe) {
				t.Fatalf("first %d of %d bytes: %v", n, len(b), err)
			}
		}
		if err := ParseEvent(append(bytes.Clone(b), 0), &got); err == nil {
			t.Fatal("a byte behind the event was not noticed")
		}
	}
	f(&Event{})
	f(sample())
	f(&Event{Kind: Raw, Quality: Bad, EventTime: NoTime, IngestTime: math.MaxInt64, Body: bytes.Repeat([]byte{0}, 200)})
	many := sample()
	for range 300 {
		many.Identity = append(many.Identity, Level{})
	}
	f(many)
}

func TestParseEventRefuses(t *testing.T) {
	good := AppendEvent(nil, sample())
	f := func(field string, change func(b []byte) []byte) {
		t.Helper()
		var e Event
		var fe *FormatError
		if err := ParseEvent(change(bytes.Clone(good)), &e); !errors.As(err, &fe) || fe.Field != field {
			t.Errorf("want an error at %q, got %v", field, err)
		}
	}
	f("head", func(b []byte) []byte { return nil })
	f("version", func(b []byte) []byte { b[0] = 2; return b })
	f("kind", func(b []byte) []byte { b[1] = 2; return b })
	f("kind", func(b []byte) []byte { b[1] = 3 << 4; return b })
	f("dataset", func(b []byte) []byte {
		return append(b[:eventHead], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)
	})
	f("dataset", func(b []byte) []byte {
		return append(b[:eventHead], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1) // more than 64 bits
	})
	f("levels", func(b []byte) []byte { return append(b[:eventHead], 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xf, 0, 0) })
	f("level value", func(b []byte) []byte { return append(b[:eventHead], 0, 0, 0, 1, 0, 9) })
	f("body", func(b []byte) []byte { return append(b, 'x') })
}

func TestParseEventAliases(t *testing.T) {
	b := AppendEvent(nil, sample())
	var e Event
	if err := ParseEvent(b, &e); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		if s, ok := v.Field(i).Interface().([]byte); ok && cap(s) != len(s) {
			t.Errorf("%s can be appended to without a copy: it would write over what follows", v.Type().Field(i).Name)
		}
	}
	i := bytes.Index(b, []byte("43.25"))
	b[i] = '9'
	if string(e.Body) != `{"temp":93.25}` {
		t.Errorf("body %q does not alias", e.Body)
	}
	b2 := b
	if n := testing.AllocsPerRun(100, func() {
		b2 = AppendEvent(b2[:0], &e)
		_ = ParseEvent(b2, &e)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Random damage is noticed or yields an event that can be written again; it never panics or reads outside.
func TestParseEventDamaged(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	good := AppendEvent(nil, sample())
	var e Event
	for range 50_000 {
		b := bytes.Clone(good)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if ParseEvent(b, &e) == nil {
			AppendEvent(nil, &e)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendEvent(nil, sample()))
	f.Add(AppendEvent(nil, &Event{Kind: Raw, Body: []byte{0, 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, again Event
		if ParseEvent(b, &e) != nil {
			return
		}
		out := AppendEvent(nil, &e) // shorter if b had long forms of lengths
		if len(out) > len(b) {
			t.Fatalf("%d bytes became %d", len(b), len(out))
		}
		if err := ParseEvent(out, &again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(AppendEvent(nil, &again), out) {
			t.Fatalf("%+v is not %+v", again, e)
		}
	})
}
