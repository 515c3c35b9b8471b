package publisher

import "strings"

// checkStrict holds a strict binding against its rules.
func (c *Config) checkStrict(bad func(field, format string, args ...any)) {
	if !c.Strict {
		return
	}
	if len(c.Subjects) != 1 {
		bad("subject", "a strict binding has exactly one, not %d", len(c.Subjects))
	} else if !strictSubject(c.Subjects[0]) {
		bad("subject", "%q: a strict binding takes tokens of ASCII letters, digits, - and _ with dots between them", c.Subjects[0])
	}
	if c.MaxInFlight > MaxStrictInFlight {
		bad("max_in_flight", "%d: a strict binding takes from 1 to %d", c.MaxInFlight, MaxStrictInFlight)
	}
}

func strictSubject(s string) bool {
	for token := range strings.SplitSeq(s, ".") {
		if token == "" {
			return false
		}
		for _, b := range []byte(token) {
			if !isNameByte(b) {
				return false
			}
		}
	}
	return true
}
