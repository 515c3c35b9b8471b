package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// walker reads the tree by the schema and collects mistakes. It never stops at one.
type walker struct {
	around surroundings
	lines  []string       // of the file
	at     map[string]pos // where each key was found
	errs   []Error
	more   int // mistakes past maxErrors
}

// maxErrors is how many mistakes are kept. A file with more is wrong in one place that repeats.
const maxErrors = 200

// read takes one value of the schema; path is its name for people.
type read func(n *node, path string)

// field is one key of a mapping.
type field struct {
	name string
	need bool
	read read
}

// fail reports a mistake in the value n.
func (w *walker) fail(n *node, path, format string, args ...any) {
	w.add(n.pos, path, format, args...)
}

// failAt reports a mistake at a key that has been read, or at the nearest key around it.
func (w *walker) failAt(path, format string, args ...any) {
	w.add(w.find(path), path, format, args...)
}

func (w *walker) find(path string) pos {
	for p := path; ; {
		if at, ok := w.at[p]; ok {
			return at
		}
		i := max(strings.LastIndexByte(p, '.'), strings.LastIndexByte(p, '['))
		if i < 0 {
			return pos{}
		}
		p = p[:i]
	}
}

func (w *walker) add(at pos, path, format string, args ...any) {
	if len(w.errs) >= maxErrors {
		w.more++
		return
	}
	message := w.around.hide(hideUser(fmt.Sprintf(format, args...)))
	w.errs = append(w.errs, Error{Line: at.line, Column: at.column, Path: path, Message: message, Excerpt: excerpt(w.lines, at)})
}

// given tells whether the file has a key.
func (w *walker) given(path string) bool {
	_, ok := w.at[path]
	return ok
}

