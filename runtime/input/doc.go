// Package input reads lines and makes events of them: from a file to its end, and from standard input.
//
// It guarantees:
//
//   - A line is an event, or in quarantine with its place and reason, or empty. The position of a file moves past
//     a line only when its event is durable in the spool, in the same transaction, and when what was refused is
//     durable in quarantine. A crash at any point reads some lines again and stores none of them twice: what is
//     in the spool is behind the position, and what is refused has an id of its place.
//   - A bad line costs that line. Lines over the limit are passed over in bounded memory, whatever their length.
//   - What stdin delivered is handed to the spool as soon as the spool is free, without waiting for more.
//   - When Run returns, no goroutine of it is left, except one that waits in the Read of a reader that cannot be
//     interrupted (Run says which).
//
// # Lines
//
// A line ends with a line feed; a carriage return before it belongs to the line break. A byte order mark at the
// beginning of the file is passed over. Empty lines are, for json also those of only white space; they count as
// lines and are nothing else. Bytes behind the last line feed are a line too, because a file is read to its end.
// Should more be appended to them later, the rest is a line of its own, and probably refused: a file that is being
// written is read whole only up to its last line feed.
//
// # Ids
//
// A record's own id that is 32 hex digits is taken as it is: its producer must make it unique among everything that
// reaches one stream. Any other is hashed with the agent's and the input's id, so the same id through another agent or
// another input is another event. A record without one gets its id from its place in the spool.
//
// # Files
//
// A file is known by its inode, where the system has them, by the hash of the first 1,024 bytes that were read and by
// that of the last 256. A known file goes on where it stopped. A file that is another one, or shorter than what was
// read of it, or that was cut and filled again with something else at these places, is read from its beginning, with a
// warning: events whose ids come from their records keep them, the others get new ones. The device's number is not
// looked at: it changes when a machine starts again, and reading everything twice is worse than confusing two files of
// the same inode and bytes.
//
// # What is not guaranteed
//
// A pipe cannot be told what was stored, so lines of stdin that were read and not yet durable die with the process.
// Between two runs nobody notices that a file was changed behind the first 1,024 bytes that were read and before the
// last 256, nor that it was cut and filled again with the very bytes that were read: that looks like one that grew.
// While a file is read nobody notices that it was cut and filled beyond the place that is being read.
package input
