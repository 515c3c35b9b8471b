package publisher

import "strings"

// codeStoreFailed is the one number that servers use for every reason of their store. The text tells which.
const codeStoreFailed = 10077

// answer is what a refusal means for one message sent singly.
type answer struct {
	outcome Outcome
	fix     string
}

const (
	ourBug     = "the message carries a header that this agent does not send: report it"
	fixHeaders = "the module must not set this header"
	fixStream  = "the stream is of a kind that takes no plain messages: use another"
)

// refusals is every JetStream error number that servers up to 2.15.3 put into an acknowledgement, apart from
// codeStoreFailed: found by listing the error constructors that the server's ingest functions reach (plain, clustered,
// atomic and fast batches, and the queue before them). What it says of 2.15.3 is held by tests against the server's own
// list and against running servers. It is never changed at run time.
var refusals = map[int]answer{
	10002: {Retryable, "the account's quota is used up: raise it or free space"},
	10009: {Retryable, "the server is not the stream's leader: wait for the election"}, // made, but 2.15 keeps silent instead
	10023: {Retryable, "the server's JetStream storage is used up: raise it or free space"},
	10054: {Permanent, "raise max_msg_size of the stream or send less"},
	10060: {Fatal, "the subject belongs to another stream: correct subject or stream"},
	10063: {Unknown, "replicas disagree: look at the cluster"},
	10070: {Permanent, ourBug}, // wrong last message id
	10071: {Permanent, ourBug}, // wrong last sequence
	10097: {Permanent, "at most 64 KiB of headers"},
	10109: {Fatal, "the stream is sealed: use another"},
	10111: {Fatal, "a rollup header is not ours: report it"},
	10120: {Fatal, "the account has no limits for this number of replicas: add a tier"},
	10158: {Unknown, "another copy of the id is being stored"},
	10164: {Permanent, ourBug}, // wrong last sequence, in a batch or while another is in process
	10165: {Permanent, fixHeaders},
	10166: {Fatal, "allow message TTLs on the stream"},
	10167: {Retryable, "the stream's queue is full: publish slower"},
	10168: {Fatal, fixStream}, // counters disabled
	10169: {Fatal, fixStream}, // counter increment missing
	10170: {Permanent, fixHeaders},
	10171: {Permanent, fixHeaders},
	10172: {Fatal, fixStream}, // counter broken
	10174: {Fatal, ourBug},    // atomic publish disabled
	10175: {Fatal, ourBug},    // batch id, sequence and commit headers malformed: this and the next five
	10177: {Fatal, ourBug},
	10179: {Fatal, ourBug},
	10200: {Fatal, ourBug},
	10206: {Fatal, ourBug},
	10207: {Fatal, ourBug},
	10176: {Retryable, "the batch was left incomplete, nothing of it is stored"},
	10185: {Fatal, "the server is too old for what is asked"},
	10188: {Fatal, "allow message schedules on the stream"},
	10189: {Permanent, fixHeaders}, // schedule headers malformed: this and the next six
	10190: {Permanent, fixHeaders},
	10191: {Permanent, fixHeaders},
	10192: {Permanent, fixHeaders},
	10203: {Permanent, fixHeaders},
	10212: {Permanent, fixHeaders},
	10223: {Permanent, fixHeaders},
	10193: {Permanent, ourBug}, // a subject for the last sequence without the sequence
	10199: {Retryable, "the batch is too large: split it"},
	10201: {Unknown, "an id of the batch is stored already: publish its messages singly"},
	10205: {Fatal, ourBug}, // batch publish disabled
	10208: {Retryable, "the server has forgotten the batch: publish its messages singly"},
	10210: {Retryable, "too many open batches: publish slower"},
	10211: {Retryable, "too many open batches: publish slower"},
	10227: {Permanent, fixHeaders},
}

// storeFailure is what a refusal under codeStoreFailed means. The known texts come from checks before the message is
// written or proposed to replicas.
func storeFailure(text string) answer {
	switch {
	case strings.Contains(text, "message too large"):
		return answer{Permanent, "the server's file store takes at most 32 MiB in one message"}
	case strings.Contains(text, "maximum messages exceeded"),
		strings.Contains(text, "maximum bytes exceeded"),
		strings.Contains(text, "maximum messages per subject exceeded"):
		return answer{Retryable, "the stream is full: raise its limits or consume from it"}
	}
	// "store is closed", or a text of another version. In a cluster the leader's store can be closed after the message
	// was agreed on, and the other replicas keep it.
	return answer{Unknown, "the store did not take it: look at the server's log"}
}
