// Package runtime is the agent: it builds inputs, spool, lanes and publishers from a configuration, decides
// what runs when, and takes them down in an order that loses nothing.
//
//	inputs ──Append──▶ spool ──▶ lane ──▶ publisher ──▶ JetStream
//	   └─ refused lines ─▶ quarantine ◀─ refused events ─┘
//
// Taking down: inputs stop first, then the lanes read no more and wait for the answers to what is in flight
// (at most agent.drain_time), then the publishers close, then the spool writes its last floors. What has no
// outcome by then stays on disk and is sent again, with the same ids, by the next run.
//
// An Agent runs once. Open touches the disk and admits modules but starts nothing; Run owns every goroutine and
// returns when all of them are gone.
package runtime
