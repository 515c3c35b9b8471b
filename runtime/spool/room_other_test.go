//go:build !linux

package spool

// smallDisk does nothing: here no test has a disk of its own.
func smallDisk() error { return nil }
