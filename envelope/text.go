package envelope

import (
	"encoding/hex"
	"math"
	"unicode/utf8"

	"github.com/goccy/go-json/jsontext"
)

// AppendText appends the text of one JSON value, such as Extract finds: a string without its quotes and escapes, a
// number, true and false as they are written. Anything else is a *RejectError with NotText, malformed JSON one with
// NotJSON, and dst comes back as it was.
func AppendText(dst []byte, raw []byte) ([]byte, error) {
	if !utf8.Valid(raw) {
		return dst, reject(InvalidUTF8, "broken UTF-8 at offset %d", validPrefix(raw))
	}
	end, f := scanValue(raw, 0, 0)
	if f == fine && end != len(raw) {
		f = badTail
	}
	if f != fine {
		return dst, f.reject(end)
	}
	switch raw[0] {
	case '"':
		return appendUnescaped(dst, raw[1:end-1]), nil
	case '{', '[', 'n':
		return dst, reject(NotText, "a string, number or boolean is needed, not null, a list or an object")
	}
	return append(dst, raw...), nil
}

// The functions below append one JSON value each, for producers that build a record field by field in Go.

// AppendString appends s as a JSON string with its text unchanged. Invalid UTF-8 is a *RejectError, and dst comes
// back as it was.
func AppendString[S []byte | string](dst []byte, s S) ([]byte, error) {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return dst, reject(InvalidUTF8, "broken UTF-8 in a string")
	}
	return out, nil
}

// AppendFloat appends the shortest number that reads back as v, a float of 32 or 64 bits, and null for NaN and the
// infinities, which JSON can not write.
func AppendFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	return jsontext.AppendFloat(dst, v, bits)
}

// AppendHex appends bytes as a JSON string of lower-case hex digits.
func AppendHex(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = hex.AppendEncode(dst, b)
	return append(dst, '"')
}

// AppendTime appends a time in nanoseconds since 1970 UTC as an RFC 3339 string in UTC with always nine fractional
// digits, so that texts sort as times do, and NoTime as null. Every other int64 is a time between 1677 and 2262.
func AppendTime(dst []byte, ns int64) []byte {
	if ns == NoTime {
		return append(dst, "null"...)
	}
	const (
		second = 1_000_000_000
		day    = 86_400
	)
	sec, frac := ns/second, ns%second
	if frac < 0 {
		sec, frac = sec-1, frac+second
	}
	days, clock := sec/day, sec%day
	if clock < 0 {
		days, clock = days-1, clock+day
	}
	y, m, d := civil(days)
	b := [32]byte([]byte(`"0000-00-00T00:00:00.000000000Z"`))
	put2(b[1:], y/100)
	put2(b[3:], y%100)
	put2(b[6:], m)
	put2(b[9:], d)
	put2(b[12:], clock/3600)
	put2(b[15:], clock/60%60)
	put2(b[18:], clock%60)
	put2(b[21:], frac/10_000_000)
	put2(b[23:], frac/100_000%100)
	put2(b[25:], frac/1000%100)
	put2(b[27:], frac/10%100)
	b[29] = byte('0' + frac%10)
	return append(dst, b[:]...)
}

// put2 writes two digits.
func put2(b []byte, v int64) {
	b[0], b[1] = byte('0'+v/10), byte('0'+v%10)
}

// civil turns days since 1970-01-01 into a date of the Gregorian calendar. Years are counted from 1 March of year 0,
// so that the leap day comes last, in eras of 400 years. days is at least -719,468, which is far more than int64
// nanoseconds can say.
func civil(days int64) (year, month, day int64) {
	const era = 146_097 // days in 400 years
	z := days + 719_468 // days since 0000-03-01
	inEra := z % era
	inYear := (inEra - inEra/1460 + inEra/36_524 - inEra/146_096) / 365
	day = inEra - (365*inYear + inYear/4 - inYear/100)
	m := (5*day + 2) / 153 // 0 = March
	day -= (153*m+2)/5 - 1
	year = z/era*400 + inYear
	if m < 10 {
		return year, m + 3, day
	}
	return year + 1, m - 9, day
}
