package config

import (
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// The checks below look at one value and say what is wrong with it, as the end of a sentence; "" means nothing.

// maxName is the longest name of anything here, in bytes.
const maxName = 64

// badName checks the name of an input, sink, dataset or level: it becomes a key on disk, a label, and some of them
// a subject token.
func badName(s string) string {
	if s == "" || len(s) > maxName {
		return fmt.Sprintf("is no name: 1 to %d letters, digits, - and _", maxName)
	}
	for _, c := range []byte(s) {
		if !nameByte(c) {
			return "is no name: use letters, digits, - and _ only"
		}
	}
	return ""
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// badAgentName allows dots as well: machines are called by their host names.
func badAgentName(s string) string {
	if bad := badName(strings.ReplaceAll(s, ".", "-")); bad != "" {
		return strings.Replace(bad, "digits,", "digits, dots,", 1)
	}
	return ""
}

// badLevel keeps levels clear of what else stands at their side: lineage members begin with "_", {dataset} is a
// placeholder of its own.
func badLevel(s string) string {
	switch {
	case s == "dataset":
		return "is not usable as a level: {dataset} is the dataset's name"
	case strings.HasPrefix(s, "_"):
		return "is not usable as a level: names that begin with _ belong to the envelope"
	}
	return badName(s)
}

// badStream is the publisher's rule for the names of streams.
func badStream(s string) string {
	if s == "" || len(s) > 128 {
		return "is no stream name: 1 to 128 letters, digits, - and _"
	}
	for _, c := range []byte(s) {
		if !nameByte(c) {
			return "is no stream name: use letters, digits, - and _ only"
		}
	}
	return ""
}

func badDigest(s string) string {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return "is no SHA-256: 64 lower-case hex digits, as sha256sum prints them"
	}
	return ""
}

// parseSize reads a number of bytes.
func parseSize(s string) (int64, string) {
	digits := strings.TrimRight(s, "BGKMTbgikmt")
	unit := s[len(digits):]
	digits = strings.TrimSuffix(digits, " ")
	shift, ok := map[string]uint{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[unit]
	if !ok {
		return 0, "is no size: write B, KiB, MiB, GiB or TiB behind the number"
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, "is no size: write a whole number of bytes, or 64KiB, 16MiB, 1GiB"
	}
	if n > math.MaxInt64>>shift {
		return 0, "is out of bounds"
	}
	return n << shift, ""
}

func printSize(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// The schemes of addresses.
const (
	schemeNATS     = "nats"
	schemeTLS      = "tls"
	schemeEmbedded = "embedded"
)

// badURL checks an address, or several with commas between them.
func badURL(s string) string {
	parts := strings.Split(s, ",")
	for _, p := range parts {
		u, err := url.Parse(strings.TrimSpace(p))
		if err != nil || u.Scheme == "" {
			return "is no address: write nats://host:4222, tls://host:4222 or embedded://"
		}
		switch {
		case u.Scheme != schemeNATS && u.Scheme != schemeTLS && u.Scheme != schemeEmbedded:
			return "has an unknown scheme: write nats://, tls:// or embedded://"
		case u.User != nil:
			return "holds a credential: give it as token, or as user and password, where it is kept secret"
		case u.Path != "" && (u.Path != "/" || u.Scheme == schemeEmbedded) || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
			return "has something behind host and port: remove it"
		case badPort(u):
			return "has no usable port: 0 to 65535 for embedded://, 1 to 65535 otherwise"
		case u.Scheme != schemeEmbedded && u.Hostname() == "":
			return "names no host"
		case u.Scheme == schemeEmbedded && len(parts) > 1:
			return "mixes the embedded server with other addresses: give embedded:// alone"
		case u.Scheme == schemeEmbedded && u.Host != "" && u.Port() == "":
			return "names a host without a port: write embedded:// for any free port, or embedded://127.0.0.1:4222"
		case u.Scheme == schemeEmbedded && u.Host != "" && !loopback(u.Hostname()):
			return "is not on loopback: the embedded server listens on 127.0.0.1 or [::1] only"
		}
	}
	return ""
}

func badPort(u *url.URL) bool {
	if u.Port() == "" {
		return strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err != nil || n == 0 && u.Scheme != schemeEmbedded
}

// openURL tells whether a credential for this address may cross a network that others can read.
func openURL(s string) bool {
	for p := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(p))
		if err == nil && u.Scheme == schemeNATS && !loopback(u.Hostname()) {
			return true
		}
	}
	return false
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
