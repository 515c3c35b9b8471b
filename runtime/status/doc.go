// Package status is what an agent says about itself: the counters that lanes and inputs keep while they work, and the
// summary that is made of them.
//
// The counters are the books of one run. For every sink they balance whenever its lane is at rest:
//
//	captured + carried over = accepted + dropped + quarantined + skipped + damaged + spooled
//
// Spooled is not counted, it is measured (the spool's end less what the lane has passed), so that a mismatch shows a
// fault instead of hiding in the remainder.
package status
