package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"edge/envelope"
)

// check holds the parts of a configuration against each other. It runs after the walk even if that found
// mistakes, and passes over what is missing because of them.
func (w *walker) check(c *Config) {
	for _, l := range []struct {
		path string
		n    int
	}{{"datasets", len(c.Datasets)}, {"inputs", len(c.Inputs)}, {"sinks", len(c.Sinks)}} {
		if l.n == 0 && w.given(l.path) && !w.failed(l.path) {
			w.failAt(l.path, "%s: an empty list: name at least one", l.path)
		}
	}
	names := make([]string, len(c.Datasets))
	for i, d := range c.Datasets {
		names[i] = d.Name
	}
	w.unique("datasets", "name", names)
	var inputs, sinks []string
	stdin := -1
	for i := range c.Inputs {
		in := &c.Inputs[i]
		inputs = append(inputs, in.ID)
		w.checkInput(index("inputs", i), in, c, names)
		if in.Kind != KindStdin {
			continue
		}
		if stdin >= 0 {
			w.failAt(index("inputs", i)+".kind", "inputs[%d] reads stdin already: there is only one", stdin)
		} else {
			stdin = i
		}
	}
	for i := range c.Sinks {
		s := &c.Sinks[i]
		sinks = append(sinks, s.ID)
		w.checkSink(index("sinks", i), s, c, names)
	}
	for i := range c.Inputs {
		longest := int64(c.Inputs[i].MaxLine)
		for _, store := range []struct {
			key string
			max int64
		}{{"spool.max_bytes", c.Spool.MaxBytes}, {"quarantine.max_bytes", c.Quarantine.MaxBytes}} {
			if store.max < 4*longest && !w.failed(store.key) {
				w.failAt(store.key, "%s: %s are too few for %s.max_line %s: at least four lines must fit", store.key, printSize(store.max), index("inputs", i), printSize(longest))
			}
		}
	}
	w.checkEmbedded(c)
	w.checkStreams(c)
	w.checkRaw(c)
	w.unique("inputs", "id", inputs)
	w.unique("sinks", "id", sinks)
}

// failed tells whether a mistake was reported at exactly this key.
func (w *walker) failed(path string) bool {
	return slices.ContainsFunc(w.errs, func(e Error) bool { return e.Path == path })
}

// failedIn tells whether a mistake was reported at or inside this key.
func (w *walker) failedIn(path string) bool {
	return slices.ContainsFunc(w.errs, func(e Error) bool { return strings.HasPrefix(e.Path, path) })
}

func (w *walker) unique(list, key string, names []string) {
	first := make(map[string]int, len(names))
	for i, name := range names {
		if name == "" {
			continue
		}
		if j, ok := first[name]; ok {
			w.failAt(index(list, i)+"."+key, "%s %q is taken by %s: give each its own", key, name, index(list, j))
			continue
		}
		first[name] = i
	}
}

func (w *walker) checkInput(path string, in *Input, c *Config, names []string) {
	switch {
	case in.Kind == KindFile && !w.given(path+".path"):
		w.failAt(path, "%s: missing key %q: a file input reads one", path, "path")
	case in.Kind == KindStdin && w.given(path+".path"):
		w.failAt(path+".path", "%s.path: stdin has no path: remove it, or write kind: file", path)
	}
	if in.Format == FormatRaw && w.given(path+".map") {
		w.failAt(path+".map", "%s.map: a raw body has no fields to map: remove it, or write format: json", path)
	}
	if w.given(path+".map.time_format") && !w.given(path+".map.time") {
		w.failAt(path+".map.time_format", "%s.map.time_format: there is no time to read: add map.time", path)
	}
	d := c.Dataset(in.Dataset)
	if d == nil {
		if in.Dataset != "" {
			w.failAt(path+".dataset", "%s.dataset: dataset %q is not declared%s", path, in.Dataset, suggest(in.Dataset, names))
		}
		return
	}
	for _, level := range slices.Sorted(maps.Keys(in.Map.Identity)) {
		if !slices.Contains(d.Identity, level) {
			w.failAt(path+".map.identity."+level, "%s.map.identity: dataset %q has no level %q%s", path, d.Name, level, suggest(level, d.Identity))
		}
	}
	for _, level := range d.Identity {
		if in.Map.Identity[level] == "" && in.Format == FormatJSON {
			w.warn(c, path, "level %q of dataset %q is not mapped: it is empty in every event, and a subject with {%s} rejects them", level, d.Name, level)
		}
	}
}

