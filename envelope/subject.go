package envelope

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxSubject is the longest subject in bytes. The server's limit is on the whole command line (4,096 bytes, past
// which it closes the connection for good); 256 leaves room for the reply subject and is more than names need.
const MaxSubject = 256

// CheckSubject tells whether a message may go out under this subject: concrete, every token usable (not empty, no
// dot, wildcard, white space or control character, valid UTF-8), at most MaxSubject bytes, not under $ or _INBOX.
// The error is a *RejectError. A server would store wildcards and NUL under the literal subject, answer an empty
// token as if the stream were missing, and obey what is sent under $JS.
func CheckSubject(subject []byte) error {
	if len(subject) > MaxSubject {
		return reject(SubjectTooLong, "%d bytes, the limit is %d", len(subject), MaxSubject)
	}
	if reserved(subject) {
		return reject(ReservedSubject, "%q: subjects under $ and _INBOX belong to the server and its clients", subject)
	}
	for rest := subject; ; {
		i := bytes.IndexByte(rest, '.')
		token := rest
		if i >= 0 {
			token = rest[:i]
		}
		if r := checkToken(token); r != "" {
			return reject(r, "subject %q", subject)
		}
		if i < 0 {
			return nil
		}
		rest = rest[i+1:]
	}
}

// reserved tells whether a subject begins where servers and clients keep their own: $JS, $SYS, $KV; _INBOX and
// custom inboxes such as _INBOX_sensors.
func reserved[T []byte | string](subject T) bool {
	return len(subject) > 0 && subject[0] == '$' || strings.HasPrefix(string(subject[:min(len(subject), 6)]), "_INBOX")
}

// checkToken returns why a concrete token can not be used, or "".
func checkToken[T []byte | string](token T) Reason {
	if len(token) == 0 {
		return EmptyToken
	}
	for i := 0; i < len(token); i++ {
		switch c := token[i]; {
		case c >= utf8.RuneSelf:
			return checkWideToken(string(token))
		case c <= ' ' || c == 0x7f || c == '.' || c == '*' || c == '>':
			return BadToken
		}
	}
	return ""
}

func checkWideToken(token string) Reason {
	if !utf8.ValidString(token) {
		return InvalidUTF8
	}
	for _, c := range token {
		if unicode.IsSpace(c) || unicode.IsControl(c) || c == '.' || c == '*' || c == '>' {
			return BadToken
		}
	}
	return ""
}

// CheckPattern tells whether a pattern is well formed: usable tokens, "*" for exactly one token, ">" last for one or
// more, at most MaxSubject bytes. Patterns under $ are well formed. The error is a *RejectError.
func CheckPattern(pattern string) error {
	if len(pattern) > MaxSubject {
		return reject(SubjectTooLong, "%d bytes, the limit is %d", len(pattern), MaxSubject)
	}
	for rest, more := pattern, true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		if token == "*" || token == ">" && !more {
			continue
		}
		if r := checkToken(token); r != "" {
			return reject(r, "pattern %q, token %q", pattern, token)
		}
	}
	return nil
}

// MatchSubject tells whether a concrete subject is one of those that a well-formed pattern names.
func MatchSubject(pattern string, subject []byte) bool {
	for more := true; more; {
		var p string
		p, pattern, more = strings.Cut(pattern, ".")
		if p == ">" && !more {
			return len(subject) > 0
		}
		i := bytes.IndexByte(subject, '.')
		last := i < 0
		token := subject
		if !last {
			token, subject = subject[:i], subject[i+1:]
		}
		if len(token) == 0 || p != "*" && p != string(token) || last == more {
			return false
		}
	}
	return true
}

// PatternCovers tells whether every subject that inner names is also named by outer. Both are well formed.
func PatternCovers(outer, inner string) bool {
	for more := true; more; {
		var o, i string
		var innerMore bool
		o, outer, more = strings.Cut(outer, ".")
		i, inner, innerMore = strings.Cut(inner, ".")
		if o == ">" && !more {
			return i != ""
		}
		if i == ">" && !innerMore || i == "" || more != innerMore {
			return false // inner reaches deeper, or they have different lengths
		}
		if o != "*" && o != i {
			return false
		}
	}
	return true
}

// PatternsMeet tells whether some subject is named by both patterns. Both are well formed.
func PatternsMeet(a, b string) bool {
	for {
		x, restA, moreA := strings.Cut(a, ".")
		y, restB, moreB := strings.Cut(b, ".")
		switch {
		case x == ">" && !moreA, y == ">" && !moreB:
			return true
		case x != y && x != "*" && y != "*", moreA != moreB:
			return false
		case !moreA:
			return true
		}
		a, b = restA, restB
	}
}
