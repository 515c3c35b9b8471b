package publisher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"edge/envelope"
)

// Posture is what Probe has found.
type Posture struct {
	Server     string // name, version and address of the server that answered
	MaxPayload int    // bytes, headers included
	Missing    bool   // the stream is not there and would be created: the Profile is that of the new one then
	Profile    Profile
	Account    *Account // nil if the server does not tell us
	// Rights of this user; nil if the server does not tell us.
	Publish []Right // to each of Config.Subjects
	Inbox   Access  // to the subjects that acknowledgements come on
	User    string  // as the server calls us; "" for nobody in particular
}

// Right is what the server lets us do with a subject or pattern.
type Right struct {
	Subject string
	Access  Access
}

// Access is a yes, a no, or a no for some of a pattern's subjects.
type Access uint8

const (
	// NotTold: the server does not say.
	NotTold Access = iota
	// Denied to all of it.
	Denied
	// Partly allowed: some subjects of the pattern are, others are not, or it cannot be told.
	Partly
	// Allowed to all of it.
	Allowed
)

// String is the access's name for people and programs.
func (a Access) String() string {
	switch a {
	case Denied:
		return "denied"
	case Partly:
		return "partly"
	case Allowed:
		return "allowed"
	}
	return "unknown"
}

// Account is what our account uses of JetStream and may use: that of the stream's replicas, where its limits depend on
// them. Limits are 0 where there is none.
type Account struct {
	Storage, MaxStorage int64 // bytes of file streams
	Streams, MaxStreams int64
	MaxStreamBytes      int64 // of one file stream
	MaxBytesRequired    bool  // no stream is created without max_bytes
}

// refuses is why the account takes no further stream without limits, "" if it does or nothing is known.
func (a *Account) refuses() string {
	switch {
	case a == nil:
		return ""
	case a.MaxStreams > 0 && a.Streams >= a.MaxStreams:
		return fmt.Sprintf("it has its %d streams", a.MaxStreams)
	case a.MaxBytesRequired || a.MaxStreamBytes > 0:
		return "it asks for max_bytes, which a created stream does not have"
	}
	return ""
}

