package publisher

import (
	"os"
	"strings"
	"testing"
	"time"

	"edge/publisher/natstest"
)

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCreds takes a publisher through credentials of an operator: expired ones, good ones, their revocation, new ones,
// ones that expire while it is connected, and new ones again. It is never restarted.
func TestCreds(t *testing.T) {
	t.Parallel()
	op := natstest.NewOperator(t)
	srv := natstest.Start(t, op.Option())
	file := t.TempDir() + "/edge.creds"
	put := func(name string, expires time.Time) {
		t.Helper()
		write(t, file, content(t, op.Creds(t, natstest.UserConfig{Name: name, Expires: expires})))
	}
	put("old", time.Now().Add(-2*time.Hour))
	r := run(t, srv, func(c *Config) { c.Token, c.CredsFile = "", file })
	told := func(text string) {
		t.Helper()
		r.until(text, func(s Status) bool {
			return s.State == Failed && s.Fatal.Code == CodeCredentials && s.Fatal.Field == "creds_file" && strings.Contains(strings.ToLower(s.Err), text)
		})
	}
	told("expired at ")
	put("first", time.Time{})
	r.ready()
	r.one(message(1, "e.1"), Accepted)
	op.Revoke("first")
	op.Push(srv)
	told("revoked")
	put("second", time.Time{})
	r.ready()
	if x := r.one(message(1, "e.1"), Accepted); !x.Duplicate {
		t.Errorf("%+v", x)
	}

	// The file is replaced by one that ends soon, which counts from the next connection on.
	put("brief", time.Now().Add(4*time.Second))
	srv.Restart()
	r.ready()
	told("expired")
	put("third", time.Time{})
	r.ready()
	r.one(message(2, "e.1"), Accepted)

	write(t, file, "not credentials at all")
	srv.Restart()
	told("creds")
	write(t, file, strings.Repeat("-", maxSmall+1))
	told("larger")
	put("fourth", time.Time{})
	r.ready()
}

// TestNKey says who we are by a key: an unknown one, then the right one.
func TestNKey(t *testing.T) {
	seed, public := natstest.NKeyUser(t)
	stranger, _ := natstest.NKeyUser(t)
	srv := natstest.Start(t, natstest.Authorization(`users [ { nkey: `+public+` } ]`))
	file := t.TempDir() + "/edge.nk"
	write(t, file, content(t, stranger))
	r := run(t, srv, func(c *Config) { c.Token, c.NKeyFile = "", file })
	r.fatal(CodeCredentials)
	if s := r.p.Status(); s.Fatal.Field != "nkey_file" {
		t.Errorf("%+v", s.Fatal)
	}
	write(t, file, content(t, seed))
	r.ready()
	r.one(message(1, "e.1"), Accepted)
}
