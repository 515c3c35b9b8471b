package publisher

import (
	"strings"
	"testing"
	"time"

	"edge/publisher/natstest"
)

// TestBrokerDiskFull has the server's store refuse every write, as on a full disk: there is no answer to anything on that
// stream any more. The status names the likely cause, and after the server's restart all is stored once.
func TestBrokerDiskFull(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, func(c *Config) { eager(c); c.RequestTimeout = 500 * time.Millisecond })
	r.ready()
	r.one(message(1, "e.1"), Accepted)
	srv.LimitFileSize(1)
	s := r.publishUntil("trouble", func(s Status) bool { return strings.Contains(s.Trouble, "disk") })
	if s.State != Ready || s.Fatal != nil {
		t.Errorf("%+v", s)
	}
	srv.UnlimitFileSize()
	srv.Kill() // it mends nothing before that
	srv.Restart()
	r.until("a new connection", func(s Status) bool { return s.State == Ready && s.Counters.Reconnects == 1 })
	if s := r.p.Status(); s.Trouble != "" {
		t.Errorf("%+v", s)
	}
	if x := r.one(message(1, "e.1"), Accepted); !x.Duplicate {
		t.Errorf("%+v", x)
	}
	r.one(message(2, "e.1"), Accepted)
}
