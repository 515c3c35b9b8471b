package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows says which packages of the project each package may import. A package that is not listed may import
// nothing of the project; cmd, bench and examples may import anything, and nothing may import them.
var arrows = map[string][]string{
	"edge/envelope":           {},
	"edge/wasm/admit":         {},
	"edge/wasm/wasmtest":      {},
	"edge/wasm":               {"edge/wasm/admit"},
	"edge/transform":          {"edge/wasm", "edge/wasm/admit", "edge/envelope"},
	"edge/publisher":          {"edge/envelope"},
	"edge/publisher/embedded": {},
	"edge/publisher/faults":   {},
	"edge/publisher/natstest": {},
	"edge/runtime/config":     {"edge/envelope"},
	"edge/runtime/lockdir":    {},
	"edge/runtime/spool":      {"edge/runtime/lockdir"},
	"edge/runtime/status":     {},
	"edge/runtime/quarantine": {"edge/envelope", "edge/runtime/lockdir"},
	"edge/runtime/input":      {"edge/envelope", "edge/runtime/config", "edge/runtime/spool", "edge/runtime/quarantine"},
	"edge/runtime/flow":       {"edge/envelope", "edge/transform", "edge/publisher", "edge/runtime/spool", "edge/runtime/quarantine", "edge/runtime/status"},
	"edge/runtime":            {"edge/envelope", "edge/transform", "edge/wasm", "edge/publisher", "edge/publisher/embedded", "edge/runtime/config", "edge/runtime/input", "edge/runtime/spool", "edge/runtime/quarantine", "edge/runtime/flow", "edge/runtime/status"},
}

// libraries says which packages may know a library that the project keeps in one room.
var rooms = map[string][]string{
	"github.com/tetratelabs/wazero":  {"edge/wasm", "edge/wasm/admit"},
	"github.com/nats-io/nats.go":     {"edge/publisher", "edge/publisher/natstest", "edge/publisher/embedded"},
	"github.com/nats-io/nats-server": {"edge/publisher/embedded", "edge/publisher/natstest"},
	"go.etcd.io/bbolt":               {"edge/runtime/spool"},
	"github.com/goccy/go-yaml":       {"edge/runtime/config"},
	"github.com/urfave/cli":          {},
}

// TestImportArrows holds the picture of DESIGN.md: imports of non-test files point one way.
func TestImportArrows(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "edge/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	free := func(path string) bool {
		return strings.HasPrefix(path, "edge/cmd/") || strings.HasPrefix(path, "edge/bench") || strings.HasPrefix(path, "edge/examples/")
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		allowed, listed := arrows[p.ImportPath]
		if !listed && !free(p.ImportPath) {
			t.Errorf("%s is not in the picture: add it to arrows and argue for it in DESIGN.md", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			switch {
			case free(imp):
				t.Errorf("%s imports %s: nothing may", p.ImportPath, imp)
			case free(p.ImportPath):
			case strings.HasPrefix(imp, "edge/") && !slices.Contains(allowed, imp):
				t.Errorf("%s imports %s against the arrows", p.ImportPath, imp)
			}
			for lib, who := range rooms {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !free(p.ImportPath) && !slices.Contains(who, p.ImportPath) {
					t.Errorf("%s imports %s, which belongs to %v", p.ImportPath, imp, who)
				}
			}
		}
	}
	if seen < len(arrows) {
		t.Errorf("saw %d packages, the picture has %d: remove what is gone", seen, len(arrows))
	}
}
