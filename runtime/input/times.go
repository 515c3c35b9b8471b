package input

import (
	"math"

	"edge/runtime/config"
)

// timeUnit is how a source writes its times.
type timeUnit uint8

const (
	rfc3339 timeUnit = iota
	unixSeconds
	unixMillis
	unixMicros
	unixNanos
)

// timeUnitOf reads the word of the configuration; "" is the default.
func timeUnitOf(format string) (timeUnit, bool) {
	switch format {
	case "", config.TimeRFC3339:
		return rfc3339, true
	case config.TimeUnix:
		return unixSeconds, true
	case config.TimeUnixMilli:
		return unixMillis, true
	case config.TimeUnixMicro:
		return unixMicros, true
	case config.TimeUnixNano:
		return unixNanos, true
	}
	return 0, false
}

// parse reads a time as nanoseconds since 1970 UTC; ok is false if it is none or lies outside of what 64 bits hold
// (1677 to 2262). Digits past the nanosecond are cut off, never rounded up.
func (u timeUnit) parse(s []byte) (ns int64, ok bool) {
	switch u {
	case unixSeconds:
		return parseDecimal(s, 9)
	case unixMillis:
		return parseDecimal(s, 6)
	case unixMicros:
		return parseDecimal(s, 3)
	case unixNanos:
		return parseDecimal(s, 0)
	}
	return parseRFC3339(s)
}

// parseDecimal reads a JSON number times ten to the shift, without ever being a float: 1.7e9 with shift 9 is exact.
func parseDecimal(s []byte, shift int) (int64, bool) {
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	i, digits := 0, 0
	point := -1 // where it stands
	for ; i < len(s); i++ {
		if c := s[i]; c >= '0' && c <= '9' {
			digits++
		} else if c == '.' && point < 0 {
			point = i
		} else {
			break
		}
	}
	mantissa, rest := s[:i], s[i:]
	if digits == 0 {
		return 0, false
	}
	if point >= 0 {
		shift -= len(mantissa) - point - 1
	}
	if len(rest) > 0 {
		exponent, ok := parseExponent(rest)
		if !ok {
			return 0, false
		}
		shift += exponent
	}
	// Digits that end below the nanosecond do not count.
	var n uint64
	left := digits + min(shift, 0) // digits that count
	for _, c := range mantissa {
		if c == '.' {
			continue
		}
		if left <= 0 {
			break
		}
		left--
		digit := uint64(c - '0')
		if n > (math.MaxInt64-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	for ; shift > 0 && n > 0; shift-- {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// parseExponent reads e+9.
func parseExponent(s []byte) (int, bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := false
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		negative = s[0] == '-'
		s = s[1:]
	}
	n, ok := number(s, 1, 4)
	if negative {
		n = -n
	}
	return n, ok
}

// number reads least to most digits and nothing else.
func number(s []byte, least, most int) (n int, ok bool) {
	if len(s) < least || len(s) > most {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// parseRFC3339 reads 2026-10-10T06:00:00.123456789+02:00. A leap second is no time here: there is no number for it.
func parseRFC3339(s []byte) (int64, bool) {
	if len(s) < len("2026-10-10T06:00:00Z") || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	var v [6]int
	for i, part := range [6][]byte{s[:4], s[5:7], s[8:10], s[11:13], s[14:16], s[17:19]} {
		var ok bool
		if v[i], ok = number(part, 2, 4); !ok {
			return 0, false
		}
	}
	year, month, day := v[0], v[1], v[2]
	if year < 1677 || year > 2262 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || v[3] > 23 || v[4] > 59 || v[5] > 59 {
		return 0, false
	}
	seconds := int64(daysSince1970(year, month, day))*86400 + int64(v[3]*3600+v[4]*60+v[5])
	s = s[19:]
	var nanos int64
	if s[0] == '.' {
		i := 1
		for scale := int64(100_000_000); i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			nanos += int64(s[i]-'0') * scale
			scale /= 10
		}
		if i == 1 {
			return 0, false
		}
		s = s[i:]
	}
	switch {
	case len(s) == 1 && s[0] == 'Z':
	case len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':':
		hours, ok1 := number(s[1:3], 2, 2)
		minutes, ok2 := number(s[4:6], 2, 2)
		if !ok1 || !ok2 || hours > 23 || minutes > 59 {
			return 0, false
		}
		offset := int64(hours*3600 + minutes*60)
		if s[0] == '-' {
			offset = -offset
		}
		seconds -= offset
	default:
		return 0, false
	}
	// From here on only the ends of the range can overflow.
	const most = math.MaxInt64 / 1_000_000_000
	if seconds >= most || seconds <= -most {
		return 0, false
	}
	return seconds*1_000_000_000 + nanos, true
}

func daysIn(year, month int) int {
	if month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0) {
		return 29
	}
	return [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
}

// daysSince1970 counts days of the Gregorian calendar, with March as the first month of a year so that the leap day
// is the last.
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year, month = year-1, month+12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}
