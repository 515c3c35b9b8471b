package publisher

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	f := func(change func(c *Config), fields ...string) {
		t.Helper()
		c := Config{URL: "nats://127.0.0.1:4222", Stream: "EDGE", Subjects: []string{"edge.*.>"}}
		change(&c)
		p, err := New(c)
		var got []string
		for _, e := range unjoin(err) {
			var ce *ConfigError
			if !errors.As(e, &ce) || strings.Contains(e.Error(), "s3cret") {
				t.Errorf("%v is no *ConfigError, or tells a secret", e)
				continue
			}
			got = append(got, ce.Field)
		}
		if !slices.Equal(got, fields) || (p == nil) != (err != nil) {
			t.Errorf("%+v: %v, want errors in %v", c, err, fields)
		}
	}
	f(func(c *Config) {})
	f(func(c *Config) { c.URL = "tls://a:1, nats://b, wss://c/d" })
	f(func(c *Config) { c.URL = "" }, "url")
	f(func(c *Config) { c.URL = "nats://127.0.0.1:4222," }, "url")
	f(func(c *Config) { c.URL = "nats://s3cret@127.0.0.1" }, "url")
	f(func(c *Config) { c.URL = "nats://u:s3cret@%%" }, "url")
	f(func(c *Config) { c.URL = "http://127.0.0.1" }, "url")
	f(func(c *Config) { c.URL = "127.0.0.1:4222" }, "url")
	f(func(c *Config) { c.URL = "embedded://" }, "url")
	f(func(c *Config) { c.URL = "nats://" }, "url")
	f(func(c *Config) { c.Stream = "" }, "stream")
	f(func(c *Config) { c.Stream = strings.Repeat("S", 128) })
	f(func(c *Config) { c.Stream = strings.Repeat("S", 129) }, "stream")
	f(func(c *Config) { c.Stream = "a.b" }, "stream")
	f(func(c *Config) { c.Stream = `a"b` }, "stream")
	f(func(c *Config) { c.Stream = "größe" }, "stream")
	f(func(c *Config) { c.Subjects = nil })
	f(func(c *Config) { c.Subjects = nil; c.CreateStream = true }, "create_stream")
	f(func(c *Config) { c.Subjects = []string{"a", "b..c", "$JS.>"} }, "subject", "subject")
	f(func(c *Config) { c.Token = "s3cret" })
	f(func(c *Config) { c.Subjects, c.Strict = []string{"edge.imu.r7"}, true })
	f(func(c *Config) { c.Subjects, c.Strict = []string{"edge.*.r7"}, true }, "subject")
	f(func(c *Config) { c.Subjects, c.Strict = []string{"edge.ü"}, true }, "subject")
	f(func(c *Config) { c.Subjects, c.Strict = []string{"a", "b"}, true }, "subject")
	f(func(c *Config) { c.Strict, c.MaxInFlight = true, 1025; c.Subjects = []string{"a"} }, "max_in_flight")
	f(func(c *Config) { c.CredsFile, c.NKeyFile = "a", "b" }, "nkey_file")
	f(func(c *Config) { c.Token, c.TokenFile = "a", "b" }, "token")
	f(func(c *Config) { c.PasswordFile = "a" }, "user")
	f(func(c *Config) { c.User, c.Password, c.PasswordFile = "u", "a", "b" }, "password")
	f(func(c *Config) { c.TLS.CertFile = "a" }, "tls")
	f(func(c *Config) { c.MessageTTL = 1500 * time.Millisecond }, "message_ttl")
	f(func(c *Config) { c.MessageTTL = -time.Second }, "message_ttl")
	f(func(c *Config) { c.Mode = 9 }, "publish_mode")
	f(func(c *Config) { c.Token, c.User, c.Password = "s3cret", "u", "s3cret" }, "user")
	f(func(c *Config) { c.Password = "s3cret" }, "user")
	f(func(c *Config) { c.RequestTimeout = -1 }, "request_timeout")
	f(func(c *Config) { c.RequestTimeout = 301 * time.Second }, "request_timeout")
	f(func(c *Config) { c.DuplicateWindow = 99 * time.Millisecond }, "duplicate_window")
	f(func(c *Config) { c.MaxInFlight = -1 }, "max_in_flight")
	f(func(c *Config) { c.MaxInFlight = 65537 }, "max_in_flight")
	f(func(c *Config) { c.MaxInFlightBytes = -1 }, "max_in_flight_bytes")
	f(func(c *Config) { c.URL, c.Stream, c.MaxInFlight = "", "", -1 }, "url", "stream", "max_in_flight")
}

