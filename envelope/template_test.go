package envelope

import (
	"errors"
	"strings"
	"testing"
)

func TestParseTemplate(t *testing.T) {
	levels := []string{"site", "robot"}
	f := func(text, pattern string) {
		t.Helper()
		tpl, err := ParseTemplate(text, levels)
		if err != nil {
			t.Error(err)
			return
		}
		if tpl.Pattern() != pattern || tpl.String() != text {
			t.Errorf("%q: pattern %q, text %q", text, tpl.Pattern(), tpl)
		}
		wantReason(t, tpl.Pattern(), CheckPattern(tpl.Pattern()), "")
	}
	f("edge", "edge")
	f("edge.{dataset}.{robot}", "edge.*.*")
	f("{site}.x.{site}", "*.x.*")
	f("edge.größe", "edge.größe")
	f("edge.$x", "edge.$x")

	bad := func(text, say string) {
		t.Helper()
		_, err := ParseTemplate(text, levels)
		var te *TemplateError
		if !errors.As(err, &te) || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: want an error that says %q, got %v", text, say, err)
		}
	}
	bad("", "empty token")
	bad("a..b", "empty token")
	bad("a.", "empty token")
	bad("a.pre-{robot}", "one whole placeholder")
	bad("a.{robot}-x", "one whole placeholder")
	bad("a.{site}{robot}", "one whole placeholder")
	bad("a.{{robot}}", "one whole placeholder")
	bad("a.{robot", "one whole placeholder")
	bad("a.robot}", "one whole placeholder")
	bad("a.{", "one whole placeholder")
	bad("a.}", "one whole placeholder")
	bad("a.}{", "one whole placeholder")
	bad("a.{}", "there are {dataset}, {site}, {robot}")
	bad("a.{robt}", "there are {dataset}, {site}, {robot}")
	bad("a.{Robot}", "not known")
	bad("a.{site.robot}", "one whole placeholder")
	bad("a.*", "white space")
	bad("a.>", "white space")
	bad("a.b c", "white space")
	bad("a\n.b", "white space")
	bad("a.\xff", "must not")
	bad("$JS.{robot}", "belong to the server")
	bad("_INBOX.{robot}", "belong to the server")
	bad(strings.Repeat("a", 257), "the limit is 256")
}

func TestPatternOf(t *testing.T) {
	f := func(text, dataset, want string) {
		t.Helper()
		tpl, err := ParseTemplate(text, []string{"robot"})
		if err != nil {
			t.Fatal(err)
		}
		if got := tpl.PatternOf(dataset); got != want || !PatternCovers(tpl.Pattern(), got) {
			t.Errorf("%q for %q: %q", text, dataset, got)
		}
	}
	f("edge.{dataset}.{robot}", "imu", "edge.imu.*")
	f("{dataset}.{dataset}", "imu", "imu.imu")
	f("edge.{robot}", "imu", "edge.*")
	f("edge", "imu", "edge")
}

func TestAppendSubject(t *testing.T) {
	f := func(text, dataset, robot, want string, reason Reason) {
		t.Helper()
		tpl, err := ParseTemplate(text, []string{"site", "robot"})
		if err != nil {
			t.Fatal(err)
		}
		e := &Event{Dataset: []byte(dataset), Identity: levels("robot", robot)}
		got, err := tpl.AppendSubject([]byte("x"), e)
		wantReason(t, text+" "+dataset+" "+robot, err, reason)
		if string(got) != "x"+want {
			t.Errorf("%q: %q", text, got)
		}
		if err == nil {
			wantReason(t, got, CheckSubject(got[1:]), "")
		}
	}
	f("edge.{dataset}.{robot}", "imu", "r7", "edge.imu.r7", "")
	f("edge", "", "", "edge", "")
	f("{robot}.{robot}", "", "ü", "ü.ü", "")
	f("edge.{robot}", "", "$JS", "edge.$JS", "")
	f("edge.{robot}", "imu", "", "", EmptyToken)
	f("edge.{site}", "imu", "r7", "", EmptyToken) // the event has no such level
	f("edge.{dataset}", "", "r7", "", EmptyToken)
	f("edge.{robot}", "imu", "r.7", "", BadToken)
	f("edge.{robot}", "imu", "*", "", BadToken)
	f("edge.{robot}", "imu", "r7\r\n", "", BadToken)
	f("edge.{robot}", "imu", "r\xff", "", InvalidUTF8)
	f("{robot}.API", "imu", "$JS", "", ReservedSubject)
	f("{robot}.x", "imu", "_INBOX", "", ReservedSubject)
	f("edge.{robot}", "imu", strings.Repeat("r", 251), "edge."+strings.Repeat("r", 251), "")
	f("edge.{robot}", "imu", strings.Repeat("r", 252), "", SubjectTooLong)
	f("edge.{robot}.x", "imu", strings.Repeat("r", 250), "", SubjectTooLong)
	f("edge.{robot}.{robot}", "imu", strings.Repeat("r", 200), "", SubjectTooLong)

	tpl, err := ParseTemplate("edge.{dataset}.{site}.{robot}", []string{"site", "robot"})
	if err != nil {
		t.Fatal(err)
	}
	e, buf := sample(), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { buf, _ = tpl.AppendSubject(buf[:0], e) }); n != 0 || len(buf) == 0 {
		t.Errorf("%v allocations, %q", n, buf)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("edge.{dataset}.{robot}", "imu", "r7")
	f.Add("a.pre-{robot}", "", "")
	f.Add("{robot}", "", "$JS")
	f.Add("{", "\xff", "é")
	f.Add("a.{site}", "a.b", "*")
	f.Fuzz(func(t *testing.T, text, dataset, robot string) {
		tpl, err := ParseTemplate(text, []string{"robot"})
		if err != nil {
			return
		}
		if err := CheckPattern(tpl.Pattern()); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got, err := tpl.AppendSubject(nil, &Event{Dataset: []byte(dataset), Identity: levels("robot", robot)})
		if err != nil {
			return
		}
		if err := CheckSubject(got); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if !MatchSubject(tpl.Pattern(), got) {
			t.Fatalf("%q is not one of %q", got, tpl.Pattern())
		}
	})
}
