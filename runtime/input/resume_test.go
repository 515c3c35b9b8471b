package input

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/envelope"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
)

// counted returns n records that differ in all but their shape.
func counted(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"%s\":%d}\n", name, i)
	}
	return b.String()
}

// TestRefilledFile holds that a file that was cut and filled again, as copytruncate does, is read from its beginning
// although it begins as before and is longer than what was read, and that an appended one is not.
func TestRefilledFile(t *testing.T) {
	const header = "{\"header\":1}\n"
	long := header + counted("long", 200)
	f := func(fresh bool, texts ...string) {
		t.Helper()
		r := newRig(t)
		read := ""
		for i, text := range texts {
			r.restart()
			r.write(text) // the same inode
			want := strings.Count(text, "\n")
			if i == len(texts)-1 && fresh {
				read = ""
			}
			want -= strings.Count(read, "\n")
			if n, refused := r.run(r.cfg()); n != want || refused != 0 {
				t.Fatalf("text %d of %d: captured %d, refused %d, want %d", i, len(texts), n, refused, want)
			}
			read = text
		}
		if warned := strings.Contains(r.log.String(), "file is read from its beginning"); warned != fresh {
			t.Fatalf("%d texts: warned %v, want %v:\n%s", len(texts), warned, fresh, r.log)
		}
	}
	f(true, header+counted("a", 3), header+counted("b", 30))
	f(true, header, header+counted("a", 3), header+counted("b", 30)) // first seen with one line only
	f(true, header, header+counted("a", 300), header+counted("b", 300))
	f(true, header+counted("a", 300), header+counted("a", 90)+counted("b", 300)) // the same beyond 1,024 bytes
	f(true, long, long[:1500]+strings.ToUpper(long[1500:])+counted("b", 10))
	f(true, long, long[:len(long)-2]+" }\n")
	f(false, header, header+counted("a", 3))
	f(false, header+counted("a", 3), header+counted("a", 300), header+counted("a", 20_000))
	f(false, long, long+counted("b", 1), long+counted("b", 2), long+counted("b", 300))
	f(false, "", header, header+counted("a", 3))
}

// TestHashesAreOfWhatWasRead holds the position that is stored against the file, whatever lines and chunks were.
func TestHashesAreOfWhatWasRead(t *testing.T) {
	const seed = 5
	rnd := rand.New(rand.NewPCG(seed, seed))
	f := func(longest, size int, ended bool) {
		t.Helper()
		r := newRig(t)
		cfg := r.cfg()
		cfg.MaxLine = 64 << 10
		text := ""
		for range 3 { // in three runs, each going on
			var b strings.Builder
			for b.Len() < size {
				fmt.Fprintf(&b, "{\"a\":\"%*d\"}\n", rnd.IntN(longest)+1, rnd.IntN(1000))
			}
			text += b.String()
			if !ended {
				text = strings.TrimSuffix(text, "\n")
			}
			r.write(text)
			r.run(cfg)
			stored, err := r.spool.Offset("file/in")
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePosition(stored)
			if err != nil {
				t.Fatal(err)
			}
			n := len(text)
			if p.offset != int64(n) || p.hash != halfSum([]byte(text[:min(n, maxHashed)])) || p.tail != halfSum([]byte(text[n-min(n, maxTailed):])) {
				t.Fatalf("seed %d, longest %d, %d bytes: got %+v", seed, longest, n, p)
			}
		}
		if strings.Contains(r.log.String(), "from its beginning") {
			t.Fatal(r.log)
		}
	}
	for _, ended := range []bool{true, false} {
		f(1, 10, ended)
		f(30, 200, ended)
		f(300, 400, ended)
		f(2000, 700, ended)
		f(20, 300_000, ended)
		f(60_000, 600_000, ended)
		f(100_000, 900_000, ended) // some are too long
	}
}

// TestHashesOfEachBatch stops at each batch and refills: the position of a batch has the hashes of its own place.
func TestHashesOfEachBatch(t *testing.T) {
	text := counted("a", 4*batchEvents)
	f := func(batches int) {
		t.Helper()
		r := newRig(t)
		r.write(text)
		r.wrapSpool = func(s Spool) Spool { return &broken{Spool: s, left: batches} }
		in, _ := r.make(r.cfg(), nil)
		if err := in.Run(context.Background()); !errors.Is(err, errCrash) {
			t.Fatalf("got %v", err)
		}
		r.wrapSpool = nil
		stored, err := r.spool.Offset("file/in")
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePosition(stored)
		if err != nil {
			t.Fatal(err)
		}
		if p.line != int64(batches*batchEvents) || p.tail != halfSum([]byte(text[p.offset-maxTailed:p.offset])) {
			t.Fatalf("batch %d: got %+v", batches, p)
		}
		r.write(text[:p.offset-2] + "0}\n" + text[p.offset:])
		if n, _ := r.run(r.cfg()); n != 4*batchEvents || !strings.Contains(r.log.String(), "bytes before byte") {
			t.Fatalf("batch %d: captured %d\n%s", batches, n, r.log)
		}
	}
	for batches := 1; batches < 4; batches++ {
		f(batches)
	}
}

