package main

import (
	"encoding/json"
	"errors"
	"io"

	"edge/publisher"
	"edge/runtime"
	"edge/runtime/config"
)

// found is the JSON form of a validation.
type found struct {
	File     string        `json:"file"`
	Datasets int           `json:"datasets"`
	Inputs   int           `json:"inputs"`
	Warnings []string      `json:"warnings"`
	Modules  []foundModule `json:"modules"`
	Sinks    []foundSink   `json:"sinks"`
}

type foundModule struct {
	Sink   string `json:"sink"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// foundSink is what --connect has found; without it only ID is there. Sizes are bytes, limits 0 where there is none.
type foundSink struct {
	ID       string        `json:"id"`
	Verdict  string        `json:"verdict,omitempty"` // ready, fatal, unreachable, or embedded when nothing was asked
	Code     string        `json:"code,omitempty"`    // of a fatal one, with the field and the fix
	Field    string        `json:"field,omitempty"`
	Fix      string        `json:"fix,omitempty"`
	Error    string        `json:"error,omitempty"`
	Server   string        `json:"server,omitempty"`
	User     string        `json:"user,omitempty"`
	Payload  int           `json:"max_payload,omitempty"`
	Stream   *foundStream  `json:"stream,omitempty"`
	Account  *foundAccount `json:"account,omitempty"`
	Publish  []foundRight  `json:"publish,omitempty"`
	Acks     string        `json:"acks,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
}

type foundStream struct {
	Name          string   `json:"name"`
	Missing       bool     `json:"missing"` // it would be created like this
	Verified      bool     `json:"verified"`
	Subjects      []string `json:"subjects"`
	Storage       string   `json:"storage"`
	Replicas      int      `json:"replicas"`
	Leader        string   `json:"leader"`
	Lagging       []string `json:"lagging"`
	Discard       string   `json:"discard"`
	Retention     string   `json:"retention"`
	WindowS       float64  `json:"duplicate_window_s"`
	DeliveryClass string   `json:"delivery_class"`
	PublishMode   string   `json:"publish_mode"`
	MaxMsgSize    int      `json:"max_msg_size"`
	Messages      uint64   `json:"messages"`
	MaxMessages   int64    `json:"max_msgs"`
	Bytes         uint64   `json:"bytes"`
	MaxBytes      int64    `json:"max_bytes"`
}

type foundAccount struct {
	Storage    int64 `json:"storage"`
	MaxStorage int64 `json:"max_storage"`
	Streams    int64 `json:"streams"`
	MaxStreams int64 `json:"max_streams"`
}

type foundRight struct {
	Subject string `json:"subject"`
	Access  string `json:"access"`
}

func printFound(w io.Writer, cfg *config.Config, modules []runtime.Checked, sinks []runtime.Reached) error {
	f := found{File: cfg.File, Datasets: len(cfg.Datasets), Inputs: len(cfg.Inputs), Warnings: append([]string{}, cfg.Warnings...), Modules: []foundModule{}}
	for _, m := range modules {
		f.Modules = append(f.Modules, foundModule{m.Sink, m.Path, m.Digest})
	}
	for i := range cfg.Sinks {
		s := foundSink{ID: cfg.Sinks[i].ID}
		if len(sinks) > 0 {
			s.fill(&sinks[i])
		}
		f.Sinks = append(f.Sinks, s)
	}
	return json.NewEncoder(w).Encode(&f)
}

func (s *foundSink) fill(r *runtime.Reached) {
	var fatal *publisher.FatalError
	switch {
	case r.Embedded:
		s.Verdict = "embedded"
		return
	case r.Err == nil:
		s.Verdict = "ready"
	case errors.As(r.Err, &fatal):
		s.Verdict, s.Code, s.Field, s.Fix, s.Error = "fatal", fatal.Code, fatal.Field, fatal.Fix, fatal.Error()
	default:
		s.Verdict, s.Error = "unreachable", r.Err.Error()
	}
	p := &r.Posture
	s.Server, s.User, s.Payload, s.Warnings = p.Server, p.User, p.MaxPayload, warnings(p)
	if k := &p.Profile; k.Stream != "" {
		s.Stream = &foundStream{
			Name: k.Stream, Missing: p.Missing, Verified: k.Verified && !p.Missing, Subjects: append([]string{}, k.Subjects...), Storage: k.Storage,
			Replicas: k.Replicas, Leader: k.Leader, Lagging: append([]string{}, k.Lagging...), Discard: k.Discard, Retention: k.Retention,
			WindowS: k.DuplicateWindow.Seconds(), DeliveryClass: k.DeliveryClass, PublishMode: k.Mode.String(), MaxMsgSize: k.MaxMsgSize,
			Messages: k.Messages, MaxMessages: k.MaxMessages, Bytes: k.Bytes, MaxBytes: k.MaxBytes,
		}
	}
	if a := p.Account; a != nil {
		s.Account = &foundAccount{a.Storage, a.MaxStorage, a.Streams, a.MaxStreams}
	}
	for _, right := range p.Publish {
		s.Publish = append(s.Publish, foundRight{right.Subject, right.Access.String()})
	}
	if p.Inbox != publisher.NotTold {
		s.Acks = p.Inbox.String()
	}
}
