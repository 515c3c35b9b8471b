package envelope

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
)

func TestParseID(t *testing.T) {
	f := func(s string, want bool) {
		t.Helper()
		id, ok := ParseID([]byte(s))
		if ok != want {
			t.Errorf("ParseID(%q) = %v", s, ok)
		}
		if ok && id.String() != strings.ToLower(s) {
			t.Errorf("ParseID(%q) reads %s", s, id)
		}
	}
	f("0123456789abcdef0011223344556677", true)
	f("0123456789ABCDEF0011223344556677", true)
	f("0123456789ABCDEf0011223344556677", true)
	f("00000000000000000000000000000001", true)
	f("00000000000000000000000000000000", false) // the zero ID is none
	f("", false)
	f("0123456789abcdef001122334455667", false)
	f("0123456789abcdef00112233445566778", false)
	f("0123456789abcdeg0011223344556677", false)
	f("01234567-89ab-cdef-0011-2233445566", false)
	f(" 0123456789abcdef001122334455667", false)
}

func TestHashID(t *testing.T) {
	// The form is for ever: a changed hash would publish everything again under new ids.
	want := sha256.Sum256([]byte("\x03\x00\x00\x00\x00\x00\x00\x00imu\x02\x00\x00\x00\x00\x00\x00\x0017"))
	if got := HashID("imu", []byte("17")); got != ID(want[:16]) {
		t.Errorf("HashID = %s, want %x", got, want[:16])
	}
	seen := map[ID]string{}
	f := func(input, value string) {
		t.Helper()
		id := HashID(input, []byte(value))
		if id != HashID(input, []byte(value)) {
			t.Errorf("HashID(%q, %q) is not stable", input, value)
		}
		if was, ok := seen[id]; ok {
			t.Errorf("(%q, %q) has the id of %s", input, value, was)
		}
		seen[id] = input + "|" + value
	}
	f("", "")
	f("a", "")
	f("", "a")
	f("ab", "c")
	f("a", "bc")
	f("imu", strings.Repeat("x", 10_000))
	f("imu", strings.Repeat("x", 10_001))
	v := []byte("17")
	if n := testing.AllocsPerRun(100, func() { HashID("imu", v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// positionOne was computed by another program from the definition in PositionID.
const positionOne = "0102030405060708f04979afb5c9650f"

func TestPositionID(t *testing.T) {
	epoch := [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	// The form is for ever, as above.
	if got := PositionID(epoch, 1).String(); got != positionOne {
		t.Errorf("PositionID(epoch, 1) = %s, want %s", got, positionOne)
	}
	seen := map[ID]uint64{}
	ones := 0
	for i := range uint64(200_000) {
		seq := i
		if i >= 100_000 {
			seq = -i // the far end
		}
		id := PositionID(epoch, seq)
		if was, ok := seen[id]; ok {
			t.Fatalf("%d and %d have the same id", was, seq)
		}
		seen[id] = seq
		for b := range 64 {
			ones += int(id[8+b/8] >> (b % 8) & 1)
		}
	}
	if share := float64(ones) / (64 * 200_000); share < 0.49 || share > 0.51 {
		t.Errorf("a share of %.3f of the bits is set: ids do not look random", share)
	}
	if a, b := PositionID(epoch, 1), PositionID([16]byte{}, 1); a == b {
		t.Error("the epoch does not matter")
	}
}

func TestAppendMsgID(t *testing.T) {
	id := ID{0xab, 15: 1}
	f := func(copy int, want string) {
		t.Helper()
		if got := AppendMsgID([]byte("x"), id, copy); string(got) != "x"+want {
			t.Errorf("copy %d: %q", copy, got)
		}
	}
	f(0, "ab000000000000000000000000000001")
	f(1, "ab000000000000000000000000000001-1")
	f(12345, "ab000000000000000000000000000001-12345")
	if !bytes.Equal(AppendID(nil, id), []byte(id.String())) {
		t.Error("AppendID and String differ")
	}
}
