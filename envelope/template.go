package envelope

import (
	"fmt"
	"slices"
	"strings"
)

// Template is a subject in which whole tokens are placeholders, such as edge.{dataset}.{robot}. It does not change
// after ParseTemplate and may be used by any number of goroutines.
type Template struct {
	text    string
	pattern string
	parts   []part
}

// part is one token: a literal, or a placeholder when name is not empty.
type part struct {
	literal string
	name    string // identity level, or datasetName
}

// datasetName is the one placeholder that is not an identity level; a level of this name is out of reach.
const datasetName = "dataset"

// TemplateError says why a template can not be used.
type TemplateError struct {
	Template string
	Token    string // the token that is wrong; empty if the whole is
	Detail   string
}

func (e *TemplateError) Error() string {
	if e.Token == "" {
		return fmt.Sprintf("subject template %q: %s", e.Template, e.Detail)
	}
	return fmt.Sprintf("subject template %q: token %q %s", e.Template, e.Token, e.Detail)
}

// ParseTemplate reads a template. Placeholders are {dataset} and the identity levels given; they are whole tokens:
// pre-{robot} is refused. Literal tokens follow the rules of CheckSubject. The error is a *TemplateError.
func ParseTemplate(text string, levels []string) (*Template, error) {
	t := &Template{text: text}
	if len(text) > MaxSubject {
		return nil, &TemplateError{Template: text, Detail: fmt.Sprintf("has %d bytes, the limit is %d", len(text), MaxSubject)}
	}
	if reserved(text) {
		return nil, &TemplateError{Template: text, Detail: "subjects under $ and _INBOX belong to the server and its clients"}
	}
	var pattern []string
	for token := range strings.SplitSeq(text, ".") {
		p, detail := parsePart(token, levels)
		if detail != "" {
			if token == "" {
				return nil, &TemplateError{Template: text, Detail: detail}
			}
			return nil, &TemplateError{Template: text, Token: token, Detail: detail}
		}
		t.parts = append(t.parts, p)
		if p.name != "" {
			token = "*"
		}
		pattern = append(pattern, token)
	}
	t.pattern = strings.Join(pattern, ".")
	return t, nil
}

// parsePart returns one token, or what is wrong with it.
func parsePart(token string, levels []string) (part, string) {
	if token == "" {
		return part{}, "has an empty token"
	}
	if !strings.ContainsAny(token, "{}") {
		if checkToken(token) != "" {
			return part{}, "must not hold white space, control characters, * or >"
		}
		return part{literal: token}, ""
	}
	name := token[1 : max(len(token), 2)-1]
	if token[0] != '{' || token[len(token)-1] != '}' || strings.ContainsAny(name, "{}") {
		return part{}, "must be one whole placeholder or none: put a dot between text and placeholder"
	}
	if name != datasetName && (name == "" || !slices.Contains(levels, name)) {
		known := "{" + strings.Join(append([]string{datasetName}, levels...), "}, {") + "}"
		return part{}, "is not known; there are " + known
	}
	return part{name: name}, ""
}

// String is the template as it was written.
func (t *Template) String() string { return t.text }

// Pattern is the template with "*" for each placeholder: what it can render at most.
func (t *Template) Pattern() string { return t.pattern }

// PatternOf is Pattern for the events of one dataset: {dataset} is the dataset's name, which is a token that CheckSubject
// takes.
func (t *Template) PatternOf(dataset string) string {
	tokens := make([]string, len(t.parts))
	for i, p := range t.parts {
		switch p.name {
		case "":
			tokens[i] = p.literal
		case datasetName:
			tokens[i] = dataset
		default:
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, ".")
}

// AppendSubject appends the subject of e and checks it as CheckSubject does. The error is a *RejectError, and dst
// comes back as it was.
func (t *Template) AppendSubject(dst []byte, e *Event) ([]byte, error) {
	start := len(dst)
	for i, p := range t.parts {
		if i > 0 {
			dst = append(dst, '.')
		}
		if p.name == "" {
			dst = append(dst, p.literal...)
			continue
		}
		value := e.Dataset
		if p.name != datasetName {
			value, _ = e.Level(p.name)
		}
		if r := checkToken(value); r != "" {
			return dst[:start], rejectToken(r, t, p.name, value)
		}
		if n := len(dst) - start + len(value); n > MaxSubject {
			return dst[:start], reject(SubjectTooLong, "template %q: more than %d bytes", t.text, MaxSubject)
		}
		dst = append(dst, value...)
	}
	subject := dst[start:]
	if len(subject) > MaxSubject {
		return dst[:start], reject(SubjectTooLong, "template %q: %d bytes, the limit is %d", t.text, len(subject), MaxSubject)
	}
	if reserved(subject) {
		return dst[:start], reject(ReservedSubject, "template %q made %q", t.text, subject)
	}
	return dst, nil
}

func rejectToken(r Reason, t *Template, name string, value []byte) error {
	if r == EmptyToken {
		return reject(r, "template %q: the event has no value for {%s}", t.text, name)
	}
	const show = 64 // bytes of the value: enough to find it
	return reject(r, "template %q: {%s} is %q", t.text, name, value[:min(len(value), show)])
}
