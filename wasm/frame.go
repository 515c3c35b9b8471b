package wasm

import "encoding/binary"

// Input is one event of a run. The slices are only read, and only during the run.
type Input struct {
	IngestTime int64 // ns since 1970
	EventTime  int64 // ns since 1970; math.MinInt64 is none
	ID         [16]byte

	Data    []byte // the event's body
	Meta    []byte // "Name: value\r\n" lines
	Prefix  []byte // members of the native envelope before the body's own
	Subject []byte // the sink's template rendered, empty if there is none or it failed
}

const (
	frameMagic      = 0x31474445 // "EDG1"
	headerBytes     = 16
	descriptorBytes = 64
	progressAt      = 8
)

// Size returns the bytes that the event takes of Limits.Batch.
func (in *Input) Size() int {
	return descriptorBytes + len(in.Data) + len(in.Meta) + len(in.Prefix) + len(in.Subject)
}

// frameSize answers the bytes of the frame of a batch, or why it is beyond the limits.
func frameSize(in []Input, lim *Limits) (int, *Fault) {
	size := 0
	for k := range in {
		if len(in[k].Data) > lim.Input {
			return 0, faultAt(FaultInput, k, "data of %d bytes, at most %d may be given to the module: raise limits.input", len(in[k].Data), lim.Input)
		}
		if size += in[k].Size(); size > lim.Batch { // no sum can wrap: each part fits into memory
			return 0, fault(FaultInput, "the frame is full at %d bytes: make smaller batches", lim.Batch)
		}
	}
	return headerBytes + size, nil
}

// putFrame writes the frame of a batch into dst, whose length is the frame's size.
func putFrame(dst []byte, in []Input) {
	le := binary.LittleEndian
	le.PutUint32(dst, frameMagic)
	le.PutUint32(dst[4:], uint32(len(in)))
	le.PutUint64(dst[progressAt:], 0)
	at := headerBytes + descriptorBytes*len(in)
	put := func(d, b []byte) {
		le.PutUint32(d, uint32(at))
		le.PutUint32(d[4:], uint32(len(b)))
		at += copy(dst[at:], b)
	}
	for k := range in {
		e := &in[k]
		d := dst[headerBytes+descriptorBytes*k:][:descriptorBytes]
		le.PutUint64(d, uint64(e.IngestTime))
		le.PutUint64(d[8:], uint64(e.EventTime))
		copy(d[16:], e.ID[:])
		put(d[32:], e.Data)
		put(d[40:], e.Meta)
		put(d[48:], e.Prefix)
		put(d[56:], e.Subject)
	}
}

// progress reads the guest's hint out of a frame of n events.
func progress(frame []byte, n int) int {
	if p := binary.LittleEndian.Uint32(frame[progressAt:]); p < uint32(n) {
		return int(p)
	}
	return -1
}
