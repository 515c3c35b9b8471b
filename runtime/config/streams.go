package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"edge/envelope"
)

// checkStreams refuses what would lose events without a word: two sinks that send the same event to one stream. A
// stream recognises a repeat by the message's id, which is the event's and knows no sink, so it would answer the
// second with "stored already". Sinks whose datasets are apart share a stream without harm.
func (w *walker) checkStreams(c *Config) {
	for i := range c.Sinks {
		n, at := &c.Sinks[i].NATS, index("sinks", i)+".config"
		if n.URL == "" || n.Stream == "" {
			continue // reported
		}
		for j := range i {
			f, first := &c.Sinks[j].NATS, index("sinks", j)
			if n.Stream != f.Stream || !sameServer(n.URL, f.URL) {
				continue
			}
			k := slices.IndexFunc(n.Datasets, func(d string) bool { return slices.Contains(f.Datasets, d) })
			if k < 0 {
				continue
			}
			if n.User != f.User || n.Token != f.Token || n.CredsFile != f.CredsFile || n.NKeyFile != f.NKeyFile {
				// Two users may be of two accounts, whose streams are apart; only the server knows.
				w.warn(c, at+".stream", "%s sends dataset %q to a stream of this name on the same server: if both are of one account, the stream takes the second message of an event for a repeat and drops it: name another stream", first, n.Datasets[k])
				break
			}
			w.failAt(at+".stream", "%s.stream: %s sends dataset %q to stream %q of the same server already, and the stream would take the second message of an event for a repeat and drop it: name another stream, or keep one sink with a module that makes several messages of an event", at, first, n.Datasets[k], n.Stream)
			break
		}
	}
}

// sameServer tells whether two checked addresses name a server in common. There is one embedded server. All names of
// this machine's loopback are one; any other machine under two names is not noticed.
func sameServer(a, b string) bool {
	theirs := servers(b)
	return slices.ContainsFunc(servers(a), func(s string) bool { return slices.Contains(theirs, s) })
}

// defaultPort is what a NATS client takes for an address without one.
const defaultPort = "4222"

// servers are the hosts and ports of an address, and the scheme of the embedded server.
func servers(s string) (all []string) {
	for p := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(p))
		if err != nil {
			continue
		}
		port := u.Port()
		if u.Scheme == schemeEmbedded {
			all = append(all, schemeEmbedded)
			if port == "" || port == "0" {
				continue // any free one: nobody else can name it
			}
		}
		if port == "" {
			port = defaultPort
		}
		host := strings.ToLower(u.Hostname())
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			host = "loopback"
		}
		all = append(all, host+":"+port)
	}
	return all
}

// systemSubjects are what the server lets no stream that acknowledges overlap with (nats-server 2.15, the check of a
// stream's configuration, error 10052).
var systemSubjects = []string{"$JS.>", "$JSC.>", "$NRG.>", "$SYS.>"}

// uncreatable says why the server would refuse to create a stream that listens to a well-formed pattern, as the end
// of a sentence; "" means that it would not.
func uncreatable(pattern string) string {
	if pattern == ">" {
		return "takes every subject there is, and the server creates no such stream: begin it with a word, as in edge.>"
	}
	for _, s := range systemSubjects {
		if envelope.PatternsMeet(pattern, s) {
			return "takes subjects of the server as well (" + s + "), and the server creates no such stream: begin it with a word, as in edge." + pattern
		}
	}
	return ""
}

// checkCreated holds what a created stream is to listen to against the server's rules. The patterns are well formed;
// paths says where each stands.
func (w *walker) checkCreated(patterns, paths []string) {
	for i, p := range patterns {
		if why := uncreatable(p); why != "" {
			w.failAt(paths[i], "%s: with create_stream, %q %s", paths[i], p, why)
			continue
		}
		for _, q := range patterns[:i] {
			if envelope.PatternsMeet(p, q) && uncreatable(q) == "" {
				w.failAt(paths[i], "%s: with create_stream, %q overlaps with %q, and the server creates no such stream: keep patterns that have no subject in common", paths[i], p, q)
				break
			}
		}
	}
}

// checkRaw warns of inputs whose every event a sink would reject: the built-in envelope takes records only.
func (w *walker) checkRaw(c *Config) {
	for i := range c.Inputs {
		in := &c.Inputs[i]
		if in.Format != FormatRaw {
			continue
		}
		for j := range c.Sinks {
			s := &c.Sinks[j]
			if s.Transform == nil && slices.Contains(s.NATS.Datasets, in.Dataset) {
				w.warn(c, index("inputs", i)+".format", "raw bodies are no records, and %s has no module that makes messages of them: it rejects every one (not_a_record): give it a transform, or datasets without %q", index("sinks", j), in.Dataset)
			}
		}
	}
}
