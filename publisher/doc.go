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
// A Result is about one attempt. Nothing is ever sent twice by this package: the client library's own retries and its
// reconnect buffer are off, because a buffered command can be published long after its attempt has been reported as
// lost. Whoever retries keeps the message's id, which goes out as Nats-Msg-Id, so that the stream recognises the copy
// within its duplicate window. An unknown attempt makes the message unknown until it is accepted: a refusal of a
// retry proves nothing about the earlier copy, since servers refuse before they look at the id.
//
// Each acknowledgement is matched by slot and generation, so a late one can never be taken for another message's; late
// and repeated ones are counted. Each is checked: expected stream, expected domain, positive sequence. Everything has
// a deadline, RequestTimeout: the lookup of the stream, each publication, each acknowledgement.
//
// The stream is looked up after each connect and refused if an acknowledgement by it would mean little: memory
// storage, acknowledgements off, sealed, a mirror, subjects that it does not list. What is merely risky (interest
// retention, asynchronous persistence, discard old) is a warning in the Profile.
//
// # What is not
//
// An acknowledged message is as safe as its stream: one replica on a server that syncs every two minutes (the
// server's default) can lose the last two minutes to a power cut. Order is that of Send on one connection, except
// that a refused message is overtaken by those behind it. Duplicates are recognised only within the stream's
// duplicate window, and by servers that have been restarted only for messages that are still stored.
//
// # Use
//
// New checks the configuration. Run connects, binds, and owns every goroutine until its context ends. Meanwhile Send
// admits one message at a time without waiting and Results delivers outcomes; or Write does both for a batch. The
// window (MaxInFlight, MaxInFlightBytes) bounds what is admitted and unanswered.
package publisher
