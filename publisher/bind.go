package publisher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// JetStream's numbers that a bind decides by.
const (
	codeStreamNotFound = 10059
	codeStreamExists   = 10058
	codeInvalidConfig  = 10052 // with status 500, although it will never be better
	codeNoAccount      = 10039 // JetStream is not enabled for the account
	codeTooLarge       = 10054 // a message over max_msg_size, which is checked before it is sent
)

// Why there is no answer of JetStream's API. Another server of several may give one.
var (
	errNobody   = errors.New("nobody answers: enable JetStream on the server and for the account, or wait for it")
	errNoAnswer = errors.New("no answer in time")
)

// bind looks the stream up, makes it if it may, and holds it against what is needed, all within the time given. A
// *FatalError means that the stream will not do; any other error may pass.
func (p *Publisher) bind(ctx context.Context, s *session, within time.Duration) (Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	profile, err := p.examine(ctx, s)
	if !errors.Is(err, errMissing) {
		return profile, err
	}
	if p.cfg.CreateStream {
		return p.createStream(ctx, s)
	}
	return Profile{}, p.missing()
}

// errMissing: there is no stream of that name.
var errMissing = errors.New("no such stream")

func (p *Publisher) missing() *FatalError {
	return &FatalError{Code: CodeMissing, Field: "stream", Detail: fmt.Sprintf("stream %q does not exist", p.cfg.Stream),
		Fix: "create it, or set create_stream: true"}
}

// examine is the part of bind that changes nothing. The error is errMissing, a *FatalError, or may pass.
func (p *Publisher) examine(ctx context.Context, s *session) (Profile, error) {
	info, err := p.streamInfo(ctx, s)
	var (
		denied  *DeniedError
		refused *apiError
	)
	switch {
	case err == nil:
		return checkStream(&p.cfg, info)
	case errors.As(err, &denied):
		return p.unverified(denied), nil
	case errors.As(err, &refused) && refused.ErrCode == codeStreamNotFound:
		return Profile{}, errMissing
	case errors.As(err, &refused) && refused.ErrCode == codeNoAccount:
		return Profile{}, &FatalError{Code: CodeJetStream, Field: "url", Detail: "look up stream " + p.cfg.Stream, Err: err,
			Fix: "enable JetStream for the account, or use another account"}
	}
	return Profile{}, err
}

// unverified is the profile of a stream that we may publish into but not look at.
func (p *Publisher) unverified(why *DeniedError) Profile {
	return Profile{Stream: p.cfg.Stream, DeliveryClass: AtLeastOnce, Warnings: []string{
		"the stream's configuration is not readable (" + why.Text + "): storage, duplicate window and subjects are not checked; allow publishing to " + why.Subject}}
}

// streamInfo asks for the stream's configuration.
func (p *Publisher) streamInfo(ctx context.Context, s *session) (*streamInfo, error) {
	info, err := ask(ctx, s, "$JS.API.STREAM.INFO."+p.cfg.Stream, nil)
	if err != nil {
		return nil, fmt.Errorf("look up stream %q: %w", p.cfg.Stream, err)
	}
	return info, nil
}

// createSubject is where JetStream takes the wish for a new stream.
func createSubject(cfg *Config) string { return "$JS.API.STREAM.CREATE." + cfg.Stream }

// mayNotCreate says that the stream is missing and not ours to make.
func (p *Publisher) mayNotCreate() *FatalError {
	return &FatalError{Code: CodeCreate, Field: "create_stream",
		Detail: fmt.Sprintf("stream %q does not exist, and the server denies us to create it", p.cfg.Stream),
		Fix:    "create it by hand, or allow publishing to " + createSubject(&p.cfg)}
}

// createStream makes the stream. If somebody else was faster, theirs is taken.
func (p *Publisher) createStream(ctx context.Context, s *session) (Profile, error) {
	body, err := json.Marshal(newStream(&p.cfg))
	if err != nil {
		panic("BUG: marshal a stream configuration: " + err.Error())
	}
	_, err = ask(ctx, s, createSubject(&p.cfg), body)
	var (
		denied  *DeniedError
		refused *apiError
	)
	created := err == nil
	switch {
	case created, errors.As(err, &refused) && refused.ErrCode == codeStreamExists:
	case errors.As(err, &denied):
		return Profile{}, p.mayNotCreate()
	case errors.As(err, &refused) && (refused.Code >= 400 && refused.Code < 500 || refused.ErrCode == codeInvalidConfig):
		return Profile{}, &FatalError{Code: CodeCreate, Field: "create_stream", Detail: "create stream " + p.cfg.Stream, Err: refused,
			Fix: "create it by hand, or correct subject and stream"}
	default:
		return Profile{}, fmt.Errorf("create stream %q: %w", p.cfg.Stream, err)
	}
	// The answer to a creation does not name the domain.
	info, err := p.streamInfo(ctx, s)
	if err != nil {
		return Profile{}, err
	}
	profile, err := checkStream(&p.cfg, info)
	profile.Created = created && err == nil
	return profile, err
}

// apiError is what JetStream's API answers.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("server refused: %s (%d)", e.Description, e.ErrCode)
}

// ask sends one API request whose answer is a stream.
func ask(ctx context.Context, s *session, subject string, body []byte) (*streamInfo, error) {
	data, err := s.request(ctx, subject, body)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errNobody
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errNoAnswer
	case err != nil:
		return nil, err
	}
	var m struct {
		Error *apiError `json:"error"`
		streamInfo
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("parse answer of the server: %w", err)
	}
	if m.Error != nil {
		m.Error.Description = clip(m.Error.Description)
		return nil, m.Error
	}
	return &m.streamInfo, nil
}
