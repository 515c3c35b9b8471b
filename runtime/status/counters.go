package status

import "sync/atomic"

// Sink counts what became of the events of one sink in this run. Its lane writes, anybody reads.
type Sink struct {
	Accepted        atomic.Uint64          // events whose every message has a checked acknowledgement
	Dropped         atomic.Uint64          // events that the module left out
	Quarantined     atomic.Uint64          // events that wait for a person
	Skipped         atomic.Uint64          // events of datasets that the sink does not take
	Messages        atomic.Uint64          // messages acknowledged: more than Accepted when a module fans out
	Duplicates      atomic.Uint64          // messages acknowledged as duplicates: stored by an earlier attempt
	Retries         atomic.Uint64          // messages sent again
	Unknown         atomic.Uint64          // attempts that ended without an answer
	UnknownResolved atomic.Uint64          // messages with an unknown attempt behind them that were acknowledged later
	PastWindow      atomic.Uint64          // messages sent again after the duplicate window of their first attempt
	LastSequence    atomic.Uint64          // highest stream sequence acknowledged
	LastSettled     atomic.Int64           // when the floor moved last, ns since 1970 UTC; 0 for never
	InFlight        atomic.Int64           // messages sent and not yet answered
	Failing         atomic.Pointer[string] // why nothing can be stored until somebody mends it, as the last answer said; nil while all is well
	Paused          atomic.Pointer[string] // why the stream was last asked to wait, as its answer said; nil while it takes messages
	Passed          atomic.Uint64          // the floor, and the events beyond it that are settled: never decreases
}
