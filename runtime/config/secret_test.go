package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestSecretNeverPrints(t *testing.T) {
	const secret = "hunter2"
	c := &Config{Sinks: []Sink{{NATS: NATS{Token: NewSecret(secret), Password: NewSecret(secret)}}}}
	f := func(got string) {
		t.Helper()
		if strings.Contains(got, secret) || strings.Contains(got, fmt.Sprintf("%x", secret)) || !strings.Contains(got, "[redacted]") {
			t.Errorf("got %s", got)
		}
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		f(fmt.Sprintf(format, c.Sinks[0].NATS.Token))
		f(fmt.Sprintf(format, &c.Sinks[0].NATS.Token))
		f(fmt.Sprintf(format, c.Sinks[0].NATS))
	}
	f(fmt.Sprintf("%+v", c.Sinks))
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	f(string(b))
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", c.Sinks[0].NATS.Token, "all", c.Sinks)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", c.Sinks[0].NATS.Token, "all", c)
	f(log.String())
	if got := c.Sinks[0].NATS.Token.Reveal(); got != secret {
		t.Errorf("Reveal: got %q", got)
	}
	if !(Secret{}).IsZero() || NewSecret("x").IsZero() || NewSecret("x") != NewSecret(string([]byte{120})) {
		t.Error("secrets do not compare")
	}
}

func TestHideSecrets(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		if got := hideSecrets(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	f("  url: nats://h:4222", "  url: nats://h:4222")
	f("  url: nats://bob:pw@h:4222", "  url: nats://[redacted]@h:4222")
	f("  token: x", "  token: [redacted]")
	f("  tokn: x", "  tokn: [redacted]")
	f(`  "pasword" : 'x'`, `  "pasword" : [redacted]`)
	f("{ a: b, api_key: x, c: d }", "{ a: b, api_key: [redacted]")
	f(`  token: "${file:/run/secret}"`, `  token: "${file:/run/secret}"`)
	f(`  token: ${env:T}`, `  token: ${env:T}`)
	f(`  token: ${env:T:-x}`, `  token: [redacted]`)
	f("  token:", "  token:")
}

func TestDistance(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		if got := distance(a, b); got != want {
			t.Errorf("%q, %q: got %d, want %d", a, b, got, want)
		}
	}
	f("", "", 0)
	f("", "abc", 3)
	f("abc", "", 3)
	f("subject", "subjct", 1)
	f("subjct", "subject", 1)
	f("kidn", "kind", 1)
	f("kitten", "sitting", 3)
	f("abcdef", "abcdef", 0)
	f(strings.Repeat("a", 65), "a", 64)
}

// TestSecretFiles: a credential that is one file and nothing else keeps the file's name, so that it can be read anew.
func TestSecretFiles(t *testing.T) {
	dir := folder(t)
	f := func(value, wantFile, wantValue string) {
		t.Helper()
		text := strings.Replace(whole, `token: "${file:secret}"`, "token: "+value, 1)
		c, err := parse("edge.yaml", text, surroundings{dir: dir, env: env})
		if err != nil {
			t.Fatal(err)
		}
		n := &c.Sinks[1].NATS
		if n.TokenFile != wantFile || n.Token.Reveal() != wantValue {
			t.Errorf("%s: file %q, value %q", value, n.TokenFile, n.Token.Reveal())
		}
		if strings.Contains(fmt.Sprintf("%+v", c.Sinks), "hunter2") {
			t.Errorf("%s: the secret prints", value)
		}
	}
	secret := filepath.Join(dir, "secret")
	f(`"${file:secret}"`, secret, "hunter2-token")
	f(`"${file:`+secret+`}"`, secret, "hunter2-token")
	f(`"x${file:secret}"`, "", "xhunter2-token")
	f(`"${file:secret}${file:secret}"`, "", "hunter2-tokenhunter2-token")
	f(`"$${file:secret}"`, "", "${file:secret}")
	f(`"${env:PASSWORD}"`, "", "hunter2-password")
}

// TestPrivateFiles: a file of keys that others can read is worth a warning, and no more.
func TestPrivateFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no such modes
	}
	dir := folder(t)
	f := func(mode os.FileMode, want int) {
		t.Helper()
		if err := os.Chmod(filepath.Join(dir, "secret"), mode); err != nil {
			t.Fatal(err)
		}
		c, err := parse("edge.yaml", whole, surroundings{dir: dir, env: env})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Count(strings.Join(c.Warnings, "\n"), "others than its owner may read the file")
		if got != want {
			t.Errorf("mode %o: %q", mode, c.Warnings)
		}
	}
	f(0o600, 0)
	f(0o400, 0)
	f(0o640, 2) // creds_file and client_key
	f(0o604, 2)
}
