package publisher

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"edge/envelope"
)

// Config is what a Publisher works with. Zero values of the limits are replaced by their defaults; no limit has an
// "off".
type Config struct {
	URL  string // nats://, tls://, ws:// or wss://, several separated by commas; no credentials in it
	Name string // shown by the server's connection list, and part of the inbox: _INBOX.<name>.>
	// Stream receives everything. ASCII letters, digits, "-" and "_", at most 128.
	Stream string
	// Subjects are the patterns that messages will have: they are checked against the stream, and a created stream
	// lists them. May be empty if CreateStream is not set; then only each message's own subject is checked.
	Subjects []string
	// CreateSubjects is what a created stream lists; default Subjects. It covers them: a stream that is to take what is
	// added later lists more than is asked of one that exists.
	CreateSubjects []string
	// Strict asks for a strict binding: Subjects is one subject without wildcards, of ASCII letters, digits, "-" and
	// "_", which the stream lists as it stands, and at most MaxStrictInFlight messages are in flight.
	Strict bool
	// CreateStream makes the stream if it is missing: file storage, limits retention without limits, discard new, one
	// replica. An existing stream is never changed.
	CreateStream    bool
	DuplicateWindow time.Duration // of a created stream, default 2 m, at least 100 ms; an existing one keeps its own

	// Who we are: a token, or user and password, or a credentials file (a user's JWT and its seed), or the file of an
	// nkey's seed, or nothing. What comes from a file is read again at each connection, so that a credential can be
	// rotated and mended while Run runs.
	Token, TokenFile             string
	User, Password, PasswordFile string
	CredsFile                    string
	NKeyFile                     string

	TLS TLS
	// DiscoveredServers lets addresses that servers announce be used as well. Off by default: behind a load balancer
	// or a network translation they lead nowhere, and they receive our credentials.
	DiscoveredServers bool

	// Mode is how messages travel; see the constants. MessageTTL, if not 0, is how long the stream keeps each message:
	// whole seconds, at least 1 s; the stream must allow it.
	Mode       Mode
	MessageTTL time.Duration

	RequestTimeout   time.Duration // of lookup, publication and acknowledgement; default 10 s, at most 300 s
	MaxInFlight      int           // messages admitted and unanswered; default 256, at most 65,536; one more while Write works beside Send
	MaxInFlightBytes int           // their headers and payloads; default 8 MiB. One message alone, and one Send beside a Write, may be larger
	Logger           *slog.Logger  // default: discard. It is called under the publisher's lock too: its handler neither blocks nor calls the Publisher

	minRecheck, recheckEvery time.Duration // tests set them; the defaults are the constants
}

// Limits and defaults. 256 messages fill a loopback connection, 1,024 one of 10 ms at 100,000 messages a second, and
// nothing was gained above; the server drops what exceeds 100,000 messages or 128 MiB of one stream's queue. A
// timeout under the 5 to 10 s that a cluster needs to elect a leader only makes more unknowns.
const (
	DefaultRequestTimeout   = 10 * time.Second
	DefaultDuplicateWindow  = 2 * time.Minute
	DefaultMaxInFlight      = 256
	DefaultMaxInFlightBytes = 8 << 20

	// MaxStrictInFlight is what a strict binding admits at most.
	MaxStrictInFlight = 1024

	maxRequestTimeout  = 300 * time.Second
	minDuplicateWindow = 100 * time.Millisecond // the server refuses less
	maxMaxInFlight     = 1 << 16
	minMessageTTL      = time.Second // and whole seconds: the server's resolution
	maxStreamName      = 128
)

