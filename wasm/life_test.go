package wasm

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/wasm/wasmtest"
)

// While a guest spins through its whole budget, the collector runs and a ticker ticks. Without the slices both would
// stand still until the end: native code can not be preempted.
func TestSpinLetsOthersRun(t *testing.T) {
	i := open(t, wasmtest.Spin(), InstanceConfig{}, func(l *Limits) { l.Fuel, l.Time = maxFuel, 2*time.Second })
	done := make(chan error, 1)
	go func() { done <- i.Run(events("a"), new(Output)) }()
	ticks, collections := 0, 0
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if kindOf(t, err) != FaultTime {
				t.Fatal(err)
			}
			if collections < 3 {
				t.Errorf("in 2 s of spinning: %d ticks, %d collections", ticks, collections)
			}
			return
		case <-tick.C:
			if ticks++; ticks%3 == 0 {
				runtime.GC()
				collections++
			}
		}
	}
}

// Instances of one module have nothing in common, and what one does wrong is not seen by the other.
func TestInstancesSideBySide(t *testing.T) {
	m, err := engine(t).Load(context.Background(), wasmtest.TrapX(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			i, err := m.NewInstance(context.Background(), InstanceConfig{})
			if err != nil {
				t.Error(err)
				return
			}
			defer i.Close()
			var out Output
			for n := range 300 {
				data := "a"
				if k%2 == 0 && n%3 == 0 {
					data = "X"
				}
				if err := i.Run(events("b", data), &out); (err != nil) != (data == "X") {
					t.Errorf("%q: %v", data, err)
				}
			}
		})
	}
	all.Wait()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// A module that was closed lives on until its last instance is closed, and takes no new ones.
func TestCloseOrder(t *testing.T) {
	m, err := engine(t).Load(context.Background(), wasmtest.Echo(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.NewInstance(context.Background(), InstanceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.NewInstance(context.Background(), InstanceConfig{}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("an instance of a closed module: %v", err)
	}
	if err := i.Run(events("a"), new(Output)); err != nil {
		t.Error(err)
	}
	if m.runtime == nil {
		t.Error("freed under an instance")
	}
	for range 2 {
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if m.runtime != nil {
		t.Error("not freed behind its last instance")
	}
	if err := i.Run(events("a"), new(Output)); err == nil {
		t.Error("a run of a closed instance")
	}
	if err := i.Reset(); err == nil {
		t.Error("a reset of a closed instance")
	}
}

// Instances that come and go, refuse and fault, leave neither descriptors nor mappings behind.
func TestNothingLeaks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("descriptors and mappings can be counted on linux only")
		return
	}
	e := engine(t)
	use := func(module []byte, config string, data ...string) {
		m, err := e.Load(context.Background(), module, DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if i, err := m.NewInstance(context.Background(), InstanceConfig{Config: []byte(config)}); err == nil {
			for _, d := range data {
				_ = i.Run(events(d), new(Output)) // some fault, that is the point
			}
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	round := func() {
		use(wasmtest.TrapX(), "", "a", "X", "a")
		use(wasmtest.GrowX(), "", "a", "X", "a")
		use(wasmtest.EchoConfig(), "X")
		use(initialize(wasmtest.Unreachable), "")
		use(start(wasmtest.Unreachable), "")
		runtime.GC() // wazero gives code back by finalizers
		runtime.GC()
	}
	count := func() (files, maps int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return len(list), strings.Count(string(b), "\n")
	}
	for range 5 {
		round()
	}
	files, maps := count()
	for range 40 {
		round()
	}
	if f, m := count(); f > files+5 || m > maps+40 {
		t.Errorf("after 40 rounds: %d descriptors, %d before; %d mappings, %d before", f, files, m, maps)
	}
}