// Probe connects as a Publisher with this configuration would, and looks at the server and the stream once. It creates
// and changes nothing, and nothing of it runs when it returns, within RequestTimeout or when ctx ends.
//
// The error is a *ConfigError, or several joined, of a configuration that New refuses; a *FatalError if a Publisher
// would fail; any other if the server cannot be reached or does not answer. What was found before is in the Posture.
func Probe(ctx context.Context, cfg Config) (Posture, error) {
	p, err := New(cfg)
	if err != nil {
		return Posture{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.RequestTimeout)
	defer cancel()
	s, err := p.connectAny(ctx)
	if err != nil {
		return Posture{}, err
	}
	defer s.close()
	found := Posture{Server: s.server, MaxPayload: s.maxPayload}
	found.Profile, err = p.examine(ctx, s)
	if errors.Is(err, errMissing) {
		if p.cfg.CreateStream {
			found.Missing = true
			found.Profile, err = checkStream(&p.cfg, &streamInfo{Config: newStream(&p.cfg)})
		} else {
			err = p.missing()
		}
	}
	select {
	case fatal := <-s.fatal: // we may not listen: nothing that we ask is answered
		return found, fatal
	default:
	}
	if err != nil && !errors.As(err, new(*FatalError)) {
		return found, err
	}
	found.Account = accountInfo(ctx, s, max(found.Profile.Replicas, 1))
	if create := p.rights(ctx, s, &found); found.Missing && create == Denied {
		return found, p.mayNotCreate()
	}
	if found.Missing && err == nil {
		if why := found.Account.refuses(); why != "" {
			return found, &FatalError{Code: CodeCreate, Field: "create_stream",
				Detail: fmt.Sprintf("stream %q does not exist, and the account takes no such stream: %s", p.cfg.Stream, why), Fix: "raise the account's limits, or create it by hand"}
		}
	}
	return found, err
}

// connectAny makes a session at the first address that takes us. Each has its share of the time. The error is the first
// that somebody has to mend, or else tells of every address.
func (p *Publisher) connectAny(ctx context.Context) (*session, error) {
	at := newServers(p.cfg.URL, 0)
	var fatal *FatalError
	var all error
	for left := len(at.list); left > 0; left-- {
		try, giveUp := context.WithCancelCause(ctx)
		end, _ := ctx.Deadline()
		limit := time.AfterFunc(time.Until(end)/time.Duration(left), func() { giveUp(context.DeadlineExceeded) })
		s, err := p.connect(try, at.take())
		if limit.Stop() && err == nil {
			return s, nil
		}
		if err == nil { // it was cut in the last moment
			s.close()
			err = context.DeadlineExceeded
		}
		if fatal == nil {
			errors.As(err, &fatal)
		}
		if all == nil {
			all = err
		} else {
			all = fmt.Errorf("%w; %w", all, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if fatal != nil {
		return nil, fatal
	}
	return nil, all
}

// accountInfo asks for the account's limits for streams of this many replicas; nil if we may not or nobody answers.
func accountInfo(ctx context.Context, s *session, replicas int) *Account {
	data, err := s.request(ctx, "$JS.API.INFO", nil)
	if err != nil {
		return nil
	}
	return parseAccount(data, replicas)
}

// tier is a set of limits and what is used of them, in JetStream's words.
type tier struct {
	Storage int64 `json:"storage"`
	Streams int64 `json:"streams"`
	Limits  struct {
		MaxStorage       int64 `json:"max_storage"`
		MaxStreams       int64 `json:"max_streams"`
		MaxStreamBytes   int64 `json:"storage_max_stream_bytes"`
		MaxBytesRequired bool  `json:"max_bytes_required"`
	} `json:"limits"`
}

// parseAccount reads the answer of $JS.API.INFO; nil if it is none. An account has one tier, or one for each number of
// replicas.
func parseAccount(data []byte, replicas int) *Account {
	var m struct {
		Error json.RawMessage `json:"error"`
		tier
		Tiers map[string]tier `json:"tiers"`
	}
	if json.Unmarshal(data, &m) != nil || len(m.Error) > 0 {
		return nil
	}
	t, ok := m.Tiers[fmt.Sprintf("R%d", replicas)]
	if !ok {
		t = m.tier
	}
	return &Account{ // a limit of -1 is none
		Storage: max(t.Storage, 0), MaxStorage: max(t.Limits.MaxStorage, 0), Streams: max(t.Streams, 0), MaxStreams: max(t.Limits.MaxStreams, 0),
		MaxStreamBytes: max(t.Limits.MaxStreamBytes, 0), MaxBytesRequired: t.Limits.MaxBytesRequired,
	}
}

// user is who the server takes us for, and what it lets us do.
type user struct {
	Name        string `json:"user"`
	Permissions struct {
		Publish   *permissions `json:"publish"`
		Subscribe *permissions `json:"subscribe"`
	} `json:"permissions"`
}

// permissions are those for one verb. No allow list allows everything that is not denied.
type permissions struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// parseUser reads the answer of $SYS.REQ.USER.INFO; nil if it is none.
func parseUser(data []byte) *user {
	var m struct {
		Error json.RawMessage `json:"error"`
		Data  *user           `json:"data"`
	}
	if json.Unmarshal(data, &m) != nil || len(m.Error) > 0 {
		return nil
	}
	return m.Data
}

// rights asks the server who we are and what we may do, and returns whether we may create the stream. Not every server
// answers, and not every user may ask.
func (p *Publisher) rights(ctx context.Context, s *session, found *Posture) (create Access) {
	data, err := s.request(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return NotTold
	}
	u := parseUser(data)
	if u == nil {
		return NotTold
	}
	found.User = u.Name
	found.Inbox = access(u.Permissions.Subscribe, p.inbox+"*")
	for _, subject := range p.cfg.Subjects {
		found.Publish = append(found.Publish, Right{subject, access(u.Permissions.Publish, subject)})
	}
	return access(u.Permissions.Publish, createSubject(&p.cfg))
}

// access decides what permissions say of a pattern. Several allowed patterns that cover it together only, are not seen
// to: that is Partly.
func access(p *permissions, pattern string) Access {
	if p == nil {
		return Allowed
	}
	// An entry of a subscription may be followed by the name of a queue.
	subject := func(entry string) string { head, _, _ := strings.Cut(entry, " "); return head }
	covers := func(e string) bool { return envelope.PatternCovers(subject(e), pattern) }
	meets := func(e string) bool { return envelope.PatternsMeet(subject(e), pattern) }
	switch {
	case slices.ContainsFunc(p.Deny, covers):
		return Denied
	case len(p.Allow) > 0 && !slices.ContainsFunc(p.Allow, meets):
		return Denied
	case slices.ContainsFunc(p.Deny, meets), len(p.Allow) > 0 && !slices.ContainsFunc(p.Allow, covers):
		return Partly
	}
	return Allowed
}
