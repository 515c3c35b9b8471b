package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what references bring in.
const (
	maxReferenced = 64 << 10 // bytes of one file; credentials are far smaller
	maxExpanded   = 1 << 20  // bytes of all references of one configuration
)

// surroundings is what a configuration takes from outside itself.
type surroundings struct {
	dir  string // the configuration's folder: relative paths begin there
	env  func(name string) (value string, ok bool)
	used int // bytes that references have brought in

	brought []string // what they brought in, as it is and as it looks in quotes; not what is too short to hide
}

// leastHidden is the shortest text that hide takes out of messages, in bytes: hiding every "a" would hide the
// message, and no credential is that short.
const leastHidden = 4

// hide takes what references brought in out of a message.
func (s *surroundings) hide(message string) string {
	for _, v := range s.brought {
		message = strings.ReplaceAll(message, v, redacted)
	}
	return message
}

// path joins a relative path with the configuration's folder.
func (s *surroundings) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(s.dir, p)
}

// expand replaces the references in text. foreign tells that there was one. The error says which reference and
// why, and never repeats what one brought in.
func (s *surroundings) expand(text string) (out string, foreign bool, err error) {
	if !strings.Contains(text, "${") {
		return text, false, nil
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		if !ok {
			b.WriteString(text)
			return b.String(), foreign, nil
		}
		if strings.HasSuffix(before, "$") { // "$${" stands for "${"
			b.WriteString(before[:len(before)-1] + "${")
			text = rest
			continue
		}
		b.WriteString(before)
		ref, rest, ok := strings.Cut(rest, "}")
		if !ok {
			return "", false, errors.New(`"${" without "}": close the reference, or write $${ for the two characters`)
		}
		v, err := s.resolve(ref)
		if err != nil {
			return "", false, err
		}
		if s.used += len(v); s.used > maxExpanded {
			return "", false, fmt.Errorf("references bring in more than %d bytes in all", maxExpanded)
		}
		b.WriteString(v)
		foreign = true
		if len(v) >= leastHidden {
			s.brought = append(s.brought, v)
			if q := strconv.Quote(v); q[1:len(q)-1] != v {
				s.brought = append(s.brought, q[1:len(q)-1])
			}
		}
		text = rest
	}
}

// wholeFile is the path of the file if text is one reference to a file and nothing else, or "".
func (s *surroundings) wholeFile(text string) string {
	path, ok := strings.CutPrefix(text, "${file:")
	if path, closed := strings.CutSuffix(path, "}"); ok && closed && !strings.Contains(path, "}") {
		return s.path(path)
	}
	return ""
}

func (s *surroundings) resolve(ref string) (string, error) {
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		name, fallback, hasFallback := strings.Cut(name, ":-")
		if !envName(name) {
			return "", fmt.Errorf("%q is no name of an environment variable: write ${env:NAME} or ${env:NAME:-default}", name)
		}
		v, set := s.env(name)
		switch {
		case hasFallback && v == "":
			return fallback, nil
		case !set:
			return "", fmt.Errorf("environment variable %s is not set: set it, or write ${env:%s:-default}", name, name)
		case !utf8.ValidString(v):
			return "", fmt.Errorf("environment variable %s is not UTF-8", name)
		}
		return v, nil
	}
	if path, ok := strings.CutPrefix(ref, "file:"); ok && path != "" {
		return readReferenced(s.path(path))
	}
	kind, _, _ := strings.Cut(ref, ":")
	return "", fmt.Errorf("unknown reference ${%s...}: write ${env:NAME}, ${file:/path}, or $${ for the two characters", kind)
}

func envName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func readReferenced(path string) (string, error) {
	// Stat first: opening a pipe waits for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read referenced file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read referenced file %s: it is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read referenced file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxReferenced+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read referenced file: %w", err)
	case len(b) > maxReferenced:
		return "", fmt.Errorf("read referenced file %s: it is larger than %d bytes", path, maxReferenced)
	case !utf8.Valid(b):
		return "", fmt.Errorf("read referenced file %s: it is not UTF-8", path)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}
