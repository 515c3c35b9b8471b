package envelope

import (
	"errors"
	"strings"
	"testing"
)

// wantReason fails unless err is a RejectError with this reason, or nil for "".
func wantReason(t *testing.T, what any, err error, want Reason) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%q: %v", what, err)
		}
		return
	}
	var r *RejectError
	if !errors.As(err, &r) || r.Reason != want {
		t.Errorf("%q: want %s, got %v", what, want, err)
	}
}

func TestCheckSubject(t *testing.T) {
	f := func(subject string, want Reason) {
		t.Helper()
		wantReason(t, subject, CheckSubject([]byte(subject)), want)
	}
	f("a", "")
	f("edge.imu.r7", "")
	f("edge.imu.$r7", "") // only the first token is reserved
	f("edge._INBOX", "")
	f("edge.größe.日本", "")
	f("{a}", "")
	f(strings.Repeat("a", 256), "")
	f(strings.Repeat("a", 257), SubjectTooLong)
	f("", EmptyToken)
	f(".", EmptyToken)
	f(".a", EmptyToken)
	f("a.", EmptyToken)
	f("a..b", EmptyToken)
	f("a.*", BadToken)
	f("a.>", BadToken)
	f("a>b", BadToken)
	f("a*b.c", BadToken)
	f("a b", BadToken)
	f("a\tb", BadToken)
	f("a\r\nPUB x 0", BadToken)
	f("a\x00", BadToken)
	f("a\x7f", BadToken)
	f("a\u0085b", BadToken) // next line, a control character outside ASCII
	f("a\u00a0b", BadToken) // no-break space
	f("a\u2028b", BadToken)
	f("a.é*", BadToken)
	f("a.\xff", InvalidUTF8)
	f("$JS.API.STREAM.DELETE.EDGE", ReservedSubject)
	f("$SYS.x", ReservedSubject)
	f("$", ReservedSubject)
	f("_INBOX.x", ReservedSubject)
	f("_INBOX", ReservedSubject)
	f("_INBOX_sensors.x", ReservedSubject)
	f("_INBO", "")
	s := []byte("edge.imu.hall-3.r7")
	if n := testing.AllocsPerRun(100, func() { _ = CheckSubject(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCheckPattern(t *testing.T) {
	f := func(pattern string, want Reason) {
		t.Helper()
		wantReason(t, pattern, CheckPattern(pattern), want)
	}
	f("a", "")
	f("*", "")
	f(">", "")
	f("a.*.b.>", "")
	f("$JS.>", "")
	f("", EmptyToken)
	f("a.", EmptyToken)
	f("a..>", EmptyToken)
	f(">.a", BadToken)
	f("a.b*", BadToken)
	f("a.b>", BadToken)
	f("a.**", BadToken)
	f("a b", BadToken)
	f(strings.Repeat("a.", 128)+"a", SubjectTooLong)
}

func TestMatchSubject(t *testing.T) {
	f := func(pattern, subject string, want bool) {
		t.Helper()
		if got := MatchSubject(pattern, []byte(subject)); got != want {
			t.Errorf("MatchSubject(%q, %q) = %v", pattern, subject, got)
		}
	}
	f("a.b", "a.b", true)
	f("a.b", "a.c", false)
	f("a.b", "a", false)
	f("a.b", "a.b.c", false)
	f("a.*", "a.b", true)
	f("a.*", "a", false)
	f("a.*", "a.b.c", false)
	f("a.*.c", "a.b.c", true)
	f("*", "a", true)
	f("*", "a.b", false)
	f(">", "a", true)
	f(">", "a.b.c", true)
	f("a.>", "a", false)
	f("a.>", "a.b", true)
	f("a.>", "a.b.c", true)
	f("a.>", "b.b", false)
	f("*.>", "a.b", true)
	f("*.>", "a", false)
	f("a.b", "", false)
	f(">", "", false)
	f("A.b", "a.b", false)
	f("ab", "abc", false)
	f("abc", "ab", false)
}

func TestPatternCovers(t *testing.T) {
	// All subjects and patterns of up to three tokens over two letters: covering by definition against covering by rule.
	// One more letter and one more token stand for all names and depths that a pattern does not mention.
	var subjects, patterns []string
	grow := func(words []string, depth int) []string {
		all, level := []string{}, []string{""}
		for range depth {
			var next []string
			for _, p := range level {
				for _, w := range words {
					if s := strings.TrimPrefix(p+"."+w, "."); !strings.Contains(p, ">") {
						next = append(next, s)
					}
				}
			}
			all, level = append(all, next...), next
		}
		return all
	}
	subjects = grow([]string{"a", "b", "z"}, 4)
	patterns = grow([]string{"a", "b", "*", ">"}, 3)
	for _, outer := range patterns {
		if err := CheckPattern(outer); err != nil {
			t.Fatal(err)
		}
		for _, inner := range patterns {
			want := true
			for _, s := range subjects {
				want = want && (!MatchSubject(inner, []byte(s)) || MatchSubject(outer, []byte(s)))
			}
			if got := PatternCovers(outer, inner); got != want {
				t.Errorf("PatternCovers(%q, %q) = %v", outer, inner, got)
			}
		}
	}
	if len(patterns) < 50 || len(subjects) < 100 {
		t.Fatalf("%d patterns, %d subjects: the space is too small", len(patterns), len(subjects))
	}
}

func TestPatternsMeet(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		if PatternsMeet(a, b) != want || PatternsMeet(b, a) != want {
			t.Errorf("PatternsMeet(%q, %q) is not %v both ways", a, b, want)
		}
	}
	f("a.b", "a.b", true)
	f("a.b", "a.c", false)
	f("a.b", "a", false)
	f("a.*", "a.b", true)
	f("a.*", "*.b", true)
	f("a.*", "b.*", false)
	f("a.*", "a.*.c", false)
	f("a.>", "a", false)
	f("a.>", "a.b.c", true)
	f("a.>", "*.b.>", true)
	f("a.>", "b.>", false)
	f(">", "a", true)
}
