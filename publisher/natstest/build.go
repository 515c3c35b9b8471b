package natstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

const serverModule = "github.com/nats-io/nats-server/v2"

// binary is the path of the server's executable, which is built at most once in each process.
var binary = sync.OnceValues(buildServer)

// buildServer builds the server that go.mod names, or finds the one that an earlier run has built. Several test
// binaries may come here at once: each builds into a name of its own and renames, so a half-written file is never
// executed, and the last one wins with the same content.
func buildServer() (string, error) {
	version, err := goCommand("list", "-m", "-f", "{{with .Replace}}{{.Path}}@{{.Version}}{{else}}{{.Version}}{{end}}", serverModule)
	if err != nil {
		return "", fmt.Errorf("find the version of nats-server in go.mod: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the nats-server binary: %w", err)
	}
	key := strings.Join([]string{"nats-server", version, runtime.GOOS, runtime.GOARCH, runtime.Version()}, "-")
	key = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\: @`, r) {
			return '_'
		}
		return r
	}, key)
	dir := filepath.Join(cache, "edge-natstest")
	path := filepath.Join(dir, key)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for the nats-server binary: %w", err)
	}
	own, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the nats-server binary: %w", err)
	}
	defer os.RemoveAll(own)
	built := filepath.Join(own, "nats-server")
	if _, err := goCommand("build", "-trimpath", "-buildvcs=false", "-o", built, serverModule); err != nil {
		return "", fmt.Errorf("build nats-server %s: %w", version, err)
	}
	if err := os.Rename(built, path); err != nil {
		return "", fmt.Errorf("keep the nats-server binary: %w", err)
	}
	return path, nil
}

// goCommand runs the go tool in the package's folder, which is where go test starts a test binary.
func goCommand(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