func unjoin(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func TestExposed(t *testing.T) {
	f := func(url, token string, want bool) {
		t.Helper()
		if c := (Config{URL: url, Token: token}); c.exposed() != want {
			t.Errorf("%s with token %q: %v", url, token, !want)
		}
	}
	f("nats://10.0.0.1", "t", true)
	f("nats://nats.example:4222", "t", true)
	f("tls://a, nats://b", "t", true)
	f("ws://b", "t", true)
	f("nats://10.0.0.1", "", false)
	f("tls://10.0.0.1", "t", false)
	f("wss://10.0.0.1", "t", false)
	f("nats://127.0.0.1:1", "t", false)
	f("nats://[::1]:1", "t", false)
	f("nats://localhost", "t", false)
}

func TestInboxPrefix(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := inboxPrefix(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
	f("edge", "_INBOX.edge")
	f("edge r.7 *>ü", "_INBOX.edge_r_7_____")
	f(strings.Repeat("n", 99), "_INBOX."+strings.Repeat("n", 64))
}

func TestCheckStream(t *testing.T) {
	f := func(change func(i *streamInfo), code string, warnings int) {
		t.Helper()
		cfg := Config{Stream: "S", Subjects: []string{"a.*", "b"}}
		info := &streamInfo{Config: newStream(&Config{Stream: "S", Subjects: []string{"a.>", "b"}, DuplicateWindow: time.Minute})}
		change(info)
		p, err := checkStream(&cfg, info)
		if code != "" {
			var fe *FatalError
			if !errors.As(err, &fe) || fe.Code != code || fe.Fix == "" || !strings.Contains(err.Error(), `"S"`) {
				t.Errorf("%v, want %s", err, code)
			}
			return
		}
		if err != nil || !p.Verified || len(p.Warnings) != warnings {
			t.Errorf("%+v, %v, want %d warnings", p, err, warnings)
		}
	}
	f(func(i *streamInfo) {}, "", 0)
	f(func(i *streamInfo) { i.Config.Name = "T" }, CodeMissing, 0)
	f(func(i *streamInfo) { i.Config.Mirror = []byte(`{"name":"T"}`) }, CodeMirror, 0)
	f(func(i *streamInfo) { i.Config.Mirror = []byte(`null`) }, "", 0)
	f(func(i *streamInfo) { i.Config.Sealed = true }, CodeSealed, 0)
	f(func(i *streamInfo) { i.Config.NoAck = true }, CodeNoAck, 0)
	f(func(i *streamInfo) { i.Config.Storage = "memory" }, CodeStorage, 0)
	f(func(i *streamInfo) { i.Config.Subjects = []string{"a.*"} }, CodeSubjects, 0)
	f(func(i *streamInfo) { i.Config.Subjects = []string{"a.x", "b"} }, CodeSubjects, 0)
	f(func(i *streamInfo) { i.Config.Subjects = []string{">"} }, "", 0)
	f(func(i *streamInfo) { i.Config.PersistMode = "async" }, "", 1)
	f(func(i *streamInfo) { i.Config.Retention = "interest" }, "", 1)
	f(func(i *streamInfo) { i.Config.Discard = "old" }, "", 0)
	f(func(i *streamInfo) { i.Config.Discard, i.Config.MaxBytes = "old", 1 }, "", 1)

	class := func(window time.Duration, want string) {
		t.Helper()
		info := &streamInfo{Config: newStream(&Config{Stream: "S", DuplicateWindow: window})}
		if p, err := checkStream(&Config{Stream: "S"}, info); err != nil || p.DeliveryClass != want {
			t.Errorf("window %v: %q, %v", window, p.DeliveryClass, err)
		}
	}
	class(time.Minute, IdempotentBatch)
	class(0, AtLeastOnce)
}
