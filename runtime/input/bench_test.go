package input

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edge/runtime/config"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
)

// nowhere is a spool and a quarantine that keep nothing: what is measured is reading.
type nowhere struct{ events, bytes int }

func (n *nowhere) Append(_ context.Context, b spool.Batch) (spool.Seq, error) {
	n.events += len(b.Records)
	for _, r := range b.Records {
		n.bytes += len(r)
	}
	return 0, nil
}

func (n *nowhere) Offset(string) ([]byte, error) { return nil, nil }

func (n *nowhere) Put(e []quarantine.Entry) (int, error) { return len(e), nil }

// BenchmarkMillionLines reads a file of 1,000,000 records of about 190 bytes, with all mappings.
func BenchmarkMillionLines(b *testing.B) {
	const lines = 1_000_000
	path := filepath.Join(b.TempDir(), "imu.ndjson")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	for i := range lines {
		fmt.Fprintf(f, `{"id":"%032x","ts":"2026-10-10T06:00:00.%09dZ","site":"lab","robot":"r%d","seq":%d,"acc":[0.0123,-9.80665,0.5],"gyro":[0.001,0.002,-0.003],"temp":43.25,"ok":true}`+"\n", i+1, i, i%8, i)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	cfg := config.Input{ID: "in", Kind: config.KindFile, Path: path, Dataset: "imu", Format: config.FormatJSON, MaxLine: config.DefaultMaxLine,
		Map: config.Map{ID: "/id", Time: "/ts", Identity: map[string]string{"site": "/site", "robot": "/robot"}}}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		n := new(nowhere)
		in, err := New(cfg, imu, Deps{Spool: n, Quarantine: n, Now: time.Now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Counts: new(Counts)})
		if err != nil {
			b.Fatal(err)
		}
		if err := in.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
		if n.events != lines {
			b.Fatalf("%d events", n.events)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/event")
}
