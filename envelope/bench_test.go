package envelope

import (
	"encoding/json"
	"testing"
)

// A machine's record of usual size: 220 bytes, numbers, a short text, one object and one list inside.
const benchRecord = `{"seq":123456,"temp":43.25,"volt":24.0125,"amps":-1.25e-3,"ok":true,"state":"driving","note":"caf\u00e9 at dock 4, waiting for a lift","pose":{"x":1.25,"y":-3.5,"t":0.7853981},"cells":[3.91,3.92,3.90,3.93],"err":null}`

func BenchmarkAppendNative(b *testing.B) {
	e := sample()
	e.Body = []byte(benchRecord)
	run := func(name string, f func(dst []byte) ([]byte, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(benchRecord)))
			var dst []byte
			var err error
			for b.Loop() {
				if dst, err = f(dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	var w Writer
	run("edge", func(dst []byte) ([]byte, error) { return w.AppendNative(dst, e, 1<<20) })
	run("std-map", func([]byte) ([]byte, error) {
		m := map[string]any{}
		if err := json.Unmarshal(e.Body, &m); err != nil {
			return nil, err
		}
		return json.Marshal(withLineage(m, e))
	})
	run("std-rawmessage", func([]byte) ([]byte, error) {
		m := map[string]json.RawMessage{}
		if err := json.Unmarshal(e.Body, &m); err != nil {
			return nil, err
		}
		all := make(map[string]any, len(m)+6)
		for k, v := range m {
			all[k] = v
		}
		return json.Marshal(withLineage(all, e))
	})
}

// withLineage is the envelope as one writes it without this package.
func withLineage(m map[string]any, e *Event) map[string]any {
	m["_event_id"] = e.ID.String()
	m["_ingest_time"] = json.RawMessage(AppendTime(nil, e.IngestTime))
	m["_event_time"] = json.RawMessage(AppendTime(nil, e.EventTime))
	m["_quality_status"] = e.Quality.String()
	for _, l := range e.Identity {
		m[string(l.Name)] = string(l.Value)
	}
	return m
}

func BenchmarkExtract(b *testing.B) {
	doc := []byte(benchRecord)
	b.Run("edge", func(b *testing.B) {
		x, err := NewExtractor([]string{"/seq", "/state", "/pose/x"})
		if err != nil {
			b.Fatal(err)
		}
		out := make([][]byte, 3)
		b.ReportAllocs()
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if err := x.Extract(doc, out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("std-map", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			m := map[string]any{}
			if err := json.Unmarshal(doc, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEventCodec(b *testing.B) {
	e := sample()
	e.Body = []byte(benchRecord)
	var buf []byte
	var got Event
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendEvent(buf[:0], e)
		if err := ParseEvent(buf, &got); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendSubject(b *testing.B) {
	tpl, err := ParseTemplate("edge.{dataset}.{robot}", []string{"robot"})
	if err != nil {
		b.Fatal(err)
	}
	e := sample()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = tpl.AppendSubject(buf[:0], e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIDs(b *testing.B) {
	v := []byte("producer-id-00017")
	b.Run("hash", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			HashID("imu", v)
		}
	})
	b.Run("position", func(b *testing.B) {
		var epoch [16]byte
		for b.Loop() {
			PositionID(epoch, 17)
		}
	})
}
