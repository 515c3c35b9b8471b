//go:build !unix

package config

import "testing"

// irregular has nothing to add to the device here.
func irregular(*testing.T, string) []string { return nil }
