// Package quarantine is the durable store of events that wait for a person: the event as it was captured, its
// rendered form if there is one, and why it could not be published.
//
// It is one file, quarantine.ndjson, that anybody can read with the tools at hand: one JSON object a line, the
// oldest first. The last member of each line is a checksum:
//
//	{"time":"2026-12-01T02:26:45.5Z","sink":"nats-out","id":"0123…","reason":"too_large","detail":"…",
//	 "input":"imu-log","source":"imu.ndjson:17","dataset":"imu","identity":{"site":"a","robot":"r7"},
//	 "ingest_time":"…","event_time":null,"quality":"good","kind":"record","module":"…","attempts":1,
//	 "raw":"{\"temp\":43.25}","event_head_base64":"…","subject":"…","headers":"…","payload":"…","crc32c":"89abcdef"}
//
// Members that have nothing to say are left out. Bytes that are not valid UTF-8 are under raw_base64,
// headers_base64 or payload_base64 instead. event_head_base64 is the spool's form of the event up to its body,
// which is raw; where raw is not its end, event_base64 has all of it. The checksum is the CRC32C, in 8 hex digits,
// of the line from its first byte to the one before ,"crc32c".
//
// It guarantees:
//
//   - When Put returns without an error, its entries are on disk: one write, one sync for all of them. An entry
//     that is already there (same sink, id and reason) is not written again, so a crash between Put and the floor
//     leaves one entry.
//   - After one failed write or sync every Put answers the same *FailedError, until the store is opened again.
//   - It is bounded: at Options.MaxBytes Put answers *FullError, and nothing of the call is written.
//   - Damage never stops Open, and nothing is thrown away: what is behind the last complete line was never
//     acknowledged and is cut off, lines whose checksum does not match are taken out, and both are kept in
//     quarantine.damaged, counted and logged.
//   - Scan takes no lock and works beside a running agent, on a stopped one and on a copy.
//
// It does not: delete, compress, or know how to publish again. Texts that are not valid UTF-8 (a file name in
// source, say) are shown with replacement characters; the bytes of the event itself are always exact.
package quarantine
