// Package publisher puts messages into one NATS JetStream stream and says of each what became of it.
//
// # What is guaranteed
//
// Every admitted message gets exactly one Result, with one of five outcomes:
//
//	accepted   the stream that was asked for has stored it, or an earlier copy with the same id, and named its sequence
//	retryable  this attempt surely stored nothing, and a later one can succeed
//	unknown    this attempt may have stored it: no answer in time, connection lost, an answer that proves nothing
//	permanent  this message can never be stored as it is
//	fatal      nothing of the kind can be stored until somebody mends credentials, permissions or the stream
//
// A Result is about one attempt, and a message that has one is never sent again by this package: the client library's
// own retries and its reconnect buffer are off, because a buffered command can be published long after its attempt has
// been reported as lost. Whoever retries keeps the message's id, which goes out as Nats-Msg-Id, so that the stream
// recognises the copy within its duplicate window, counted from the first attempt (Result.SentAt).
//
// Within one attempt a message may go out twice: in a batch (ModeAtomic, ModeFast), and then singly with the same id
// because the batch came to nothing or its answer leaves the message open. If its first copy may be stored, the second
// is sent only while the stream surely remembers the id, and only its acceptance counts: a refusal is unknown then.
//
// Each acknowledgement is matched by slot and generation, so a late one can never be taken for another message's; late
// and repeated ones are counted. Each is checked: expected stream, expected domain, positive sequence, and for a batch
// its own id and the number of its messages. Everything has a deadline, RequestTimeout: the lookup of the stream, each
// publication, each acknowledgement; only Write waits for a missing stream as long as its context lets it. Ending a context never pretends that anything was undone: what may have been sent
// is unknown.
//
// The stream is looked up after each connect, after any answer that contradicts what is known of it, after repeated
// silence, and every minute. It is refused if an acknowledgement by it would mean little: memory storage,
// acknowledgements off, sealed, a mirror, subjects that it does not list, or less than it promised when it was bound.
// What is merely risky (interest retention, asynchronous persistence, discard old) is a warning in the Profile.
//
// # What an attempt proves about earlier ones
//
// Nothing, unless it is accepted. Servers refuse before they look at the id: a replicated stream answers "too large"
// for an id that it has stored, a full one "quota exceeded". So a message with an unknown attempt behind it stays
// unknown until an attempt is accepted, whatever the retries between them say; Settle is that rule. Past the duplicate
// window a retry can store a second copy: look before sending again then.
//
// # Failure and repair
//
// Run never gives up. A server that cannot be reached is tried for ever, at growing intervals of up to 30 s that are
// spread by dice. What a person has to mend (credentials, certificates, rights, the stream) makes the state Failed with
// a *FatalError that names the code, the field of the configuration and what to do. It is tried again at the same
// intervals, and within a second of a change to a file of credentials or certificates; all of those are read anew at
// each connection. Who would rather end than wait looks at Status when Changed says so, and ends Run's context.
//
// # What is not guaranteed
//
// An acknowledged message is as safe as its stream: one replica on a server that syncs every two minutes (the
// server's default) can lose the last two minutes to a power cut. Order is that of Send on one connection, except
// that a refused message is overtaken by those behind it. Duplicates are recognised only within the stream's
// duplicate window, and by servers that have been restarted only for messages that are still stored. A retry that is
// sent within the window can be processed after it by a server that was stopped in between.
//
// # Use
//
// New checks the configuration. Run connects, binds, and owns every goroutine until its context ends. Meanwhile Send
// admits one message at a time without waiting and Results delivers outcomes; Deliver does both for one message and
// Write for a batch. The window (MaxInFlight, MaxInFlightBytes) bounds what is admitted and unanswered. How messages
// travel (one by one, in atomic batches, or by fast ingest) is Config.Mode; the guarantees are the same.
//
// Probe looks at server, stream and permissions once, without publishing: what a configuration would meet.
package publisher
