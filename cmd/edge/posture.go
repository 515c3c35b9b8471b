package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"edge/publisher"
	"edge/runtime"
	"edge/runtime/status"
)

// printPosture prints what was found at a sink's server, and the verdict last.
func printPosture(w io.Writer, r *runtime.Reached) {
	if r.Embedded {
		fmt.Fprintf(w, "sink %s: embedded server: nothing is asked, it runs with the agent\n", r.Sink.ID)
		return
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "sink %s: %s\n", r.Sink.ID, r.Sink.NATS.URL)
	p := &r.Posture
	if p.Server != "" {
		user := ""
		switch p.User {
		case "":
		case "[REDACTED]": // the server's word for who came with a token
			user = ", by token"
		default:
			user = ", as user " + p.User
		}
		line("server", "%s%s", p.Server, user)
	}
	if p.Profile.Stream != "" {
		printStream(line, p)
	}
	if a := p.Account; a != nil {
		line("account", "%s; %s", of(a.Storage, a.MaxStorage, size, "file storage"), of(a.Streams, a.MaxStreams, count, "streams"))
	}
	for _, right := range p.Publish {
		line("publish", "%s: %s", right.Subject, access(right.Access))
	}
	if p.Server != "" && len(p.Publish) == 0 {
		line("publish", "%s", access(publisher.NotTold))
	}
	if p.Server != "" {
		line("acks", "%s", access(p.Inbox))
	}
	for _, why := range warnings(p) {
		line("warning", "%s", why)
	}
	line("verdict", "%s", verdict(r))
	io.WriteString(w, b.String())
}

// access is a right for people.
func access(a publisher.Access) string {
	if a == publisher.NotTold {
		return "not told: allow publishing to $SYS.REQ.USER.INFO to see it"
	}
	return a.String()
}

func printStream(line func(name, format string, args ...any), p *publisher.Posture) {
	s := &p.Profile
	if p.Missing {
		line("stream", "%s: not there, would be created for %s", s.Stream, strings.Join(s.Subjects, ", "))
	} else if !s.Verified {
		line("stream", "%s", s.Stream)
		return // the warning says that nothing is known
	} else {
		line("stream", "%s, which lists %s", s.Stream, strings.Join(s.Subjects, ", "))
	}
	replicas := fmt.Sprintf("%d replicas", s.Replicas)
	switch {
	case s.Replicas <= 1:
		replicas = "1 replica"
	case s.Leader == "":
		replicas += ", no leader"
	default:
		replicas += ", leader " + s.Leader
	}
	if len(s.Lagging) > 0 {
		replicas += ", offline or behind: " + strings.Join(s.Lagging, ", ")
	}
	age := "for ever"
	if s.MaxAge > 0 {
		age = "for " + s.MaxAge.String()
	}
	line("kept", "%s, %s, %s, discard %s, retention %s", s.Storage, age, replicas, s.Discard, s.Retention)
	line("delivery", "%s, duplicate window %s, publish mode %s", s.DeliveryClass, window(s.DuplicateWindow), s.Mode)
	limit := fmt.Sprintf("max_payload %s", size(int64(p.MaxPayload)))
	if s.MaxMsgSize > 0 {
		limit = fmt.Sprintf("max_msg_size %s, ", size(int64(s.MaxMsgSize))) + limit
	}
	line("message", "%s", limit)
	if !p.Missing {
		line("room", "%s; %s", of(int64(s.Bytes), s.MaxBytes, size, ""), of(int64(s.Messages), s.MaxMessages, count, "messages"))
	}
}

// warnings are the stream's, and what the permissions leave open.
func warnings(p *publisher.Posture) []string {
	list := append([]string(nil), p.Profile.Warnings...)
	if p.Server != "" && (p.Inbox == publisher.NotTold || len(p.Publish) == 0) {
		list = append(list, "the server does not tell what this user may do: a denied subject shows only when it is used")
	}
	for _, r := range p.Publish {
		switch r.Access {
		case publisher.Denied:
			list = append(list, "the server denies "+r.Subject)
		case publisher.Partly:
			list = append(list, "the server denies some subjects of "+r.Subject+", or all of them that are used")
		}
	}
	if len(p.Profile.Lagging) > 0 {
		list = append(list, "replicas are offline or behind")
	}
	const nearly = 90 // percent
	if m := p.Profile.MaxBytes; m > 0 && percent(int64(p.Profile.Bytes), m) >= nearly {
		list = append(list, "the stream's max_bytes is nearly reached")
	}
	if m := p.Profile.MaxMessages; m > 0 && percent(int64(p.Profile.Messages), m) >= nearly {
		list = append(list, "the stream's max_msgs is nearly reached")
	}
	if a := p.Account; a != nil && a.MaxStorage > 0 && percent(a.Storage, a.MaxStorage) >= nearly {
		list = append(list, "the account's file storage is nearly used up")
	}
	return list
}

func verdict(r *runtime.Reached) string {
	var fatal *publisher.FatalError
	switch {
	case r.Err == nil:
		return "ready"
	case errors.As(r.Err, &fatal):
		return fmt.Sprintf("fatal: %s: %v", fatal.Field, fatal)
	}
	return "not reached: " + r.Err.Error()
}

// of says how much of a limit is used: "1.2 GiB of 10 GiB file storage, 12 %", or "1.2 GiB file storage, no limit".
func of(used, limit int64, form func(int64) string, what string) string {
	if what != "" {
		what = " " + what
	}
	if limit <= 0 {
		return fmt.Sprintf("%s%s, no limit", form(used), what)
	}
	return fmt.Sprintf("%s of %s%s, %d %%", form(used), form(limit), what, percent(used, limit))
}

func percent(used, limit int64) int64 { return int64(float64(used) / float64(limit) * 100) }

func count(n int64) string { return status.Count(uint64(max(n, 0))) }

// size writes bytes in the largest unit that leaves at least one, with one decimal where it says something.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', 1, 64), ".0") + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}

func window(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}
