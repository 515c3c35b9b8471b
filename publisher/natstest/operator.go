package natstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Operator stands over accounts and users that are known by signed claims (JWT) instead of the server's configuration:
// one account with JetStream, and the system account. Its methods belong to the goroutine of the test.
type Operator struct {
	t       testing.TB
	dir     string
	key     nkeys.KeyPair
	text    string // its own claims, signed once: a server does not reload others
	system  *claim
	account *claim
	users   map[string]string // name to public key
	creds   string            // file of the user whom the fixture itself connects as
	issued  int
}

// claim is an account and the key that signs its users.
type claim struct {
	key    nkeys.KeyPair
	claims *jwt.AccountClaims
}

// AccountLimits bound the account's JetStream. Zero is no limit.
type AccountLimits struct {
	DiskBytes int64
	Streams   int64
}

// UserConfig is one user.
type UserConfig struct {
	Name        string
	Expires     time.Time // zero for never; one that is over already makes credentials that no server takes
	Allow, Deny []string  // subjects to publish to; both empty for all
}

// NewOperator makes an operator whose account has no limits.
func NewOperator(t testing.TB) *Operator {
	t.Helper()
	o := &Operator{t: t, dir: t.TempDir(), key: pair(t, nkeys.CreateOperator), users: make(map[string]string)}
	self := jwt.NewOperatorClaims(public(t, o.key))
	self.Name = "natstest"
	o.text = o.encode(self, o.key)
	o.system, o.account = o.newAccount("SYS"), o.newAccount("ROBOTS")
	o.Limit(AccountLimits{})
	o.creds = o.Creds(t, UserConfig{Name: "natstest"})
	return o
}

func pair(t testing.TB, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	k, err := create()
	if err != nil {
		t.Fatalf("natstest: make a key: %v", err)
	}
	return k
}

func public(t testing.TB, k nkeys.KeyPair) string {
	t.Helper()
	p, err := k.PublicKey()
	if err != nil {
		t.Fatalf("natstest: make a key: %v", err)
	}
	return p
}

func (o *Operator) newAccount(name string) *claim {
	o.t.Helper()
	c := &claim{key: pair(o.t, nkeys.CreateAccount)}
	c.claims = jwt.NewAccountClaims(public(o.t, c.key))
	c.claims.Name = name
	return c
}

// Limit changes the account's limits. A running server learns of it by Push.
func (o *Operator) Limit(l AccountLimits) {
	unlimited := func(n int64) int64 {
		if n == 0 {
			return -1
		}
		return n
	}
	o.account.claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: -1, DiskStorage: unlimited(l.DiskBytes), Streams: unlimited(l.Streams), Consumer: -1,
	}
}

// Option makes a server trust the operator and know its accounts as they are now. Connect is a user who may do
// everything in the account.
func (o *Operator) Option() Option {
	o.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload {\n", o.text, o.system.claims.Subject)
	for _, c := range []*claim{o.system, o.account} {
		fmt.Fprintf(&b, "  %s: %s\n", c.claims.Subject, o.encode(c.claims, o.key))
	}
	b.WriteString("}\n")
	return func(s *settings) { s.token, s.auth, s.operator, s.creds = "", "", b.String(), o.creds }
}

func (o *Operator) encode(c jwt.Claims, by nkeys.KeyPair) string {
	o.t.Helper()
	text, err := c.Encode(by)
	if err != nil {
		o.t.Fatalf("natstest: sign claims: %v", err)
	}
	return text
}

// Push makes a running server take what was changed since Option or the last Push.
func (o *Operator) Push(s *Server) {
	o.t.Helper()
	s.Reload(o.Option())
}

// Creds makes a user and writes its credentials file.
func (o *Operator) Creds(t testing.TB, cfg UserConfig) string {
	t.Helper()
	key := pair(t, nkeys.CreateUser)
	u := jwt.NewUserClaims(public(t, key))
	u.Name = cfg.Name
	u.Pub.Allow, u.Pub.Deny = cfg.Allow, cfg.Deny
	if !cfg.Expires.IsZero() {
		u.Expires = cfg.Expires.Unix()
	}
	o.users[cfg.Name] = u.Subject
	seed, err := key.Seed()
	if err != nil {
		t.Fatalf("natstest: make a key: %v", err)
	}
	text, err := jwt.FormatUserConfig(o.encode(u, o.account.key), seed)
	if err != nil {
		t.Fatalf("natstest: write credentials: %v", err)
	}
	o.issued++
	path := filepath.Join(o.dir, fmt.Sprintf("%d.creds", o.issued))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatalf("natstest: %v", err)
	}
	return path
}

// Revoke takes a user's rights away, from the next Push on.
func (o *Operator) Revoke(name string) {
	o.t.Helper()
	key, ok := o.users[name]
	if !ok {
		o.t.Fatalf("natstest: revoke user %q: there is none", name)
	}
	o.account.claims.Revoke(key)
}

// NKeyUser makes the key of a user for an Authorization block: a file with its seed, and its public half.
func NKeyUser(t testing.TB) (seedFile, publicKey string) {
	t.Helper()
	key := pair(t, nkeys.CreateUser)
	seed, err := key.Seed()
	if err != nil {
		t.Fatalf("natstest: make a key: %v", err)
	}
	seedFile = filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(seedFile, append(seed, '\n'), 0o600); err != nil {
		t.Fatalf("natstest: %v", err)
	}
	return seedFile, public(t, key)
}
