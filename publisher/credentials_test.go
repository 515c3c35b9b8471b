package publisher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/publisher/natstest"
)

// write replaces a file as rotating tools do: by a rename.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestSecretFiles takes a publisher through a missing, a wrong and a right secret, a rotation on the server and one of
// the file, without a restart.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	f := func(field string, auth func(secret string) natstest.Option, config func(c *Config, file string)) {
		t.Helper()
		t.Run(field, func(t *testing.T) {
			srv := natstest.Start(t, auth("first-secret"))
			file := filepath.Join(t.TempDir(), "secret")
			r := run(t, srv, func(c *Config) { c.Token = ""; config(c, file) })
			r.fatal(CodeCredentials)
			if s := r.p.Status(); s.Fatal.Field != field || !strings.Contains(s.Err, file) {
				t.Errorf("%+v", s.Fatal)
			}
			write(t, file, "not the secret\n")
			r.until("a refusal by the server", func(s Status) bool {
				return s.State == Failed && strings.Contains(strings.ToLower(s.Err), "authorization violation")
			})
			write(t, file, "first-secret\n")
			r.ready()
			r.one(message(1, "e.1"), Accepted)
			srv.Reload(auth("second-secret"))
			r.fatal(CodeCredentials)
			write(t, file, "second-secret")
			r.ready()
			if x := r.one(message(1, "e.1"), Accepted); !x.Duplicate {
				t.Errorf("%+v", x)
			}
			if s := r.p.Status(); strings.Contains(s.Err, "secret") && !strings.Contains(s.Err, file) {
				t.Errorf("a secret is told: %s", s.Err)
			}
		})
	}
	f("token", func(secret string) natstest.Option { return natstest.Authorization(`token: "` + secret + `"`) },
		func(c *Config, file string) { c.TokenFile = file })
	f("password", func(secret string) natstest.Option {
		return natstest.Authorization(`users [ { user: edge, password: "` + secret + `" } ]`)
	}, func(c *Config, file string) { c.User, c.PasswordFile = "edge", file })
}

// TestReadSmall refuses what is no file of credentials.
func TestReadSmall(t *testing.T) {
	dir := t.TempDir()
	f := func(path string, want string) {
		t.Helper()
		if _, err := readSmall(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	f(dir, "not a regular file")
	f(os.DevNull, "not a regular file")
	f(filepath.Join(dir, "none"), "no such file")
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, make([]byte, maxSmall+1), 0o600); err != nil {
		t.Fatal(err)
	}
	f(huge, "larger")
	if err := os.Truncate(huge, maxSmall); err != nil {
		t.Fatal(err)
	}
	f(huge, "")
}
