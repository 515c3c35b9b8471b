package config

import (
	"slices"
	"strings"
	"time"
)

// Config is one agent's whole configuration. Load makes it; nobody changes it afterwards, so any goroutine may
// read it.
type Config struct {
	File       string // as it was given to Load
	Agent      Agent
	Datasets   []Dataset // at least one
	Inputs     []Input   // at least one
	Sinks      []Sink    // at least one
	Spool      Spool
	Quarantine Quarantine
	Warnings   []string // what is allowed and probably not meant, each with its place; for the log
}

// Agent is what the process is called and where it keeps its things.
type Agent struct {
	ID        string        // letters, digits, "-", "_" and "."
	DataDir   string        // a path, joined with the file's folder if it was relative
	DrainTime time.Duration // how long a stop waits for what is in flight; default DefaultDrainTime
}

// Dataset is a named kind of event. Its name and its levels are usable as subject tokens' placeholders.
type Dataset struct {
	Name     string
	Identity []string // ordered levels; may be empty
}

// The kinds and formats of inputs.
const (
	KindFile   = "file"
	KindStdin  = "stdin"
	FormatJSON = "json" // one JSON object a line
	FormatRaw  = "raw"  // one opaque body a line
)

// Input is one source of events.
type Input struct {
	ID      string
	Kind    string // KindFile or KindStdin; at most one input is stdin
	Path    string // of a file, joined with the configuration's folder if it was relative; else empty
	Dataset string // the name of a declared dataset
	Format  string // FormatJSON or FormatRaw; default FormatJSON
	Map     Map    // empty for FormatRaw
	MaxLine int    // bytes of one line without its line break; default DefaultMaxLine
}

// The forms of a source's time.
const (
	TimeRFC3339   = "rfc3339"
	TimeUnix      = "unix_s"
	TimeUnixMilli = "unix_ms"
	TimeUnixMicro = "unix_us"
	TimeUnixNano  = "unix_ns"
)

// Map says where a record keeps what an event needs, as JSON pointers (RFC 6901). An empty one is not mapped.
type Map struct {
	ID         string // 32 hex digits are taken as they are; another text is hashed with the agent's and the input's id
	Time       string
	TimeFormat string // one of the forms above; default TimeRFC3339
	Quality    string
	Identity   map[string]string // level of the dataset -> pointer
}

// KindNATS is the one kind of sink.
const KindNATS = "nats"

// Sink is one destination.
type Sink struct {
	ID        string
	Kind      string     // KindNATS
	Transform *Transform // nil: the built-in envelope
	NATS      NATS       // the key config
	Retry     Retry
}

// Transform is the module that renders a sink's events.
type Transform struct {
	Module string // path of a file that existed, joined with the configuration's folder if it was relative
	SHA256 string // 64 lower-case hex digits that the file must have, or empty
	Config []byte // one JSON object for the module, its keys in the order of the file; nil if there is none
	Limits TransformLimits
}

// TransformLimits replace a module's default limits. Zero means the default; there is no "off".
type TransformLimits struct {
	Memory int           // bytes
	Output int           // bytes an event
	Input  int           // bytes an event
	Time   time.Duration // of the wall clock, an event
	Fuel   int64         // executed units, an event
}

// PayloadJSON is the one form of a payload that is rendered without a module.
const PayloadJSON = "json"

// NATS is how a sink reaches its stream.
type NATS struct {
	URL             string // nats://, tls:// (several with commas between them), or embedded:// with an optional loopback address
	Subject         string // template, checked; empty only if a module renders
	Stream          string
	CreateStream    bool
	DuplicateWindow time.Duration // of a created stream; default DefaultDuplicateWindow
	Token           Secret        // as it was at Load, as Password
	TokenFile       string        // the file that it came from, if it came from one whole: a connection reads it anew
	User            string
	Password        Secret
	PasswordFile    string
	CredsFile       string // of a user's JWT and seed; a regular file at Load, as the others below
	NKeyFile        string // of an nkey's seed
	TLS             TLS
	Discovered      bool          // addresses that servers announce are used as well
	Binding         string        // BindingTemplate or BindingStrict
	PublishMode     string        // ModeSingle, ModeAuto, ModeAtomic or ModeFast
	OnDenied        string        // DeniedHalt or DeniedQuarantine
	MessageTTL      time.Duration // whole seconds; 0 for none
	Payload         string        // PayloadJSON
	RequestTimeout  time.Duration // 1ms to MaxRequestTimeout; default DefaultRequestTimeout
	MaxInFlight     int           // 1 to MaxInFlight; default DefaultMaxInFlight
	MaxInFlightSize int           // bytes, default DefaultMaxInFlightSize
	Datasets        []string      // names of declared datasets; never empty: all of them if none was given
	AllowSubjects   []string      // patterns; empty: what the stream lists
}

