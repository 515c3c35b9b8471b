package publisher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// maxSmall bounds a file of credentials or certificates, in bytes.
const maxSmall = 1 << 20

// readSmall reads a file that a person has named. It refuses what is no regular file, because opening a pipe waits for
// its writer.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(b) > maxSmall {
		err = fmt.Errorf("it is larger than %d bytes", maxSmall)
	}
	return b, err
}

// checkCredentials refuses more than one way to say who we are.
func (c *Config) checkCredentials(bad func(field, format string, args ...any)) {
	first := ""
	for _, way := range []struct {
		field string
		given bool
	}{
		{"token", c.Token != ""}, {"token", c.TokenFile != ""},
		{"user", c.User != "" || c.Password != "" || c.PasswordFile != ""},
		{"creds_file", c.CredsFile != ""}, {"nkey_file", c.NKeyFile != ""},
	} {
		switch {
		case way.given && first != "":
			bad(way.field, "it excludes %s: give one of token, user with password, creds_file and nkey_file", first)
		case way.given:
			first = way.field
		}
	}
	if (c.Password != "" || c.PasswordFile != "") && c.User == "" {
		bad("user", "there is a password but no user")
	}
	if c.Password != "" && c.PasswordFile != "" {
		bad("password", "it is given twice, as it is and as a file: keep one")
	}
}

// secret tells whether a secret as such crosses the wire. The seeds of nkeys do not: the server gets a signature.
func (c *Config) secret() bool {
	return c.Token != "" || c.TokenFile != "" || c.Password != "" || c.PasswordFile != ""
}

// files are all files that a connection depends on. A change of one is worth a new attempt.
func (c *Config) files() []string {
	all := append(c.TLS.files(), c.TokenFile, c.PasswordFile, c.CredsFile, c.NKeyFile)
	var named []string
	for _, f := range all {
		if f != "" {
			named = append(named, f)
		}
	}
	return named
}

// credentials reads what is in files and returns the options that say who we are. The error is a *FatalError that
// names the field; no secret is in it.
func (c *Config) credentials(now time.Time) ([]nats.Option, error) {
	fatal := func(field, file string, err error, fix string) error {
		return &FatalError{Code: CodeCredentials, Field: field, Detail: "read " + file, Err: err, Fix: fix}
	}
	token, password := c.Token, c.Password
	for _, from := range []struct {
		field, file string
		to          *string
	}{{"token", c.TokenFile, &token}, {"password", c.PasswordFile, &password}} {
		if from.file == "" {
			continue
		}
		b, err := readSmall(from.file)
		if b = bytes.TrimRight(b, "\r\n"); err == nil && len(b) == 0 {
			err = errors.New("it is empty") // without it we would be nobody, whom some servers let in
		}
		if err != nil {
			return nil, fatal(from.field, from.file, err, "give a file that holds the "+from.field+" and nothing else")
		}
		*from.to = string(b)
	}
	switch {
	case token != "":
		return []nats.Option{nats.Token(token)}, nil
	case c.User != "":
		return []nats.Option{nats.UserInfo(c.User, password)}, nil
	case c.NKeyFile != "":
		key, err := readSeed(c.NKeyFile)
		if err != nil {
			return nil, fatal("nkey_file", c.NKeyFile, err, "give a file with the seed of a user's nkey, which begins with SU")
		}
		public, err := key.PublicKey()
		if err != nil {
			return nil, fatal("nkey_file", c.NKeyFile, err, "give a file with the seed of a user's nkey, which begins with SU")
		}
		return []nats.Option{nats.Nkey(public, key.Sign)}, nil
	case c.CredsFile != "":
		return c.userJWT(now)
	}
	return nil, nil
}

// userJWT reads the credentials file. One that is over is told apart here, because the server only says
// "authorization violation".
func (c *Config) userJWT(now time.Time) ([]nats.Option, error) {
	const fix = "give the file that the account's administrator made for this user (nsc, or nats auth)"
	fatal := func(err error, fix string) error {
		return &FatalError{Code: CodeCredentials, Field: "creds_file", Detail: "read " + c.CredsFile, Err: err, Fix: fix}
	}
	b, err := readSmall(c.CredsFile)
	if err != nil {
		return nil, fatal(err, fix)
	}
	token, err := nkeys.ParseDecoratedJWT(b)
	if err != nil {
		return nil, fatal(err, fix)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return nil, fatal(err, fix)
	}
	if claims.Expires > 0 && claims.Expires <= now.Unix() {
		end := time.Unix(claims.Expires, 0).UTC()
		return nil, fatal(fmt.Errorf("the JWT of user %q expired at %s", claims.Name, end.Format(time.RFC3339)),
			"replace the file by a new one (it is read again), or correct this machine's clock")
	}
	key, err := nkeys.ParseDecoratedUserNKey(b)
	if err != nil {
		return nil, fatal(err, fix)
	}
	return []nats.Option{nats.UserJWT(func() (string, error) { return token, nil }, key.Sign)}, nil
}

// readSeed reads the file of an nkey, which may hold decoration around the seed.
func readSeed(path string) (nkeys.KeyPair, error) {
	b, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	return nkeys.ParseDecoratedUserNKey(b)
}
