//go:build !linux

package spool

import "go.etcd.io/bbolt"

// shed does nothing: elsewhere the advice has other meanings, or none.
func shed(*bbolt.Tx) {}
