//go:build !linux

package wasm

import "errors"

// mapping is not available here: images are copies.
type mapping struct{}

var errNoMapping = errors.New("no private mapping on this system")

func (mapping) fill(*memory) error      { return errNoMapping }
func (mapping) over(*memory, int) error { return errNoMapping }
func (mapping) drop(*memory, int) error { return errNoMapping }
func (mapping) close()                  {}
