package lockdir

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain is also the other process: with a folder in the environment it holds that until its input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv("LOCKDIR_HOLD")
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := Open("spool", dir); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("held\n")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0) // without a Close
}

// refused opens dir, which must be locked by pid, 0 for a process that does not say.
func refused(t *testing.T, dir string, pid int) {
	t.Helper()
	l, err := Open("quarantine", dir)
	if err == nil {
		l.Close()
		t.Fatal("opened twice")
	}
	var locked *LockedError
	if !errors.As(err, &locked) || locked.What != "quarantine" || locked.Path != dir || locked.PID != pid {
		t.Fatalf("%v: %+v, want process %d", err, locked, pid)
	}
	if text := err.Error(); !strings.Contains(text, "open quarantine "+dir) || !strings.Contains(text, "data_dir") {
		t.Errorf("%q", text)
	}
}

func opened(t *testing.T, dir string) *Lock {
	t.Helper()
	l, err := Open("spool", dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c") // none of which is there
	l := opened(t, dir)
	refused(t, dir, os.Getpid())
	opened(t, filepath.Dir(dir)).Close() // each folder has its own
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := opened(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHolderDies: a process that ends without a Close leaves no lock behind, only its hint.
func TestHolderDies(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOCKDIR_HOLD="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	refused(t, dir, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // it was killed: the error is known
	opened(t, dir).Close()
}

// TestHint: what is in the file is a word to people and decides nothing.
func TestHint(t *testing.T) {
	f := func(hint string, pid int) {
		t.Helper()
		dir := t.TempDir()
		l := opened(t, dir)
		defer l.Close()
		if err := os.WriteFile(filepath.Join(dir, fileLock), []byte(hint), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, pid)
	}
	f("4711\n", 4711)
	f("", 0)
	f("nobody", 0)
	f("-7\n", 0)
	f(strings.Repeat("9", 1000), 0)

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileLock), []byte(strings.Repeat("9", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	l := opened(t, dir)
	defer l.Close()
	refused(t, dir, os.Getpid())
	if text := (&LockedError{What: "spool", Path: "d"}).Error(); !strings.Contains(text, "another process") {
		t.Errorf("%q", text)
	}
}

func TestOpenRefuses(t *testing.T) {
	f := func(dir string) {
		t.Helper()
		l, err := Open("spool", dir)
		if err == nil {
			l.Close()
			t.Fatalf("%s: opened", dir)
		}
		var locked *LockedError
		if errors.As(err, &locked) || !strings.HasPrefix(err.Error(), "open spool") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f(file)
	f(filepath.Join(file, "a", "b"))
	if err := Sync(t.TempDir()); err != nil {
		t.Error(err)
	}
}
