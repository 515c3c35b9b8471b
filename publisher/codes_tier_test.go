package publisher

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"edge/publisher/natstest"
)

// signer makes the keys and claims of one operator.
type signer struct {
	t        *testing.T
	operator nkeys.KeyPair
}

func (s *signer) pair(prefix nkeys.PrefixByte) (nkeys.KeyPair, string) {
	s.t.Helper()
	pair, err := nkeys.CreatePair(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		s.t.Fatal(err)
	}
	return pair, public
}

// claims is what jwt's claims have in common.
type claims interface {
	Encode(nkeys.KeyPair) (string, error)
}

func (s *signer) sign(by nkeys.KeyPair, c claims) string {
	s.t.Helper()
	text, err := c.Encode(by)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// user is the option that connects as a new user of an account.
func (s *signer) user(account nkeys.KeyPair) nats.Option {
	s.t.Helper()
	pair, public := s.pair(nkeys.PrefixByteUser)
	seed, err := pair.Seed()
	if err != nil {
		s.t.Fatal(err)
	}
	return nats.UserJWTAndSeed(s.sign(account, jwt.NewUserClaims(public)), string(seed))
}

// lostTier takes the tier of one replica from an account that has a stream in it. Only signed claims have tiers.
func lostTier(t *testing.T, proven map[int]bool) {
	s := &signer{t: t}
	var operatorKey string
	s.operator, operatorKey = s.pair(nkeys.PrefixByteOperator)
	system, systemKey := s.pair(nkeys.PrefixByteAccount)
	account, accountKey := s.pair(nkeys.PrefixByteAccount)
	tier := func(name string) string {
		c := jwt.NewAccountClaims(accountKey)
		c.Limits.JetStreamTieredLimits = jwt.JetStreamTieredLimits{name: {MemoryStorage: 1 << 20, DiskStorage: 1 << 20, Streams: 10, Consumer: 10}}
		return s.sign(s.operator, c)
	}
	srv := natstest.Start(t, natstest.Authorization(""), natstest.Extra(fmt.Sprintf(`
operator: %s
system_account: %s
resolver: { type: full, dir: %q }
resolver_preload: { %s: %s, %s: %s }`,
		s.sign(s.operator, jwt.NewOperatorClaims(operatorKey)), systemKey, t.TempDir(),
		systemKey, s.sign(s.operator, jwt.NewAccountClaims(systemKey)), accountKey, tier("R1"))))

	l := newLive(t, srv.Connect(t, s.user(account)), proven)
	l.stream(nil)
	if _, r := judge(l.answer(l.send(msg("x")))); r.Outcome != Accepted {
		t.Fatalf("with its tier: %v, %v", r.Outcome, r.Err)
	}
	m, err := srv.Connect(t, s.user(system)).Request("$SYS.REQ.CLAIMS.UPDATE", []byte(tier("R3")), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var update natsserver.ServerAPIClaimUpdateResponse
	if err := json.Unmarshal(m.Data, &update); err != nil || update.Error != nil {
		t.Fatalf("change the account: %v, %s", err, m.Data)
	}
	l.refuse(10120, Fatal, "tiered limit", msg("x"))
}
