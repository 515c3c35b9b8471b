package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// FuzzLoad holds that any text ends in a configuration or in mistakes with their places, that a module's
// configuration is JSON, and that what a reference brought in is in no message.
func FuzzLoad(f *testing.F) {
	dir := folder(f)
	f.Add(whole)
	f.Add("agent: {id: ${env:SECRET}, \"\": '${env:SECRET:-}'}\n")
	f.Add("a: [{b: c}, - d\n")
	f.Add("a: |\n  x\n b: >-\n")
	f.Add("? [a]\n: !!binary &x *y\n<<: %\n")
	f.Add("sinks:\n- transform:\n    config: {a: 0o7, b: 1_0, c: .5, d: +1, e: 0x, f: 1e5, \"\\ud800\": ~}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		const secret = "5eCr3t-from-outside"
		c, err := parse("edge.yaml", text, surroundings{dir: dir, env: func(name string) (string, bool) { return secret, name == "SECRET" }})
		if err == nil {
			for _, s := range c.Sinks {
				if s.Transform != nil && s.Transform.Config != nil && !json.Valid(s.Transform.Config) {
					t.Fatalf("the module's configuration is not JSON: %s", s.Transform.Config)
				}
			}
			return
		}
		var all *Errors
		if !errors.As(err, &all) || len(all.List) == 0 {
			t.Fatalf("got %v", err)
		}
		if strings.Contains(err.Error(), secret) && !strings.Contains(text, secret) {
			t.Fatalf("what a reference brought in is in %v", err)
		}
		lines := strings.Count(text, "\n") + 1
		for _, e := range all.List {
			if e.Line < 0 || e.Line > lines+1 || e.Column < 0 || e.Message == "" {
				t.Fatalf("got %+v for %d lines", e, lines)
			}
		}
	})
}
