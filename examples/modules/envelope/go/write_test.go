package main

import (
	"encoding/binary"
	"strings"
	"testing"

	"edge/envelope"
)

// FuzzWrite holds the module, as ordinary Go, against the agent's own parser: it takes what the agent takes, and
// what it writes is valid and keeps its lineage.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(`{"unit":"si"}`), []byte(`{"id":"1","kind":"disk","metric":{"reads":18446744073709551617,"busy":-1.5e-3}}`))
	f.Add([]byte(`{}`), []byte(` { "_event_id" : 1 , "\u0061" : [ true , { "" : null } ] , "a" : "\ud83d\ude00 é" } `))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"a":"\ud800"}`))
	f.Add([]byte(`[]`), []byte("{\"\xff\":1}"))
	x, err := envelope.NewExtractor([]string{"/_event_id"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, config, record []byte) {
		var m module
		if code := m.config(config); code != 0 {
			if err := x.Extract(config, make([][]byte, 1)); code == 1 && err == nil {
				t.Fatalf("configuration %q is an object and was refused with 1", config)
			}
			m = module{}
		} else if err := x.Extract(config, make([][]byte, 1)); err != nil {
			t.Fatalf("configuration %q was taken: %v", config, err)
		}
		e := event{data: record, prefix: []byte(`"_event_id":"i"`), subject: []byte("a.b")}
		for range 2 { // the second time with what the first has left behind
			checkRecord(t, x, record, m.write(nil, 7, e))
		}
	})
}

func checkRecord(t *testing.T, x *envelope.Extractor, record, b []byte) {
	subject, headers, payload := int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint32(b[8:])), int(binary.LittleEndian.Uint32(b[12:]))
	if binary.LittleEndian.Uint32(b) != 7 || b[5] != 0 || len(b) != 16+subject+headers+payload {
		t.Fatalf("%q: malformed record %q", record, b)
	}
	text := b[16+subject+headers:]
	id := make([][]byte, 1)
	err := x.Extract(record, id)
	switch why := string(text); {
	case b[4] == 1:
		if err == nil && !strings.Contains(why, "names") {
			t.Fatalf("%q was rejected: %s", record, why)
		}
	case err != nil:
		t.Fatalf("%q was taken: %v", record, err)
	default:
		if err := x.Extract(text, id); err != nil || string(id[0]) != `"i"` {
			t.Fatalf("%q: %v in %s", record, err, text)
		}
		if err := envelope.CheckHeaders(b[16+subject:][:headers], 1, 128); err != nil {
			t.Fatalf("%q: %v", record, err)
		}
	}
}
