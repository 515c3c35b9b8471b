// Package wasm runs untrusted modules of the edge_v1 guest interface over batches of events. It knows the interface,
// not what an event means: bytes go in, records come out.
//
//	Engine ── Load ──▶ Module ── NewInstance ──▶ Instance ── Run(in, out) ──▶ out.Records
//	(one an agent)     (code, limits)            (memory, one lane's own)     or *Fault
//
// A module is admitted and rewritten by wasm/admit (it then counts its own work), compiled, instantiated,
// initialized and configured; then a snapshot is taken. Run is one call into the guest.
//
// # What is guaranteed
//
//   - All or nothing: a Run that answers an error has left no record in its Output.
//   - Known state: an Instance is between two calls either what the last good Run left behind or exactly its
//     snapshot. Every fault puts it back to the snapshot before Run returns: memory, globals, clock, random numbers.
//   - Limits without an "off": bytes of module, memory, input and output, records, headers, executed instructions
//     (the fuel, exact and the same on every machine), stack and, as an outer fence, time. See Limits.
//   - A guest that spins delays Go's collector and scheduler by at most a slice of fuel, about 0.3 ms: native code
//     can not be preempted, so each slice ends in Go.
//   - The guest reaches nothing: no file, socket, environment, argument or real clock. It may write bounded log
//     lines. Its clock is the batch's first ingest time, its random numbers are the same in each run from a snapshot.
//   - Every number that a guest answers is a claim, held against its memory and the limits before it is used.
//   - In steady state a Run allocates nothing.
//
// # What is not
//
// State that a guest keeps between good Runs stays until the next fault or Reset; nobody should rely on either.
// Subjects and headers are bounded here, not understood: their syntax is the reader's to check. Fuel is
// instructions, not time. We trust wazero's compiler, and whoever can write into the cache directory: its files are
// native code. Compiling happens in this process, bounded by what admission lets through.
//
// # The frame
//
// What the guest reads at the pointer that its edge_v1_buffer gave, little-endian, offsets from the frame's start:
//
//	0        4        8           12      16
//	┌────────┬────────┬───────────┬───────┬──────────────────────┬───────┐
//	│ "EDG1" │ count  │ progress  │ flags │ count × 64 bytes     │ bytes │
//	└────────┴────────┴───────────┴───────┴──────────────────────┴───────┘
//	descriptor: i64 ingest_time_ns, i64 event_time_ns, u8[16] id,
//	            u32 data_off, data_len, meta_off, meta_len, prefix_off, prefix_len, subject_off, subject_len
//
// Progress belongs to the guest: the index of the event in work, a hint for messages. Flags are zero.
//
// # The records
//
// What edge_v1_run answers as out_ptr << 32 | out_len, back to back without padding:
//
//	u32 index, u8 kind, u8 0, u16 subject_len, u32 headers_len, u32 payload_len, subject, headers, payload
//
// Indices do not decrease. Kind 0 is a message, kind 1 rejects the event: no subject, no headers, the payload is
// the reason. An event without a record has been dropped by the module.
package wasm
