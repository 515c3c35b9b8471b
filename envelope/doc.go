// Package envelope is the project's data: what an input delivered (Event), what goes out for it (Message),
// how both are named (ID, subjects, headers), how an event is written into the spool, and the built-in JSON
// envelope. It knows neither Wasm nor NATS, starts no goroutine, reads no clock and touches no file.
//
// # Vocabulary
//
// These words mean the same thing everywhere in the project, in code, texts and errors. A new noun enters here.
//
//	event       what an input delivered: id, dataset, times, quality, identity, body
//	dataset     a named kind of event (imu, battery) with declared identity levels
//	identity    ordered levels (site, robot) with string values: who the event is about
//	record      an event's body when it is one JSON object; any other body is raw
//	prefix      the members of the native envelope that stand before the record's own
//	message     what goes out: subject, headers, payload, message id
//	template    a subject with placeholders that are whole tokens: edge.{dataset}.{robot}
//	pattern     a subject with wildcards, as a stream lists it: edge.*.>
//	module      Wasm code; an instance is its memory. One lane owns one instance
//	spool       the durable log on disk that every event enters before its producer is answered
//	sink        one configured destination with its own cursor over the spool
//	lane        what moves one sink's events from the spool to the publisher, in order
//	batch       a contiguous run of spooled events of one sink
//	window      what is published and not yet answered
//	floor       the position below which everything is settled
//	outcome     accepted, retryable, unknown, permanent or fatal
//	reject      the verdict that one event can not be rendered or sent, with a Reason that is a stable code
//	quarantine  the durable store of events that wait for a person
//
// # What is guaranteed
//
// Everything that comes from outside is checked here before anybody relies on it: JSON strictly by RFC 8259 with
// valid UTF-8, no lone surrogates and at most MaxNesting containers inside one another; subjects and headers by
// what a NATS server does with them. Values of a record are never parsed into numbers or strings on their way to
// the envelope: their bytes are copied, so that 2^63+1, 1e400 and twenty digits survive. One event that fails
// yields a *RejectError and leaves the destination as it was.
//
// In steady state nothing here allocates for an event: buffers are the caller's (Append...), results alias their
// input (Parse...), scratch lives in a Writer or an Extractor, of which each goroutine has its own.
//
// # What is not
//
// The spool's form of an event (AppendEvent) carries a version but no checksum: whoever stores it sums it.
// White space inside a record is copied, not removed. Whether a stream really takes a subject is the
// publisher's knowledge.
package envelope
