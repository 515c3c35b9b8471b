package admit

import (
	"fmt"
	"strings"
)

func (s *source) readExports() {
	n := s.count("exports", 3, s.lim.Exports)
	seen := make(map[string]bool, n)
	for i := 0; i < n && s.err == nil; i++ {
		at := s.pos
		e := export{name: s.name("an export's name", s.lim.NameBytes), kind: s.u8("an export's kind")}
		if s.err != nil {
			return
		}
		switch {
		case seen[e.name]:
			s.fail(at, "%q is exported twice", e.name)
		case reserved(e.name):
			s.fail(at, "%q can not be exported: names that begin with %q belong to the host", e.name, MeterModule)
		case e.name == "_start":
			s.fail(at, "the module is a program that runs once (it exports _start): build a reactor instead (Go: -buildmode=c-shared, C: -mexec-model=reactor or -Wl,--no-entry)")
		}
		seen[e.name] = true
		switch e.kind {
		case kindFunc:
			e.index = s.index("function", len(s.funcs))
		case kindTable:
			e.index = s.index("table", s.tables)
		case kindMemory:
			e.index = s.index("memory", s.memories)
		case kindGlobal:
			e.index = s.index("global", len(s.globals))
		default:
			s.fail(at, "%q is exported with kind %d, which is not known", e.name, e.kind)
		}
		s.exports = append(s.exports, e)
	}
}

func reserved(name string) bool { return strings.HasPrefix(name, MeterModule) }

// The functions of the guest interface.
const (
	exportMemory     = "memory"
	exportBuffer     = "edge_v1_buffer"
	exportRun        = "edge_v1_run"
	exportConfig     = "edge_v1_config"
	exportInitialize = "_initialize"
)

func (s *source) find(name string) *export {
	for i := range s.exports {
		if s.exports[i].name == name {
			return &s.exports[i]
		}
	}
	return nil
}

// checkExports holds the exports against the guest interface.
func (s *source) checkExports() {
	s.section = "export"
	if m := s.find(exportMemory); m == nil || m.kind != kindMemory {
		s.fail(-1, "the module does not export its memory under the name %q", exportMemory)
	}
	s.wantFunc(exportBuffer, true, i32, i32)
	s.wantFunc(exportRun, true, i32+i32, i64)
	s.wantFunc(exportConfig, false, i32+i32, i32)
	s.wantFunc(exportInitialize, false, "", "")
}

func (s *source) wantFunc(name string, required bool, params, results string) {
	e := s.find(name)
	if e == nil && !required || s.err != nil {
		return
	}
	want := signature([]byte(params), []byte(results))
	if e == nil || e.kind != kindFunc {
		s.fail(-1, "the module does not export the function %s %s: every edge_v1 module has %s and %s", name, want, exportBuffer, exportRun)
		return
	}
	if t := s.types[s.funcs[e.index]]; string(t.params) != params || string(t.results) != results {
		s.fn = int(e.index)
		s.fail(-1, "%s has type %s, it must be %s", name, signature(t.params, t.results), want)
	}
}

// globalNames returns the names under which the rewrite exports the mutable globals, and their indices.
func (s *source) globalNames() (names []string, indices []uint32) {
	for i, g := range s.globals {
		if g.mutable {
			names = append(names, fmt.Sprintf("%s.g%d", MeterModule, i))
			indices = append(indices, uint32(i))
		}
	}
	return names, indices
}
