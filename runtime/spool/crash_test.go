package spool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// The test binary runs itself as a child that can be killed. The child's folder comes in the environment.
const envChild = "EDGE_SPOOL_TEST_CHILD"

func TestMain(m *testing.M) {
	if err := smallDisk(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if dir := os.Getenv(envChild); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const childInputs = 4

// child appends from several inputs until it is killed or the spool fails, and says on stdout what it was told.
// Each input goes on where its offset says. One sink settles what it reads, the other never does.
func child(dir string) error {
	s, err := Open(dir, Options{Sinks: []string{"keeps", "settles"}, MaxBytes: 64 << 20})
	if err != nil {
		return err
	}
	fmt.Println("open")
	var out sync.Mutex
	go s.Run(context.Background())
	go childReads(s)
	var inputs sync.WaitGroup
	for in := range childInputs {
		inputs.Go(func() {
			key := fmt.Sprint("in", in)
			at, err := s.Offset(key)
			n := offsetNumber(at)
			dice := rand.New(rand.NewPCG(n, uint64(in)))
			for err == nil {
				var b Batch
				for range 1 + dice.IntN(64) {
					n++
					b.Records = append(b.Records, childRecord(in, n))
				}
				b.Offset = Offset{key, binary.BigEndian.AppendUint64(nil, n)}
				if _, err = s.Append(context.Background(), b); err == nil {
					out.Lock()
					fmt.Printf("%d %d\n", in, n)
					out.Unlock()
				}
			}
			_, again := s.Append(context.Background(), Batch{})
			out.Lock()
			fmt.Printf("failed: %v / %v\n", err, again)
			out.Unlock()
		})
	}
	inputs.Wait()
	return nil
}

func childReads(s *Spool) {
	k, err := s.Reader("settles")
	var b Block
	for err == nil {
		var n int
		if n, err = k.Read(&b, 50, 1<<20); n == 0 {
			<-k.Ready()
			continue
		}
		k.Release(b.First + Seq(n) - 1)
	}
}

func offsetNumber(value []byte) uint64 {
	if value == nil {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

func childRecord(in int, n uint64) []byte {
	b := fmt.Appendf(nil, "%d %d ", in, n)
	for range n * 31 % 400 {
		b = append(b, byte(n)+byte(len(b)))
	}
	return b
}

// runChild runs the child until it has said so many lines, kills it, and returns the last number that each input
// was told is stored, and what else it said. lines < 0 lets it come to its own end.
func runChild(t *testing.T, dir string, lines int, env ...string) (told [childInputs]uint64, said string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(append(os.Environ(), envChild+"="+dir), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for n := 0; ; n++ {
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		line, err := in.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				t.Fatal(err)
			}
			break // a line without its end was not said
		}
		var input int
		var number uint64
		if c, _ := fmt.Sscanf(line, "%d %d\n", &input, &number); c == 2 {
			told[input] = number
		} else if line != "open\n" {
			said += line
		}
	}
	if err := cmd.Wait(); err != nil && lines < 0 {
		t.Fatalf("child: %v: %s", err, stderr.String())
	}
	if ctx.Err() != nil {
		t.Fatal("the child does not end")
	}
	if stderr.Len() > 0 {
		t.Fatalf("child says: %s", stderr.String())
	}
	return told, said
}

// checkChild opens what a child left and holds it against what it was told: seen has for each input the number
// up to which earlier checks saw its records, and is moved on. Everything but the newest events is then settled.
func checkChild(t *testing.T, dir string, told [childInputs]uint64, seen *[childInputs]uint64) {
	t.Helper()
	s := start(t, dir, Options{Sinks: []string{"keeps", "settles"}, MaxBytes: 64 << 20})
	st := s.Stats()
	if st.DamagedRows != 0 || st.SetAside != "" {
		t.Fatalf("damage after a kill: %+v", st)
	}
	k := s.reader("keeps")
	next := k.Floor() + 1
	var b Block
	for {
		n, err := k.Read(&b, 100, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if b.First != next {
			t.Fatalf("positions %d to %d are missing", next, b.First-1)
		}
		next += Seq(n)
		for i, rec := range b.Records {
			var in int
			var number uint64
			if _, err := fmt.Sscanf(string(rec), "%d %d ", &in, &number); err != nil || !bytes.Equal(rec, childRecord(in, number)) {
				t.Fatalf("position %d: %.60q", b.First+Seq(i), rec)
			}
			if number != seen[in]+1 {
				t.Fatalf("position %d: input %d goes on from %d with %d", b.First+Seq(i), in, seen[in], number)
			}
			seen[in] = number
		}
	}
	if next-1 != st.LastSeq {
		t.Fatalf("read up to %d of %d", next-1, st.LastSeq)
	}
	for in := range childInputs {
		if seen[in] < told[in] {
			t.Fatalf("input %d was told %d, stored are %d", in, told[in], seen[in])
		}
		at, err := s.Offset(fmt.Sprint("in", in))
		if err != nil || offsetNumber(at) != seen[in] {
			t.Fatalf("input %d: offset %d, %v; stored are %d", in, offsetNumber(at), err, seen[in])
		}
	}
	k.Release(next - 1)
	s.end()
}

// TestKilled: a process that is killed anywhere leaves a spool that has every batch it was told of, whole, in
// order and with the right offsets.
func TestKilled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var seen [childInputs]uint64
	for range 12 {
		told, _ := runChild(t, dir, dice.IntN(120))
		checkChild(t, dir, told, &seen)
	}
	t.Logf("stored by each input: %v", seen)
}

// TestLockedOut: while a process has the spool, another hears so.
func TestLockedOut(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), envChild+"="+dir)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("process %d has it open", os.Getpid())) {
		t.Errorf("second process: %v, %s", err, out)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
