package wasm

import (
	"bytes"
	"encoding/binary"
)

// Record is what a module wrote for one event: a message, or the reject of the event. If an event has both, the
// reject is the module's last word and the messages count for nothing; the reader sees to it.
type Record struct {
	Index  uint32 // of the event in the batch
	Reject bool   // Payload is the reason

	// Subject, Headers and Payload belong to the Output and are valid until its next use. Their syntax is not
	// checked.
	Subject, Headers, Payload []byte
}

// Output holds the records of one run. Reuse it: it keeps its memory. The zero value is ready.
type Output struct {
	Records []Record // indices do not decrease

	buf []byte // a copy of what the guest wrote; the records' slices point into it
}

// Trim gives the memory back if it has grown beyond max bytes. What the records held is gone then.
func (o *Output) Trim(max int) {
	if cap(o.buf) > max {
		*o = Output{}
	}
}

func (o *Output) reset() { o.Records, o.buf = o.Records[:0], o.buf[:0] }

const (
	recordBytes = 16
	reasonBytes = 1 << 10

	kindMessage = 0
	kindReject  = 1
)

// take copies what the guest wrote for n events and cuts it into records. On a fault o is not usable.
func (o *Output) take(src []byte, n int, lim *Limits) *Fault {
	o.reset()
	if len(src) > lim.Batch {
		return fault(FaultOutput, "%d bytes of records, at most %d are taken: make smaller batches", len(src), lim.Batch)
	}
	o.buf = append(o.buf, src...)
	le, last, count, size := binary.LittleEndian, -1, 0, 0
	for rest := o.buf; len(rest) > 0; {
		if len(rest) < recordBytes {
			return fault(FaultRecord, "%d bytes behind the last record", len(rest))
		}
		index := le.Uint32(rest)
		kind, pad := rest[4], rest[5]
		sub, head, pay := int64(le.Uint16(rest[6:])), int64(le.Uint32(rest[8:])), int64(le.Uint32(rest[12:]))
		rest = rest[recordBytes:]
		if uint64(index) >= uint64(n) {
			return fault(FaultRecord, "index %d in a batch of %d events", index, n)
		}
		k := int(index)
		switch {
		case k < last:
			return fault(FaultRecord, "index %d behind index %d: records must be in order", k, last)
		case k > last:
			last, count, size = k, 0, 0
		}
		if sub+head+pay > int64(len(rest)) {
			return faultAt(FaultRecord, k, "lengths %d+%d+%d in the %d bytes that are left", sub, head, pay, len(rest))
		}
		switch {
		case pad != 0 || kind > kindReject:
			return faultAt(FaultRecord, k, "kind %d, pad %d: kinds are 0 and 1, the pad is 0", kind, pad)
		case kind == kindReject && sub+head != 0:
			return faultAt(FaultRecord, k, "a reject has a reason and neither subject nor headers")
		case kind == kindReject && pay > reasonBytes:
			return faultAt(FaultOutput, k, "a reason of %d bytes, at most %d are taken", pay, reasonBytes)
		}
		if count++; count > lim.Records {
			return faultAt(FaultOutput, k, "more than %d records for one event", lim.Records)
		}
		if size += int(sub + head + pay); size > lim.Output {
			return faultAt(FaultOutput, k, "%d bytes for one event, at most %d are taken: raise limits.output", size, lim.Output)
		}
		r := Record{Index: index, Reject: kind == kindReject}
		r.Subject, rest = cut(rest, sub)
		r.Headers, rest = cut(rest, head)
		r.Payload, rest = cut(rest, pay)
		if lines := bytes.Count(r.Headers, newline); lines > lim.Headers {
			return faultAt(FaultOutput, k, "%d headers, at most %d are taken", lines, lim.Headers)
		}
		o.Records = append(o.Records, r)
	}
	return nil
}

var newline = []byte{'\n'}

func cut(b []byte, n int64) (head, tail []byte) { return b[:n:n], b[n:] }
