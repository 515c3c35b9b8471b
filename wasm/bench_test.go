package wasm

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"edge/wasm/wasmtest"
)

// BenchmarkRun is the interface alone: an event of 220 bytes with 18 of meta data in, a record out. ns/op is per
// event.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("echo/batch=%d", n), func(b *testing.B) {
			i := open(b, wasmtest.Echo(), InstanceConfig{})
			in := make([]Input, n)
			for k := range in {
				in[k] = Input{EventTime: math.MinInt64, Data: []byte(strings.Repeat("d", 220)), Meta: []byte(strings.Repeat("m", 18))}
			}
			var out Output
			b.ReportAllocs()
			for k := 0; k < b.N; k += n {
				if err := i.Run(in, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(i.Usage().Fuel)/float64(n), "units/event")
		})
	}
}

// BenchmarkReset is one event and the way back to the snapshot: by dropping pages, and by a new memory.
func BenchmarkReset(b *testing.B) {
	f := func(name string, module []byte, data string) {
		b.Run(name, func(b *testing.B) {
			i := open(b, module, InstanceConfig{})
			in, out := events(data), new(Output)
			for b.Loop() {
				if err := i.Run(in, out); err != nil && data != "X" {
					b.Fatal(err)
				}
				if data != "X" {
					if err := i.Reset(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	f("pages", wasmtest.Echo(), "a")
	f("fault", wasmtest.TrapX(), "X")
	f("rebuild", wasmtest.Guest(wasmtest.I32Const(1)+wasmtest.MemoryGrow+wasmtest.Drop), "a")
}