// withDefaults fills what was left out.
func (c Config) withDefaults() Config {
	if c.RequestTimeout == 0 {
		c.RequestTimeout = DefaultRequestTimeout
	}
	if c.DuplicateWindow == 0 {
		c.DuplicateWindow = DefaultDuplicateWindow
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.MaxInFlightBytes == 0 {
		c.MaxInFlightBytes = DefaultMaxInFlightBytes
	}
	if c.Name == "" {
		c.Name = "edge"
	}
	if c.minRecheck == 0 {
		c.minRecheck = minRecheck
	}
	if c.recheckEvery == 0 {
		c.recheckEvery = recheckEvery
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Subjects, c.CreateSubjects = slices.Clone(c.Subjects), slices.Clone(c.CreateSubjects)
	return c
}

// created is what a created stream lists.
func (c *Config) created() []string {
	if len(c.CreateSubjects) > 0 {
		return c.CreateSubjects
	}
	return c.Subjects
}

// check returns every mistake, each a *ConfigError, joined.
func (c *Config) check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &ConfigError{field, fmt.Sprintf(format, args...)})
	}
	for _, u := range strings.Split(c.URL, ",") {
		if detail := checkURL(strings.TrimSpace(u)); detail != "" {
			bad("url", "%s", detail)
		}
	}
	if detail := checkStreamName(c.Stream); detail != "" {
		bad("stream", "%q: %s", c.Stream, detail)
	}
	subjects := slices.Clone(c.Subjects)
	for _, s := range c.CreateSubjects {
		if !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	for _, s := range subjects {
		if err := envelope.CheckPattern(s); err != nil {
			bad("subject", "%v", err)
		} else if strings.HasPrefix(s, "$") {
			bad("subject", "%q: subjects under $ belong to the server", s)
		}
	}
	if c.CreateStream && len(c.created()) == 0 {
		bad("create_stream", "it needs to know the stream's subjects: give a subject or allow_subjects")
	}
	if c.DuplicateWindow < minDuplicateWindow {
		bad("duplicate_window", "%v: at least %v is needed", c.DuplicateWindow, minDuplicateWindow)
	}
	c.checkStrict(bad)
	c.checkCredentials(bad)
	c.TLS.check(bad)
	if c.Mode > ModeFast {
		bad("publish_mode", "%v: it must be single, auto, atomic or fast", c.Mode)
	}
	if c.MessageTTL != 0 && (c.MessageTTL < minMessageTTL || c.MessageTTL%time.Second != 0) {
		bad("message_ttl", "%v: whole seconds are needed, at least %v", c.MessageTTL, minMessageTTL)
	}
	if c.RequestTimeout < 0 || c.RequestTimeout > maxRequestTimeout {
		bad("request_timeout", "%v: it must be more than 0 and at most %v", c.RequestTimeout, maxRequestTimeout)
	}
	if c.MaxInFlight < 1 || c.MaxInFlight > maxMaxInFlight {
		bad("max_in_flight", "%d: it must be from 1 to %d", c.MaxInFlight, maxMaxInFlight)
	}
	if c.MaxInFlightBytes < 1 {
		bad("max_in_flight_bytes", "%d: it must be positive", c.MaxInFlightBytes)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// checkURL returns what is wrong with one address. It does not quote an address that might hold a secret.
func checkURL(text string) string {
	if text == "" {
		return "it is empty: give an address such as nats://127.0.0.1:4222"
	}
	if strings.Contains(text, "@") {
		return "it holds credentials: put them into token, or user and password"
	}
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Sprintf("%q is not a URL: give an address such as nats://127.0.0.1:4222", text)
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return fmt.Sprintf("%q: the scheme must be nats, tls, ws or wss", text)
	}
	if u.Hostname() == "" {
		return fmt.Sprintf("%q has no host", text)
	}
	return ""
}

func checkStreamName(name string) string {
	switch {
	case name == "":
		return "it is missing: name the stream that receives the messages"
	case len(name) > maxStreamName:
		return fmt.Sprintf("%d bytes, the limit is %d", len(name), maxStreamName)
	}
	for _, c := range []byte(name) {
		if !isNameByte(c) {
			return "use ASCII letters, digits, - and _"
		}
	}
	return ""
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// inboxPrefix is where acknowledgements go: under _INBOX, which every default permission allows, and under the
// client's name, so that an account may allow just _INBOX.<name>.>
func inboxPrefix(name string) string {
	const most = 64 // bytes of the name; the rest of the reply subject takes 40
	b := []byte("_INBOX.")
	for _, c := range []byte(name[:min(len(name), most)]) {
		if !isNameByte(c) {
			c = '_'
		}
		b = append(b, c)
	}
	return string(b)
}
