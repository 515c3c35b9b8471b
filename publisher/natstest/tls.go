package natstest

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
)

// transport is how a server speaks TLS; the zero value is not at all.
type transport struct {
	cert, key string // paths of PEM files
	ca        *CA    // who issues clients' certificates, nil if they need none
	first     bool   // TLS before the first line
}

// TLS makes the server ask for TLS, with this certificate. Its URL stays nats://. Connect accepts exactly this
// certificate, whatever is wrong with it; a plain client needs an option of the authority's.
func TLS(certFile, keyFile string) Option {
	return func(s *settings) { s.tls.cert, s.tls.key, s.tls.ca = certFile, keyFile, nil }
}

// MutualTLS is TLS for clients that have a certificate of ca. Connect gets itself one.
func MutualTLS(ca *CA, certFile, keyFile string) Option {
	return func(s *settings) { s.tls.cert, s.tls.key, s.tls.ca = certFile, keyFile, ca }
}

// HandshakeFirst, beside TLS or MutualTLS, makes the server wait for the handshake before its first line.
func HandshakeFirst() Option { return func(s *settings) { s.tls.first = true } }

func (tr *transport) on() bool { return tr.cert != "" }

// text is the configuration's tls block.
func (tr *transport) text() string {
	text := fmt.Sprintf("tls {\ncert_file: %q\nkey_file: %q\n", tr.cert, tr.key)
	if tr.ca != nil {
		text += fmt.Sprintf("ca_file: %q\nverify: true\n", tr.ca.File())
	}
	if tr.first {
		text += "handshake_first: true\n"
	}
	return text + "}\n"
}

// client is what the fixture itself connects with.
func (tr *transport) client() (*tls.Config, error) {
	text, err := os.ReadFile(tr.cert)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block", tr.cert)
	}
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // it may name another host or have expired: it is compared instead
		VerifyConnection: func(cs tls.ConnectionState) error {
			if !bytes.Equal(cs.PeerCertificates[0].Raw, block.Bytes) {
				return errors.New("natstest: the server has another certificate than it was given")
			}
			return nil
		},
	}
	if tr.ca != nil {
		pair, err := tls.LoadX509KeyPair(tr.ca.Issue(tr.ca.t, CertConfig{Hosts: []string{"natstest"}, Client: true}))
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// options are the fixture's own for a connection, none without TLS.
func (tr *transport) options() ([]nats.Option, error) {
	if !tr.on() {
		return nil, nil
	}
	cfg, err := tr.client()
	if err != nil {
		return nil, err
	}
	opts := []nats.Option{nats.Secure(cfg)}
	if tr.first {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	return opts, nil
}
