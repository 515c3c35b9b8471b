package publisher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"edge/envelope"
)

// streamInfo is what we read of a stream.
type streamInfo struct {
	Config streamConfig `json:"config"`
	State  struct {
		LastSeq uint64 `json:"last_seq"`
	} `json:"state"`
	Domain string `json:"domain"`
}

// streamConfig is a stream's configuration in JetStream's own words. Durations are nanoseconds.
type streamConfig struct {
	Name            string          `json:"name"`
	Subjects        []string        `json:"subjects"`
	Retention       string          `json:"retention"`
	Storage         string          `json:"storage"`
	Discard         string          `json:"discard"`
	Replicas        int             `json:"num_replicas"`
	MaxConsumers    int             `json:"max_consumers"`
	MaxMsgs         int64           `json:"max_msgs"`
	MaxBytes        int64           `json:"max_bytes"`
	MaxMsgSize      int             `json:"max_msg_size"`
	DuplicateWindow time.Duration   `json:"duplicate_window"`
	NoAck           bool            `json:"no_ack"`
	Sealed          bool            `json:"sealed,omitempty"`
	Mirror          json.RawMessage `json:"mirror,omitempty"`
	PersistMode     string          `json:"persist_mode,omitempty"`
}

// newStream is the stream that CreateStream makes. Discard new, because with the server's default, discard old, a
// limit that is set later would delete what has been acknowledged instead of refusing what is new.
func newStream(cfg *Config) streamConfig {
	return streamConfig{
		Name: cfg.Stream, Subjects: cfg.Subjects, Retention: "limits", Storage: "file", Discard: "new", Replicas: 1,
		MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, DuplicateWindow: cfg.DuplicateWindow,
	}
}

// checkStream decides whether a stream will do. The error is a *FatalError.
func checkStream(cfg *Config, info *streamInfo) (Profile, error) {
	c := &info.Config
	refuse := func(code, detail, fix string) (Profile, error) {
		return Profile{}, &FatalError{Code: code, Detail: fmt.Sprintf("stream %q %s", cfg.Stream, detail), Fix: fix}
	}
	switch {
	case c.Name != cfg.Stream:
		return refuse(CodeMissing, fmt.Sprintf("was asked for, %q was answered", c.Name), "look for a foreign responder on $JS.API")
	case len(c.Mirror) > 0 && string(c.Mirror) != "null":
		return refuse(CodeMirror, "is a mirror: it takes messages from its origin only", "publish into the origin")
	case c.Sealed:
		return refuse(CodeSealed, "is sealed: it takes no more messages", "use another stream")
	case c.NoAck:
		return refuse(CodeNoAck, "does not acknowledge (no_ack)", "set no_ack to false")
	case c.Storage != "file":
		return refuse(CodeStorage, fmt.Sprintf("is kept in %s: a restart of the server would lose what it acknowledged", c.Storage), "use a stream with file storage")
	}
	for _, want := range cfg.Subjects {
		if !slices.ContainsFunc(c.Subjects, func(has string) bool { return envelope.PatternCovers(has, want) }) {
			return refuse(CodeSubjects, fmt.Sprintf("lists %s, which does not cover %q", strings.Join(c.Subjects, ", "), want),
				"add the subject to the stream, or correct subject and allow_subjects")
		}
	}
	p := Profile{
		Stream: c.Name, Verified: true, Subjects: c.Subjects, DeliveryClass: AtLeastOnce, DuplicateWindow: max(c.DuplicateWindow, 0),
		Storage: c.Storage, Replicas: c.Replicas, Retention: c.Retention, Discard: c.Discard, MaxMsgSize: max(c.MaxMsgSize, 0), Domain: info.Domain,
		LastSequence: info.State.LastSeq,
	}
	if p.DuplicateWindow > 0 {
		p.DeliveryClass = IdempotentBatch
	}
	p.Warnings = streamWarnings(c)
	return p, nil
}

// streamWarnings says what makes the stream's acknowledgement mean less than "kept". Each was seen on a real server.
func streamWarnings(c *streamConfig) []string {
	var w []string
	if c.PersistMode == "async" {
		w = append(w, "persist_mode async acknowledges before it writes: a crash of the server loses acknowledged messages")
	}
	if c.Retention == "interest" {
		w = append(w, "interest retention acknowledges and drops what no consumer is interested in")
	}
	if c.Discard == "old" && (c.MaxBytes > 0 || c.MaxMsgs > 0) {
		w = append(w, "discard old deletes acknowledged messages when a limit is reached: discard new would refuse new ones instead")
	}
	return w
}
