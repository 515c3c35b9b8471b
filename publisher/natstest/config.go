package natstest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Store limits of a server (DESIGN section 13): enough for any test, small enough that a runaway one is noticed.
const (
	MaxMemory = 64 << 20  // bytes of all memory streams
	MaxFile   = 256 << 20 // bytes of all file streams
)

// settings is what the configuration file is made of.
type settings struct {
	name     string
	token    string
	auth     string // an authorization block instead of the token; "" for the token
	sync     string // value of sync_interval
	store    string // further settings of JetStream
	cluster  string // inside of the cluster block; "" for a server alone
	tls      transport
	operator string // operator, resolver and accounts; "" for none
	creds    string // file that Connect uses then
	extra    string // lines at the end
}

// Option changes how a server is configured.
type Option func(*settings)

// Extra appends lines to the server's configuration: max_payload, accounts, anything that Start does not set.
func Extra(lines string) Option { return func(s *settings) { s.extra += lines + "\n" } }

// Authorization replaces the token by what is inside an authorization block: users with permissions, say. Token
// returns "" then, and Connect needs the credentials as options.
func Authorization(block string) Option {
	return func(s *settings) { s.token, s.auth = "", block }
}

// SyncInterval replaces "always": tests about speed take "2m", which is the server's own default.
func SyncInterval(value string) Option { return func(s *settings) { s.sync = value } }

// Domain gives the server's JetStream a domain, as a leaf at the edge has one.
func Domain(name string) Option {
	return func(s *settings) { s.store += fmt.Sprintf(", domain: %q", name) }
}

// newSettings is a server with a random token, changed by opts.
func newSettings(opts []Option) settings {
	s := settings{name: "natstest", token: secret(), sync: "always"}
	for _, o := range opts {
		o(&s)
	}
	return s
}

func secret() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// text is the configuration of a server that listens on addr and keeps its streams under dir.
func (s *settings) text(addr, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %q\nserver_name: %q\n", addr, s.name)
	fmt.Fprintf(&b, "jetstream { store_dir: %q, max_mem: %d, max_file: %d, sync_interval: %s%s }\n", dir, MaxMemory, MaxFile, s.sync, s.store)
	switch {
	case s.token != "":
		fmt.Fprintf(&b, "authorization { token: %q }\n", s.token)
	case s.auth != "":
		fmt.Fprintf(&b, "authorization {\n%s\n}\n", s.auth)
	}
	if s.cluster != "" {
		fmt.Fprintf(&b, "cluster {\n%s}\n", s.cluster)
	}
	if s.tls.on() {
		b.WriteString(s.tls.text())
	}
	b.WriteString(s.operator)
	b.WriteString(s.extra)
	return b.String()
}

func (s *Server) configPath() string { return filepath.Join(s.dir, "server.conf") }

func (s *Server) writeConfig() error {
	return os.WriteFile(s.configPath(), []byte(s.set.text(s.addr, filepath.Join(s.dir, "data"))), 0o600)
}
