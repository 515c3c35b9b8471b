package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/wasm/wasmtest"
)

// TestReadme: the configuration that README.md shows is valid as it stands, but for the files that it names.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md shows no configuration")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "recording.ndjson"), "{}\n")
	write(t, filepath.Join(dir, "envelope.wasm"), string(wasmtest.EchoConfig()))
	for _, name := range []string{"ca.pem", "client.pem", "client.key"} {
		write(t, filepath.Join(dir, name), "PEM")
	}
	secret := write(t, filepath.Join(dir, "nats_token"), "s3cret")
	text = strings.Replace(text, "/run/secrets/nats_token", secret, 1)
	text = strings.Replace(text, "/var/lib/edge", dir, 1)
	conf := write(t, filepath.Join(dir, "edge.yaml"), text)
	if code, stdout, stderr := edge(t, "validate", "-c", conf); code != 0 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
