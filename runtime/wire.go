package runtime

import (
	"log/slog"
	"slices"

	"edge/publisher"
	"edge/runtime/config"
	"edge/runtime/flow"
)

// wire is what the publisher of s works with. The address of an embedded server is still to be filled in.
func (s *sink) wire(agent string, log *slog.Logger) publisher.Config {
	n := &s.cfg.NATS
	pc := publisher.Config{
		URL: n.URL, Name: "edge " + agent + " " + s.cfg.ID, Stream: n.Stream, CreateStream: n.CreateStream,
		Strict: n.Binding == config.BindingStrict, DuplicateWindow: n.DuplicateWindow,
		Token: n.Token.Reveal(), TokenFile: n.TokenFile, User: n.User, Password: n.Password.Reveal(), PasswordFile: n.PasswordFile,
		CredsFile: n.CredsFile, NKeyFile: n.NKeyFile,
		TLS:               publisher.TLS{CAFile: n.TLS.CAFile, CertFile: n.TLS.ClientCert, KeyFile: n.TLS.ClientKey, First: n.TLS.First},
		DiscoveredServers: n.Discovered, Mode: modeOf(n.PublishMode), MessageTTL: n.MessageTTL,
		RequestTimeout: n.RequestTimeout, MaxInFlight: n.MaxInFlight, MaxInFlightBytes: n.MaxInFlightSize, Logger: log.With("sink", s.cfg.ID),
	}
	if _, ok := n.Embedded(); ok {
		// The server in this process asks for what the token was when the agent was started.
		pc.TokenFile, pc.PasswordFile = "", ""
	}
	if pc.TokenFile != "" {
		pc.Token = ""
	}
	if pc.PasswordFile != "" {
		pc.Password = ""
	}
	pc.Subjects, pc.CreateSubjects = s.subjects()
	return pc
}

// subjects are the patterns that the sink will use, and what a stream lists that is created for it. An existing stream
// is asked about the datasets that there are, one by one, because it may list just these; a created one takes datasets
// that are added later too.
func (s *sink) subjects() (used, created []string) {
	switch n := &s.cfg.NATS; {
	case len(n.AllowSubjects) > 0:
		return n.AllowSubjects, nil
	case s.template == nil:
		return nil, nil
	default:
		for _, d := range n.Datasets {
			if p := s.template.PatternOf(d); !slices.Contains(used, p) {
				used = append(used, p)
			}
		}
		return used, []string{s.template.Pattern()}
	}
}

func modeOf(word string) publisher.Mode {
	switch word {
	case config.ModeSingle:
		return publisher.ModeSingle
	case config.ModeAuto:
		return publisher.ModeAuto
	case config.ModeAtomic:
		return publisher.ModeAtomic
	case config.ModeFast:
		return publisher.ModeFast
	}
	panic("BUG: a publish mode that the configuration does not know: " + word)
}

func deniedOf(word string) flow.Denied {
	switch word {
	case config.DeniedHalt:
		return flow.DeniedHalts
	case config.DeniedQuarantine:
		return flow.DeniedWaits
	}
	panic("BUG: an answer to denials that the configuration does not know: " + word)
}
