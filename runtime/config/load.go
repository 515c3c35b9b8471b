package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Load reads the configuration file at path. A mistake in it, or that it cannot be read at all, is an *Errors.
func Load(path string) (*Config, error) {
	text, err := readConfig(path)
	if err != nil {
		return nil, &Errors{File: path, List: []Error{{Message: err.Error()}}}
	}
	return parse(path, text, surroundings{dir: filepath.Dir(path), env: os.LookupEnv})
}

func readConfig(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("read configuration: %w", err)
	case info.IsDir():
		return "", fmt.Errorf("read configuration: it is a folder: name the file in it")
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("read configuration: it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read configuration: %w", err)
	case len(b) > maxFile:
		return "", fmt.Errorf("read configuration: it is larger than %d bytes: is it the right file?", maxFile)
	}
	return string(b), nil
}

// parse is Load without the file. name stands for the file in messages.
func parse(name, text string, around surroundings) (*Config, error) {
	text = strings.TrimPrefix(text, "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	w := &walker{around: around, lines: strings.Split(text, "\n"), at: make(map[string]pos)}
	c := &Config{File: name}
	if at, bad := badText(text); bad != "" {
		w.add(at, "", "%s", bad)
	} else if root, err := parseYAML(text); err != nil {
		w.add(err.(*syntaxError).pos, "", "%s", err)
	} else {
		w.expand(root, "")
		w.file(root, c)
		w.check(c)
	}
	if len(w.errs) > 0 {
		e := &Errors{File: name, List: w.errs}
		e.sort()
		if w.more > 0 {
			e.List = append(e.List, Error{Message: fmt.Sprintf("and %d more mistakes", w.more)})
		}
		return nil, e
	}
	return c, nil
}

// expand replaces the references in every value below n. One that cannot be is reported, and its value is lost.
func (w *walker) expand(n *node, path string) {
	for _, e := range n.entries {
		w.expand(e.value, join(path, e.key))
	}
	for i, item := range n.items {
		w.expand(item, index(path, i))
	}
	if n.kind != scalar || n.style != plainText && n.style != quotedText {
		return
	}
	n.file = w.around.wholeFile(n.text)
	text, foreign, err := w.around.expand(n.text)
	if err != nil {
		w.fail(n, path, "%s%v", label(path), err)
		n.lost = true
		return
	}
	n.text, n.foreign = text, foreign
}
