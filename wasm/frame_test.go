package wasm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"testing"
)

// parseFrame reads a frame as a guest does.
func parseFrame(b []byte) ([]Input, error) {
	le := binary.LittleEndian
	if len(b) < 16 || string(b[:4]) != "EDG1" || le.Uint32(b[12:]) != 0 {
		return nil, fmt.Errorf("header %x", b[:min(16, len(b))])
	}
	var in []Input
	for k := range int(le.Uint32(b[4:])) {
		d := b[16+64*k : 80+64*k]
		part := func(at int) []byte {
			off, n := le.Uint32(d[at:]), le.Uint32(d[at+4:])
			return b[off : off+n]
		}
		in = append(in, Input{
			IngestTime: int64(le.Uint64(d)), EventTime: int64(le.Uint64(d[8:])), ID: [16]byte(d[16:32]),
			Data: part(32), Meta: part(40), Prefix: part(48), Subject: part(56),
		})
	}
	return in, nil
}

// The layout by its bytes, written down once by hand.
func TestFrameBytes(t *testing.T) {
	in := []Input{{
		IngestTime: 0x0102030405060708, EventTime: math.MinInt64, ID: [16]byte{1, 2, 3},
		Data: []byte("data"), Meta: []byte("meta!"), Prefix: []byte("p"), Subject: []byte("su"),
	}}
	lim := DefaultLimits()
	size, f := frameSize(in, &lim)
	if f != nil || size != 16+64+12 || in[0].Size() != 64+12 {
		t.Fatalf("size %d, %v", size, f)
	}
	got := bytes.Repeat([]byte{0xee}, size)
	putFrame(got, in)
	want := "EDG1\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x08\x07\x06\x05\x04\x03\x02\x01\x00\x00\x00\x00\x00\x00\x00\x80" +
		"\x01\x02\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x50\x00\x00\x00\x04\x00\x00\x00\x54\x00\x00\x00\x05\x00\x00\x00" +
		"\x59\x00\x00\x00\x01\x00\x00\x00\x5a\x00\x00\x00\x02\x00\x00\x00" +
		"datameta!psu"
	if string(got) != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestProgress(t *testing.T) {
	f := func(hint uint32, n, want int) {
		t.Helper()
		frame := make([]byte, 16)
		binary.LittleEndian.PutUint32(frame[8:], hint)
		if got := progress(frame, n); got != want {
			t.Errorf("hint %d of %d: %d, want %d", hint, n, got, want)
		}
	}
	f(0, 1, 0)
	f(1, 1, -1)
	f(6, 7, 6)
	f(1<<32-1, 7, -1)
}

// A frame that was written reads back as the events, byte for byte.
func FuzzFrame(f *testing.F) {
	f.Add(int64(0), int64(math.MinInt64), []byte("0123456789abcdef"), []byte("{}"), []byte("A: b\r\n"), []byte(`"a":1`), []byte("s.t"), uint8(3))
	f.Add(int64(-1), int64(5), []byte(nil), []byte(nil), []byte(nil), []byte(nil), []byte(nil), uint8(0))
	f.Fuzz(func(t *testing.T, ingest, event int64, id, data, meta, prefix, subject []byte, n uint8) {
		var in []Input
		for k := range int(n % 9) {
			e := Input{IngestTime: ingest + int64(k), EventTime: event, Data: data[min(k, len(data)):], Meta: meta, Prefix: prefix, Subject: subject}
			copy(e.ID[:], id)
			data, meta, prefix, subject = subject, data, meta, prefix
			in = append(in, e)
		}
		lim := DefaultLimits()
		size, fault := frameSize(in, &lim)
		if fault != nil {
			return
		}
		frame := bytes.Repeat([]byte{0xee}, size)
		putFrame(frame, in)
		got, err := parseFrame(frame)
		if err != nil || len(got) != len(in) {
			t.Fatalf("%d events, %v", len(got), err)
		}
		for k := range in {
			w := in[k]
			for _, p := range []*[]byte{&w.Data, &w.Meta, &w.Prefix, &w.Subject} {
				*p = append([]byte{}, *p...)
			}
			if !reflect.DeepEqual(got[k], w) {
				t.Fatalf("event %d: got %+v, want %+v", k, got[k], w)
			}
		}
	})
}
