package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goccy/go-json/jsontext"
)

// The oracles of the JSON tests are two independent parsers: goccy's jsontext says what is valid, encoding/json's
// tokens say what it means.

// strictlyValid tells whether src is one JSON object within our rules.
func strictlyValid(t *testing.T, src []byte) bool {
	t.Helper()
	if !jsontext.Value(src).IsValid(jsontext.AllowDuplicateNames(true)) {
		return false
	}
	if !json.Valid(src) {
		t.Fatalf("the oracles disagree about %q", src)
	}
	depth := 0
	for d := json.NewDecoder(bytes.NewReader(src)); ; {
		switch tok, err := d.Token(); {
		case err != nil:
			return bytes.HasPrefix(bytes.TrimLeft(src, " \t\r\n"), []byte("{"))
		case tok == json.Delim('{') || tok == json.Delim('['):
			if depth++; depth > MaxNesting {
				return false
			}
		case tok == json.Delim('}') || tok == json.Delim(']'):
			depth--
		}
	}
}

// tree is a JSON value. Objects keep their members in order, repeated names too.
type tree struct {
	keys   []string
	values []*tree
	list   bool
	object bool
	scalar string // canonical text of anything else
}

func parseTree(t *testing.T, src []byte) *tree {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber() // numbers keep their text
	v, err := readTree(d)
	if err != nil {
		t.Fatalf("oracle: %v in %q", err, src)
	}
	return v
}

func readTree(d *json.Decoder) (*tree, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		v := &tree{object: true}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := readTree(d)
			if err != nil {
				return nil, err
			}
			v.keys, v.values = append(v.keys, key.(string)), append(v.values, value)
		}
		_, err = d.Token()
		return v, err
	case json.Delim('['):
		v := &tree{list: true}
		for d.More() {
			value, err := readTree(d)
			if err != nil {
				return nil, err
			}
			v.values = append(v.values, value)
		}
		_, err = d.Token()
		return v, err
	}
	return &tree{scalar: fmt.Sprintf("%T %v", tok, tok)}, nil
}

// member returns the first member of this name.
func (v *tree) member(name string) *tree {
	for i, k := range v.keys {
		if k == name {
			return v.values[i]
		}
	}
	return nil
}

// String is a canonical text in which only the first of equal names counts, at every depth.
func (v *tree) String() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v *tree) write(b *strings.Builder) {
	switch {
	case v.object:
		b.WriteByte('{')
		seen := map[string]bool{}
		for i, k := range v.keys {
			if !seen[k] {
				fmt.Fprintf(b, "%q:", k)
				v.values[i].write(b)
				b.WriteByte(',')
			}
			seen[k] = true
		}
		b.WriteByte('}')
	case v.list:
		b.WriteByte('[')
		for _, e := range v.values {
			e.write(b)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	default:
		fmt.Fprintf(b, "%q", v.scalar)
	}
}

// writer of random documents.
type scribe struct {
	r *rand.Rand
	b []byte
}

func (s *scribe) pick(words ...string) string { return words[s.r.IntN(len(words))] }

func (s *scribe) put(text string) { s.b = append(s.b, text...) }

func (s *scribe) space() {
	if s.r.IntN(8) == 0 {
		s.put(s.pick(" ", "\t", "\n", "\r\n", "   "))
	}
}

// document returns a new random record; it is valid and has many repeated and reserved names.
func (s *scribe) document() []byte {
	s.b = nil
	s.space()
	s.object(0)
	s.space()
	return s.b
}

func (s *scribe) object(depth int) {
	s.put("{")
	s.space()
	for i := range s.r.IntN(7) {
		if i > 0 {
			s.put(",")
		}
		s.space()
		s.put(s.pick(`"a"`, `"b"`, `"\u0061"`, `"\u0062"`, `"robot"`, `"r\u006fbot"`, `"_event_id"`, `"_event_tim\u0065"`,
			`"_ingest_time"`, `"_quality_status"`, `"_quality"`, `"id"`, `"0"`, `""`, `"ü"`, `"\u00fC"`, `"\ud83d\ude00"`, `"😀"`,
			`"a/b"`, `"a\/b"`, `"m~n"`, `"a long name that fills more than one word"`, `"a\"b"`))
		s.space()
		s.put(":")
		s.value(depth + 1)
	}
	s.space()
	s.put("}")
}

func (s *scribe) value(depth int) {
	s.space()
	switch n := s.r.IntN(10); {
	case n < 2 && depth < 6:
		s.object(depth)
	case n < 4 && depth < 6:
		s.put("[")
		s.space()
		for i := range s.r.IntN(4) {
			if i > 0 {
				s.put(",")
			}
			s.value(depth + 1)
		}
		s.put("]")
	case n < 7:
		s.put(s.pick("0", "-0", "1", "17", "-1.5", "1e400", "18446744073709551617", "12345678901234567890123", "0.1E-7", "2e+3", "1.0"))
	case n < 8:
		s.put(s.pick("true", "false", "null"))
	default:
		s.put(s.pick(`""`, `"x"`, `"plain text of some length, longer than a word"`, `"\\"`, `"\""`, `"\b\f\n\r\t\/"`, `"\u2028"`, `"é"`,
			`"\ud83d\ude00"`, `"seven77"`, `"eight888"`, `"0123456\""`, `"r7"`, `"\u0000"`))
	}
	s.space()
}

// damage changes a few bytes of a document, mostly into others that mean something in JSON.
func (s *scribe) damage(doc []byte) []byte {
	doc = bytes.Clone(doc)
	for range 1 + s.r.IntN(3) {
		if len(doc) == 0 {
			break
		}
		at := s.r.IntN(len(doc))
		switch s.r.IntN(4) {
		case 0:
			doc = append(doc[:at], doc[at+1:]...)
		case 1:
			const bytes = "{}[]\",:\\u0d8a1-+.eE tfn\x00\x1f\x7f\x80\xc3\xff"
			doc[at] = bytes[s.r.IntN(len(bytes))]
		case 2:
			doc = append(doc[:at], append([]byte(s.pick(`"`, `\`, `,`, `{`, `}`, `[`, `]`, `\ud800`, `\udc00`, `\u12`, "\x01", "0", "-", ".", "e")), doc[at:]...)...)
		case 3:
			doc = doc[:at]
		}
	}
	return doc
}