// TestOldPosition holds that a position of version 1 is still read, and replaced by one of this version.
func TestOldPosition(t *testing.T) {
	text := counted("a", 50)
	f := func(seen, read int, now string, captured int) {
		t.Helper()
		r := newRig(t)
		r.write(now)
		info, err := os.Stat(r.path())
		if err != nil {
			t.Fatal(err)
		}
		old := []byte{oldVersion, 0, 0, 0, 3, 0, 0, 0}
		binary.LittleEndian.PutUint16(old[2:], uint16(seen))
		inode, ok := inodeOf(info)
		if ok {
			old[1] = flagInode
		}
		old = binary.LittleEndian.AppendUint64(old, inode)
		sum := halfSum([]byte(text[:seen]))
		old = append(old, sum[:]...)
		old = binary.LittleEndian.AppendUint64(old, uint64(read))
		old = binary.LittleEndian.AppendUint64(old, uint64(strings.Count(text[:read], "\n")))
		if _, err := r.spool.Append(context.Background(), spool.Batch{Offset: spool.Offset{Key: "file/in", Value: old}}); err != nil {
			t.Fatal(err)
		}
		if n, _ := r.run(r.cfg()); n != captured {
			t.Fatalf("%d seen, %d read: captured %d, want %d\n%s", seen, read, n, captured, r.log)
		}
		stored, err := r.spool.Offset("file/in")
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePosition(stored)
		if err != nil || stored[0] != positionVersion || p.hash != halfSum([]byte(now[:min(len(now), maxHashed)])) {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	ten := strings.Index(text, "{\"a\":10}")
	f(5, ten, text, 40)
	f(len(text), ten, text, 40) // seen whole, read in part
	f(0, ten, text, 40)
	f(5, ten, "{\"b\""+text[4:], 50)
	more := counted("a", 500)
	text = more
	f(maxHashed, strings.Index(text, "{\"a\":400}"), text, 100)
}

// TestIDsOfAgents holds that producers that count alike are kept apart by agent and input, that 32 hex digits are
// taken as they are, and that refused lines have ids of agent, input, place and text, the same in every run.
func TestIDsOfAgents(t *testing.T) {
	const hex = "0123456789abcdef0011223344556677"
	f := func(agent, input, bad string) (ids [3]envelope.ID) {
		t.Helper()
		r := newRig(t)
		r.agent = agent
		r.write("{\"id\":17}\n{\"id\":\"" + hex + "\"}\n" + bad + "\n")
		info, err := os.Stat(r.path())
		if err != nil {
			t.Fatal(err)
		}
		cfg := r.cfg()
		cfg.ID = input
		// A crash behind the quarantine, before the spool: the line is refused again, and is the same one.
		r.wrapSpool = func(s Spool) Spool { return &broken{Spool: s} }
		in, _ := r.make(cfg, nil)
		if err := in.Run(context.Background()); !errors.Is(err, errCrash) {
			t.Fatalf("got %v", err)
		}
		r.wrapSpool = nil
		r.append("{}\n")
		if n, refused := r.run(cfg); n != 4 || refused != 1 {
			t.Fatalf("captured %d, refused %d", n, refused)
		}
		rd, err := r.spool.Reader("sink")
		if err != nil {
			t.Fatal(err)
		}
		var b spool.Block
		if n, err := rd.Read(&b, 10, 1<<20); n != 3 || err != nil {
			t.Fatalf("%d events, %v", n, err)
		}
		for i := range 2 {
			var e envelope.Event
			if err := envelope.ParseEvent(b.Records[i], &e); err != nil {
				t.Fatal(err)
			}
			ids[i] = e.ID
		}
		entries := 0
		if _, err := quarantine.Scan(filepath.Join(r.dir, "quarantine"), func(e *quarantine.Entry) bool {
			entries++
			inode, _ := inodeOf(info)
			if e.ID != envelope.HashID(agent+"/"+input, fmt.Appendf(nil, "file %d 0@%d %s", inode, 9+1+len(hex)+10, bad)) {
				t.Fatalf("%s is no id of agent, input, place and text", e.ID)
			}
			ids[2] = e.ID
			return true
		}); err != nil || entries != 1 {
			t.Fatalf("%d entries, %v", entries, err)
		}
		return ids
	}
	all := [][3]envelope.ID{f("r1", "in", "bad"), f("r2", "in", "bad"), f("r1", "in-2", "bad")}
	want, _ := envelope.ParseID([]byte(hex))
	for i, a := range all {
		if a[1] != want {
			t.Errorf("got %s, want %s", a[1], want)
		}
		for _, b := range all[:i] {
			if a[0] == b[0] || a[2] == b[2] {
				t.Errorf("agents or inputs share an id: %v %v", a, b)
			}
		}
	}
	if again := f("r1", "in", "bad"); again[0] != all[0][0] {
		t.Errorf("got %s for the same producer id, want %s", again[0], all[0][0])
	}
}