func (w *walker) checkSink(path string, s *Sink, c *Config, names []string) {
	n, at := &s.NATS, path+".config"
	for i, name := range n.Datasets {
		switch {
		case name == "":
		case c.Dataset(name) == nil:
			w.failAt(index(at+".datasets", i), "%s.datasets: dataset %q is not declared%s", at, name, suggest(name, names))
		case slices.Contains(n.Datasets[:i], name):
			w.failAt(index(at+".datasets", i), "%s.datasets: %q is given twice: keep one", at, name)
		}
	}
	if len(n.Datasets) == 0 && !w.given(at+".datasets") {
		n.Datasets = slices.Clone(names)
	}
	w.checkSubjects(at, s, c)
	if s.Retry.MinBackoff > s.Retry.MaxBackoff {
		w.failAt(path+".retry", "%s.retry: min_backoff %v is longer than max_backoff %v", path, s.Retry.MinBackoff, s.Retry.MaxBackoff)
	}
	w.checkCredentials(at, n, c)
	w.checkTLS(at, n, c)
	w.checkStrict(at, n)
}

func (w *walker) checkSubjects(at string, s *Sink, c *Config) {
	n := &s.NATS
	var allowed, places []string
	for i, p := range n.AllowSubjects {
		if p == "" {
			continue
		}
		if err := envelope.CheckPattern(p); err != nil {
			w.failAt(index(at+".allow_subjects", i), "%s.allow_subjects: %q is no subject pattern: %v", at, p, err)
		} else if strings.HasPrefix(p, "$") {
			w.failAt(index(at+".allow_subjects", i), "%s.allow_subjects: %q: subjects under $ belong to the server", at, p)
		} else {
			allowed, places = append(allowed, p), append(places, index(at+".allow_subjects", i))
		}
	}
	if n.CreateStream {
		w.checkCreated(allowed, places) // a created stream listens to them if there are any, else to the template's pattern
	}
	if n.CreateStream && !w.given(at+".subject") && !w.given(at+".allow_subjects") && s.Transform != nil {
		w.failAt(at+".create_stream", "%s.create_stream: nothing says what the stream listens to: give a subject or allow_subjects", at)
	}
	if !w.given(at + ".subject") {
		if s.Transform == nil && w.given(at) && !w.failed(at) {
			w.failAt(at, "%s: missing key %q: without a module it is the template that names every subject", at, "subject")
		}
		return
	}
	if n.Subject == "" || w.failedIn("datasets") || w.failedIn(at+".datasets") {
		return // reported, and which levels there are is not known before that is mended
	}
	t, err := envelope.ParseTemplate(n.Subject, c.Levels(s))
	if err != nil {
		w.failAt(at+".subject", "%s.subject: %v", at, err)
		return
	}
	if n.CreateStream && len(n.AllowSubjects) == 0 {
		w.checkCreated([]string{t.Pattern()}, []string{at + ".subject"})
	}
	if s.Transform != nil || len(n.AllowSubjects) == 0 || w.failedIn(at+".allow_subjects") {
		return // a module may name other subjects
	}
	if !slices.ContainsFunc(n.AllowSubjects, func(p string) bool { return envelope.PatternsMeet(p, t.Pattern()) }) {
		w.failAt(at+".allow_subjects", "%s.allow_subjects: none of them takes a subject of %q, so every event would wait in quarantine: add %q", at, n.Subject, t.Pattern())
	}
}

// checkEmbedded holds the sinks that use the server in this process against each other: there is one.
func (w *walker) checkEmbedded(c *Config) {
	first := -1
	for i := range c.Sinks {
		n := &c.Sinks[i].NATS
		if _, ok := n.Embedded(); !ok {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		if f := &c.Sinks[first].NATS; n.URL != f.URL || n.Token != f.Token {
			w.failAt(index("sinks", i)+".config.url", "%s.config: there is one embedded server: give it the url and token of %s", index("sinks", i), index("sinks", first))
		}
	}
}

func (w *walker) warn(c *Config, path, format string, args ...any) {
	at := w.find(path)
	message := w.around.hide(fmt.Sprintf(format, args...))
	c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d:%d: %s: %s", c.File, at.line, at.column, path, message))
}
