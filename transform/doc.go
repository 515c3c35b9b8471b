// Package transform turns events into messages, with the built-in envelope or with a module.
//
// It is policy over two mechanisms: envelope knows what a native envelope and a usable subject are, wasm
// knows how to call a guest without trusting it. A Renderer joins them for one lane and answers, for each
// event of a batch and in order, with exactly one Verdict: emit (one message or several), drop, or reject
// with a reason.
//
// What holds for every batch:
//
//   - One bad event costs one event. An event that is too large, has no usable subject, or whose message
//     breaks a rule is rejected alone; its neighbours come out as if it had not been there.
//   - A guest that faults publishes nothing of that call. The instance has returned to its snapshot, the same
//     events run one at a time, and only those that fault alone are rejected, with the fault as the reason.
//   - Whoever rendered a subject or a header, the same checks are made here before a message exists.
//   - A module cannot change an event's id, and a trap is never a drop.
//
// What does not: nothing here says whether a payload means anything. A module may emit any bytes.
package transform
