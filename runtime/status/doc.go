// Package status is what an agent says about itself: counters that lanes and inputs keep while they work, and
// the snapshot, progress line and summary that are made of them.
//
// The counters are the books of one run. For every sink they balance whenever its lane is at rest:
//
//	captured + carried over = accepted + dropped + quarantined + skipped + spooled
//
// Spooled is not counted, it is measured (events past the sink's floor), so that a mismatch shows a fault
// instead of hiding in the remainder.
package status
