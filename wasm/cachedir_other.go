//go:build !unix

package wasm

import "os"

// checkOwner has nothing to go by: the directory inherits the access list of its parent.
func checkOwner(string, os.FileInfo) error { return nil }
