package main

import (
	"bufio"
	"encoding/hex"
	"io"
	"strconv"
	"time"
)

// The events of a run are a function of their index, so that two runs, and two programs, measure the same bytes:
//
//	{"id":"<16 hex digits of a hash><16 of the index>","ts":"…","site":"lab","robot":"r07","kind":"imu","recv_ns":…,
//	 "metric":{"seq":123,"ax":-0.118310,…}}                                                       about 220 bytes
//
// The id carries the index: what has been stored says by itself which event it is.

// robots is how many identities the events are spread over.
const robots = 20

// mix is a bijection that looks random (the finaliser of splitmix64).
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// appendID appends the id of event i.
func appendID(dst []byte, i uint64) []byte {
	for _, v := range [2]uint64{mix(i), i} {
		for shift := 56; shift >= 0; shift -= 8 {
			dst = hex.AppendEncode(dst, []byte{byte(v >> shift)})
		}
	}
	return dst
}

// parseID returns the index of the event that has this id; ok is false for an id that appendID never made.
func parseID(id string) (i uint64, ok bool) {
	if len(id) != 32 {
		return 0, false
	}
	check, err := strconv.ParseUint(id[:16], 16, 64)
	if err != nil {
		return 0, false
	}
	if i, err = strconv.ParseUint(id[16:], 16, 64); err != nil {
		return 0, false
	}
	return i, check == mix(i)
}

// appendRobot appends the robot of event i: r00 to r19.
func appendRobot(dst []byte, i uint64) []byte {
	r := mix(i^0x5bd1) % robots
	return append(dst, 'r', byte('0'+r/10), byte('0'+r%10))
}

var began = time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)

// appendEvent appends the line of event i, with its line break.
func appendEvent(dst []byte, i uint64) []byte {
	at := began.Add(time.Duration(i) * time.Millisecond)
	dst = append(dst, `{"id":"`...)
	dst = appendID(dst, i)
	dst = append(dst, `","ts":"`...)
	dst = at.AppendFormat(dst, "2006-01-02T15:04:05.000000000Z")
	dst = append(dst, `","site":"lab","robot":"`...)
	dst = appendRobot(dst, i)
	dst = append(dst, `","kind":"imu","recv_ns":`...)
	dst = strconv.AppendInt(dst, at.UnixNano()+int64(mix(i)%1_000_000), 10)
	dst = append(dst, `,"metric":{"seq":`...)
	dst = strconv.AppendUint(dst, i, 10)
	for k, name := range [...]string{"ax", "ay", "az", "t"} {
		v := float64(int64(mix(i*4+uint64(k))%4_000_000)-2_000_000) / 1e6
		dst = append(dst, `,"`+name+`":`...)
		dst = strconv.AppendFloat(dst, v, 'f', 6, 64)
	}
	return append(dst, "}}\n"...)
}

// writeEvents writes the first n events.
func writeEvents(w io.Writer, n int) error {
	out := bufio.NewWriterSize(w, 1<<20)
	var line []byte
	for i := range n {
		line = appendEvent(line[:0], uint64(i))
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}
