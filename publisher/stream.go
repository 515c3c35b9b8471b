package publisher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/envelope"
)

// streamInfo is what we read of a stream.
type streamInfo struct {
	Config  streamConfig `json:"config"`
	Created time.Time    `json:"created"`
	State   struct {
		LastSeq uint64 `json:"last_seq"`
		Msgs    uint64 `json:"messages"`
		Bytes   uint64 `json:"bytes"`
	} `json:"state"`
	Cluster *struct {
		Leader   string `json:"leader"`
		Replicas []struct {
			Name    string `json:"name"`
			Current bool   `json:"current"`
			Offline bool   `json:"offline"`
		} `json:"replicas"`
	} `json:"cluster"`
	Domain string `json:"domain"`
}

// streamConfig is a stream's configuration in JetStream's own words. Durations are nanoseconds.
type streamConfig struct {
	Name            string            `json:"name"`
	Subjects        []string          `json:"subjects"`
	Retention       string            `json:"retention"`
	Storage         string            `json:"storage"`
	Discard         string            `json:"discard"`
	Replicas        int               `json:"num_replicas"`
	MaxConsumers    int               `json:"max_consumers"`
	MaxMsgs         int64             `json:"max_msgs"`
	MaxBytes        int64             `json:"max_bytes"`
	MaxAge          time.Duration     `json:"max_age"`
	MaxMsgSize      int               `json:"max_msg_size"`
	DuplicateWindow time.Duration     `json:"duplicate_window"`
	NoAck           bool              `json:"no_ack"`
	Sealed          bool              `json:"sealed,omitempty"`
	Mirror          json.RawMessage   `json:"mirror,omitempty"`
	PersistMode     string            `json:"persist_mode,omitempty"`
	AllowMsgTTL     bool              `json:"allow_msg_ttl,omitempty"`
	AllowAtomic     bool              `json:"allow_atomic,omitempty"`
	AllowBatched    bool              `json:"allow_batched,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
}

// newStream is the stream that CreateStream makes. Discard new, because with the server's default, discard old, a
// limit that is set later would delete what has been acknowledged instead of refusing what is new.
func newStream(cfg *Config) streamConfig {
	return streamConfig{
		Name: cfg.Stream, Subjects: cfg.created(), Retention: "limits", Storage: "file", Discard: "new", Replicas: 1,
		MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, DuplicateWindow: cfg.DuplicateWindow,
		AllowMsgTTL: cfg.MessageTTL > 0, AllowAtomic: cfg.Mode == ModeAtomic, AllowBatched: cfg.Mode == ModeFast,
	}
}

// checkStream decides whether a stream will do. The error is a *FatalError, and the profile is what there is all the same.
func checkStream(cfg *Config, info *streamInfo) (Profile, error) {
	c, p := &info.Config, profileOf(info)
	refuse := func(code, field, detail, fix string) (Profile, error) {
		return p, &FatalError{Code: code, Field: field, Detail: fmt.Sprintf("stream %q %s", cfg.Stream, detail), Fix: fix}
	}
	switch {
	case c.Name != cfg.Stream:
		return refuse(CodeMissing, "stream", fmt.Sprintf("was asked for, %q was answered", c.Name), "look for a foreign responder on $JS.API")
	case len(c.Mirror) > 0 && string(c.Mirror) != "null":
		return refuse(CodeMirror, "stream", "is a mirror: it takes messages from its origin only", "publish into the origin")
	case c.Sealed:
		return refuse(CodeSealed, "stream", "is sealed: it takes no more messages", "use another stream")
	case c.NoAck:
		return refuse(CodeNoAck, "stream", "does not acknowledge (no_ack)", "set no_ack to false")
	case c.Storage != "file":
		return refuse(CodeStorage, "stream", fmt.Sprintf("is kept in %s: a restart of the server would lose what it acknowledged", c.Storage), "use a stream with file storage")
	case cfg.MessageTTL > 0 && !c.AllowMsgTTL:
		return refuse(CodeTTL, "message_ttl", "does not allow a time to live on messages", "set allow_msg_ttl on the stream, or leave message_ttl out")
	}
	for _, want := range cfg.Subjects {
		if cfg.Strict && !slices.Contains(c.Subjects, want) {
			return refuse(CodeSubjects, "subject", fmt.Sprintf("lists %s, and not %q as a strict binding needs it", strings.Join(c.Subjects, ", "), want),
				"list the subject itself in the stream, or use a template binding")
		}
		if !slices.ContainsFunc(c.Subjects, func(has string) bool { return envelope.PatternCovers(has, want) }) {
			return refuse(CodeSubjects, "subject", fmt.Sprintf("lists %s, which does not cover %q", strings.Join(c.Subjects, ", "), want),
				"add the subject to the stream, or correct subject and allow_subjects")
		}
	}
	mode, ok := modeFor(cfg.Mode, c)
	if !ok {
		setting := map[Mode]string{ModeAtomic: "allow_atomic", ModeFast: "allow_batched"}[cfg.Mode]
		return refuse(CodeMode, "publish_mode", fmt.Sprintf("does not allow publish mode %v", cfg.Mode),
			"set "+setting+" on the stream (servers from 2.12 for atomic, 2.14 for fast), or use publish_mode: auto or single")
	}
	p.Mode = mode
	if w := p.DuplicateWindow; w > 0 && w < 2*cfg.RequestTimeout {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s %v, for a request timeout of %v: a message that has no answer and is sent again can be stored twice", shortWindow, w, cfg.RequestTimeout))
	}
	return p, nil
}

// shortWindow begins the warning about a window of less than two request timeouts.
const shortWindow = "the duplicate window is only"

// minBatchWindow is the shortest duplicate window with which batches are used. What a batch leaves open is sent again
// within half of it, after a stalled write and a reconnect at the worst.
const minBatchWindow = 10 * time.Second

// modeFor is how messages travel to a stream, given what was asked for. ok is false if the stream does not allow that.
//
// What a batch leaves open is sent again singly, so a stream that remembers no ids gets single messages whatever was
// asked for; and so does a replicated one instead of fast ingest, which counts a message there as a stored duplicate
// while its first copy is only proposed.
//
// Auto takes what was measured as worth it: on a replicated stream atomic batches (+45 % at three replicas), on another
// one fast ingest (+10 to 20 %). Whether a server syncs every write, which makes atomic batches ten
// times as fast on one replica too, cannot be seen from outside: who knows asks for atomic.
func modeFor(asked Mode, c *streamConfig) (m Mode, ok bool) {
	switch {
	case asked == ModeAtomic && !c.AllowAtomic, asked == ModeFast && !c.AllowBatched:
		return ModeSingle, false
	case c.DuplicateWindow < minBatchWindow:
		return ModeSingle, true
	case asked == ModeAtomic, asked == ModeAuto && c.Replicas > 1 && c.AllowAtomic:
		return ModeAtomic, true
	case asked == ModeFast && c.Replicas <= 1, asked == ModeAuto && c.Replicas <= 1 && c.AllowBatched:
		return ModeFast, true
	}
	return ModeSingle, true
}

// profileOf is what a stream's configuration and state say, without the mode.
func profileOf(info *streamInfo) Profile {
	c := &info.Config
	p := Profile{
		Stream: c.Name, Verified: true, Subjects: c.Subjects, DeliveryClass: AtLeastOnce, DuplicateWindow: max(c.DuplicateWindow, 0),
		Storage: c.Storage, Replicas: c.Replicas, Retention: c.Retention, Discard: c.Discard, PersistMode: c.PersistMode,
		MaxMsgSize: max(c.MaxMsgSize, 0), MaxAge: c.MaxAge, Domain: info.Domain, Born: info.Created,
		AllowsTTL: c.AllowMsgTTL, AllowsAtomic: c.AllowAtomic, AllowsFast: c.AllowBatched,
		LastSequence: info.State.LastSeq, Messages: info.State.Msgs, Bytes: info.State.Bytes,
		MaxMessages: max(c.MaxMsgs, 0), MaxBytes: max(c.MaxBytes, 0),
	}
	if p.DuplicateWindow > 0 {
		p.DeliveryClass = IdempotentBatch
	}
	if level, err := strconv.Atoi(c.Metadata["_nats.level"]); err == nil {
		p.APILevel = level
	}
	if info.Cluster != nil {
		p.Leader = info.Cluster.Leader
		for _, r := range info.Cluster.Replicas {
			if r.Offline || !r.Current {
				p.Lagging = append(p.Lagging, r.Name)
			}
		}
	}
	p.Warnings = streamWarnings(c)
	return p
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