// mapping reads a mapping with exactly these keys.
func (w *walker) mapping(n *node, path string, fields ...field) {
	if n.kind != mapping {
		w.fail(n, path, "%sexpected a mapping, got %s", label(path), n.what())
		return
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	seen := make(map[string]pos, len(n.entries))
	for _, e := range n.entries {
		sub := join(path, e.key)
		if first, ok := seen[e.key]; ok {
			w.add(e.pos, sub, "key %q is given twice, first in line %d: keep one", e.key, first.line)
			continue
		}
		seen[e.key] = e.pos
		found := false
		for _, f := range fields {
			if f.name != e.key {
				continue
			}
			found = true
			w.at[sub] = e.value.pos
			if e.value.kind == scalar && e.value.style == null {
				w.add(e.pos, sub, "key %q has no value: give one or remove the key", e.key)
				break
			}
			if !e.value.lost {
				f.read(e.value, sub)
			}
		}
		if !found {
			w.add(e.pos, sub, "unknown key %q%s", e.key, suggest(e.key, known))
		}
	}
	for _, f := range fields {
		if _, ok := seen[f.name]; f.need && !ok {
			w.fail(n, join(path, f.name), "%smissing key %q", label(path), f.name)
		}
	}
}

// list reads a list and calls each for every item.
func (w *walker) list(n *node, path string, each func(i int, n *node, path string)) {
	if n.kind != sequence {
		w.fail(n, path, "%sexpected a list, got %s", label(path), n.what())
		return
	}
	for i, item := range n.items {
		sub := path + "[" + strconv.Itoa(i) + "]"
		w.at[sub] = item.pos
		if !item.lost {
			each(i, item, sub)
		}
	}
}

// text returns the text of a scalar that YAML takes for a text, with its references replaced.
func (w *walker) text(n *node, path string) (string, bool) {
	if n.kind != scalar || n.style == null {
		w.fail(n, path, "%sexpected a text, got %s", label(path), n.what())
		return "", false
	}
	if n.style == number || n.style == boolean {
		w.fail(n, path, "%sexpected a text, got %s: put it into quotes if it is meant", label(path), n.what())
		return "", false
	}
	return n.text, true
}

// loose returns the text of a scalar that is to be read as something else than a text. A quoted text is not,
// unless it came out of a reference.
func (w *walker) loose(n *node, path, want string) (string, bool) {
	if n.kind != scalar || n.style == null || n.style == quotedText && !n.foreign {
		w.fail(n, path, "%sexpected %s, got %s", label(path), want, n.what())
		return "", false
	}
	return n.text, true
}

// quote repeats a value in a message, unless it came out of a reference.
func quote(n *node) string {
	if n.foreign {
		return "what the reference brought in"
	}
	return strconv.Quote(n.text)
}

// label begins a message with the key it is about.
func label(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// str reads any text that is not empty.
func (w *walker) str(to *string) read {
	return func(n *node, path string) {
		v, ok := w.text(n, path)
		if ok && v == "" {
			w.fail(n, path, "%smay not be empty", label(path))
			return
		}
		*to = v
	}
}

// checked reads a text that check accepts; check says what is wrong.
func (w *walker) checked(to *string, check func(string) string) read {
	return func(n *node, path string) {
		v, ok := w.text(n, path)
		if !ok {
			return
		}
		if wrong := check(v); wrong != "" {
			w.fail(n, path, "%s%s %s", label(path), quote(n), wrong)
			return
		}
		*to = v
	}
}

// enum reads one of a few words.
func (w *walker) enum(to *string, words ...string) read {
	return func(n *node, path string) {
		v, ok := w.text(n, path)
		if !ok {
			return
		}
		for _, word := range words {
			if v == word {
				*to = v
				return
			}
		}
		if n.foreign {
			v = ""
		}
		w.fail(n, path, "%sunknown value %s%s", label(path), quote(n), suggest(v, words))
	}
}

func (w *walker) boolean(to *bool) read {
	return func(n *node, path string) {
		v, ok := w.loose(n, path, "true or false")
		if !ok {
			return
		}
		switch strings.ToLower(v) {
		case "true":
			*to = true
		case "false":
			*to = false
		default:
			w.fail(n, path, "%sexpected true or false, got %s", label(path), quote(n))
		}
	}
}

// integer reads a whole number within bounds.
func (w *walker) integer(to *int64, least, most int64) read {
	return func(n *node, path string) {
		v, ok := w.loose(n, path, "a number")
		if !ok {
			return
		}
		i, err := strconv.ParseInt(v, 10, 64)
		if err != nil || v != strconv.FormatInt(i, 10) { // 010 is ten for some and eight for others
			w.fail(n, path, "%sexpected a whole number, got %s", label(path), quote(n))
			return
		}
		if i < least || i > most {
			w.fail(n, path, "%s%s is out of bounds: from %d to %d", label(path), quote(n), least, most)
			return
		}
		*to = i
	}
}

// size reads a number of bytes within bounds: 65536, 64KiB, 16MiB, 1GiB.
func (w *walker) size(to *int64, least, most int64) read {
	return func(n *node, path string) {
		v, ok := w.loose(n, path, "a size such as 16MiB")
		if !ok {
			return
		}
		size, wrong := parseSize(v)
		if wrong != "" {
			w.fail(n, path, "%s%s %s", label(path), quote(n), wrong)
			return
		}
		if size < least || size > most {
			w.fail(n, path, "%s%s is out of bounds: from %s to %s", label(path), quote(n), printSize(least), printSize(most))
			return
		}
		*to = size
	}
}

// intSize is size for what fits an int on every machine; most is below 2 GiB.
func (w *walker) intSize(to *int, least, most int64) read {
	return func(n *node, path string) {
		v := int64(*to)
		w.size(&v, least, most)(n, path)
		*to = int(v)
	}
}

// duration reads a time span within bounds: 250ms, 10s, 2m, 1h30m.
func (w *walker) duration(to *time.Duration, least, most time.Duration) read {
	return func(n *node, path string) {
		v, ok := w.loose(n, path, "a duration such as 10s")
		if !ok {
			return
		}
		d, err := time.ParseDuration(v)
		if err != nil {
			w.fail(n, path, "%s%s is no duration: write 250ms, 10s, 2m or 1h", label(path), quote(n))
			return
		}
		if d < least || d > most {
			w.fail(n, path, "%s%s is out of bounds: from %v to %v", label(path), quote(n), least, most)
			return
		}
		*to = d
	}
}

// wholeSeconds is duration without fractions of a second.
func (w *walker) wholeSeconds(to *time.Duration, least, most time.Duration) read {
	return func(n *node, path string) {
		var d time.Duration
		if w.duration(&d, least, most)(n, path); d%time.Second != 0 {
			w.fail(n, path, "%s%s has a fraction of a second: give whole ones", label(path), quote(n))
			return
		}
		*to = d
	}
}

// secretOrFile is secret, and names the file if the whole value is one reference to it.
func (w *walker) secretOrFile(to *Secret, file *string) read {
	return func(n *node, path string) {
		w.secret(to)(n, path)
		*file = n.file
	}
}

// secret reads a credential. A mistake shows its place but not its line.
func (w *walker) secret(to *Secret) read {
	return func(n *node, path string) {
		had := len(w.errs)
		v, ok := w.text(n, path)
		switch {
		case !ok:
		case v == "":
			w.fail(n, path, "%smay not be empty", label(path))
		case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }):
			w.fail(n, path, "%sholds a line break or another control character", label(path))
		default:
			*to = Secret{v}
		}
		for i := had; i < len(w.errs); i++ {
			w.errs[i].Excerpt = ""
		}
	}
}
