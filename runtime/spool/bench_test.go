package spool

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// BenchmarkAppend is the durable path: every operation is one event of 300 bytes, synced, read and settled.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ appenders, batch int }{{1, 256}, {1, 64}, {1, 1}, {16, 64}, {64, 1}} {
		b.Run(fmt.Sprintf("%dx%d", c.appenders, c.batch), func(b *testing.B) { benchmarkAppend(b, c.appenders, c.batch) })
	}
}

func benchmarkAppend(b *testing.B, appenders, batch int) {
	s, err := Open(b.TempDir(), Options{Sinks: []string{"a"}})
	if err != nil {
		b.Fatal(err)
	}
	recs := make([][]byte, batch)
	for i := range recs {
		recs[i] = event(Seq(i), 300)
	}
	k, err := s.Reader("a")
	if err != nil {
		b.Fatal(err)
	}
	each := b.N/(appenders*batch) + 1
	b.ReportAllocs()
	b.SetBytes(300)
	b.ResetTimer()
	var intake, rest sync.WaitGroup
	for range appenders {
		intake.Go(func() {
			for i := range each {
				o := Offset{"in", fmt.Append(nil, i)}
				if _, err := s.Append(context.Background(), Batch{Records: recs, Offset: o}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	rest.Go(func() { benchmarkRead(b, k) })
	rest.Go(func() {
		if err := s.Run(context.Background()); err != nil {
			b.Error(err)
		}
	})
	intake.Wait()
	s.Seal()
	rest.Wait()
	b.StopTimer()
	st := s.Stats()
	b.ReportMetric(float64(st.Appended)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(st.Commits), "commits")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// benchmarkRead settles everything to the end of a sealed spool.
func benchmarkRead(b *testing.B, k *Reader) {
	var block Block
	for {
		n, err := k.Read(&block, 256, 1<<20)
		switch {
		case err != nil:
			return
		case n == 0:
			<-k.Ready()
		default:
			k.Release(block.First + Seq(n) - 1)
		}
	}
}

// BenchmarkRead is a cursor over what lies there: every operation is one event of 300 bytes.
func BenchmarkRead(b *testing.B) {
	s, err := Open(b.TempDir(), Options{Sinks: []string{"a"}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	const stored = 100_000
	recs := make([][]byte, 1000)
	for i := range recs {
		recs[i] = event(Seq(i), 300)
	}
	for range stored / len(recs) {
		if _, err := s.Append(ctx, Batch{Records: recs}); err != nil {
			b.Fatal(err)
		}
	}
	var block Block
	b.ReportAllocs()
	b.SetBytes(300)
	b.ResetTimer()
	for n := 0; n < b.N; {
		k, err := s.Reader("a")
		if err != nil {
			b.Fatal(err)
		}
		for n < b.N {
			got, err := k.Read(&block, 256, 1<<20)
			if err != nil {
				b.Fatal(err)
			}
			if n += got; got == 0 {
				break
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
