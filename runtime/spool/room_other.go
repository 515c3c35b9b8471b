//go:build unix && !linux

package spool

import "os"

// allocate makes the disk give blocks to the bytes of f up to to that are not in use yet, by writing them.
func allocate(f *os.File, from, used, to int64) error { return zeroes(f, from, used, to) }