// TLS is how the connection of a sink is secured. Paths name regular files that were there at Load; "" for none.
type TLS struct {
	CAFile     string // default: the system's authorities
	ClientCert string // with ClientKey
	ClientKey  string
	First      bool // before the server says anything
}

// The words of a sink's choices. The first of each is the default.
const (
	BindingTemplate  = "template"
	BindingStrict    = "strict" // one subject without placeholders, which the stream lists itself
	ModeSingle       = "single"
	ModeAuto         = "auto"
	ModeAtomic       = "atomic"
	ModeFast         = "fast"
	DeniedHalt       = "halt"       // the sink fails until the server allows the subject
	DeniedQuarantine = "quarantine" // the event waits for a person and the sink goes on
)

// Allowed is what messages may be published under whoever names their subjects; empty: what the stream lists.
func (n *NATS) Allowed() []string {
	if n.Binding == BindingStrict {
		return []string{n.Subject}
	}
	return n.AllowSubjects
}

// Embedded tells whether the sink uses the server in this process, and the address that it shall listen on, "" for any
// free port.
func (n *NATS) Embedded() (addr string, ok bool) {
	return strings.CutPrefix(n.URL, schemeEmbedded+"://")
}

// Retry is a sink's pause between attempts.
type Retry struct {
	MinBackoff time.Duration // default DefaultMinBackoff
	MaxBackoff time.Duration // default DefaultMaxBackoff, at least MinBackoff
}

// Spool is the durable log.
type Spool struct {
	MaxBytes int64 // default DefaultSpoolBytes, at least MinSpoolBytes
}

// Quarantine is the store of events that wait for a person.
type Quarantine struct {
	MaxBytes int64 // default DefaultQuarantineBytes
}

// Defaults and bounds. Where another package owns the number, its own check says the same.
const (
	DefaultDrainTime       = 10 * time.Second
	DefaultMaxLine         = 1 << 20 // bytes; also the default of what a module takes as one event
	DefaultDuplicateWindow = 2 * time.Minute
	DefaultRequestTimeout  = 10 * time.Second
	MaxRequestTimeout      = 300 * time.Second // the publisher's contract
	DefaultMaxInFlight     = 256
	MaxInFlight            = 1024 // the publisher's contract
	DefaultMaxInFlightSize = 8 << 20
	DefaultMinBackoff      = 250 * time.Millisecond
	DefaultMaxBackoff      = 30 * time.Second
	DefaultSpoolBytes      = 1 << 30
	MinSpoolBytes          = 8 << 20 // some batches of an input; and at least four of its longest lines
	DefaultQuarantineBytes = 256 << 20
)

// Dataset returns the declared dataset with this name, nil if there is none.
func (c *Config) Dataset(name string) *Dataset {
	for i := range c.Datasets {
		if c.Datasets[i].Name == name {
			return &c.Datasets[i]
		}
	}
	return nil
}

// Levels are the identity levels that every dataset of s declares, in the order of the first: what its subject
// template may name. A level that only some of them have would reject every event of the others.
func (c *Config) Levels(s *Sink) []string {
	var levels []string
	for i, name := range s.NATS.Datasets {
		d := c.Dataset(name)
		if d == nil {
			continue // Load has reported it
		}
		if i == 0 {
			levels = slices.Clone(d.Identity)
			continue
		}
		levels = slices.DeleteFunc(levels, func(l string) bool { return !slices.Contains(d.Identity, l) })
	}
	return levels
}
