package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Errors is every mistake of one configuration file, in the order of the file.
type Errors struct {
	File string
	List []Error // at least one
}

// Error is one mistake.
type Error struct {
	Line    int    // from 1; 0 if the mistake is in no line
	Column  int    // in characters, from 1; 0 with Line
	Path    string // the key: sinks[0].config.subjct; empty if it is the whole file
	Message string // lower case, ends with what to do next where that is not plain
	Excerpt string // the line and a caret below it, without a line break at the end; secrets are cut out
}

// Error prints each mistake like
//
//	edge.yaml:14:7: unknown key "subjct" (did you mean "subject"?)
//	  14 |       subjct: edge.{dataset}
//	     |       ^
func (e *Errors) Error() string {
	var b strings.Builder
	for i, m := range e.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.File)
		if m.Line > 0 {
			b.WriteString(":" + strconv.Itoa(m.Line) + ":" + strconv.Itoa(m.Column))
		}
		b.WriteString(": ")
		b.WriteString(m.Message)
		if m.Excerpt != "" {
			b.WriteByte('\n')
			b.WriteString(m.Excerpt)
		}
	}
	return b.String()
}

func (e *Errors) sort() {
	slices.SortStableFunc(e.List, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
