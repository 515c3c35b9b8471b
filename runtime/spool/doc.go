// Package spool is the durable log on disk that every event enters before its producer is answered.
//
// It guarantees:
//
//   - When Append returns without an error, the whole batch and its offset are on disk, in order, whatever happens
//     to the process or the power afterwards (FORMAT.md says what is assumed of the disk). Until then, or after an
//     error, a batch is there as a whole or not at all, and its offset with it.
//   - Positions are consecutive and never used twice, also across restarts and when the log was empty in between.
//   - Reading is not acknowledging: a new Reader starts at the sink's floor, and an event leaves the disk only when
//     the floor of every configured sink has passed it.
//   - Nobody reads an event that is not durable.
//   - After one failed write or sync every call answers the same *FailedError, until the spool is opened again.
//   - Damage costs the rows that are damaged (some events, about a kilobyte): they are set aside inside the
//     database, counted and logged, and everything around them is read. A database whose tree is damaged is
//     set aside as a file; inputs then begin again. Open does not fail of either.
//   - It is bounded: Append waits at Options.MaxBytes of used pages; floors and deletions always go through.
//   - A full disk is a full spool, not a broken one: Append waits, and goes on when sinks have settled events or the
//     disk has room again (FORMAT.md says on which systems and file systems).
//
// It does not guarantee that the file ever shrinks (pages are used again), that the file is not some megabytes
// larger than MaxBytes, or that a floor survives a crash within 200 ms of its Release. It knows nothing of what is
// in a record.
//
// The engine is bbolt: one file, copy on write, two syncs a commit. Run is the only writer, so that everything that
// waits shares a transaction.
package spool
