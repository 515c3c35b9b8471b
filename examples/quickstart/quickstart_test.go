package quickstart

import (
	"os"
	"testing"

	"edge/runtime/config"
)

// TestConfiguration holds the example's configuration against the agent's own reader of it.
func TestConfiguration(t *testing.T) {
	c, err := config.Load("edge.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
	for _, path := range []string{c.Inputs[0].Path, c.Sinks[0].Transform.Module} {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v", path, err)
		}
	}
}
