package publisher

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// TLS is how the connection is secured. Files are PEM and are read again at each connection. The oldest version spoken
// is TLS 1.2. There is no way to switch the check of the server's certificate off.
type TLS struct {
	CAFile   string // who may sign the server's certificate; "" for the system's authorities
	CertFile string // our own certificate for mutual TLS, with KeyFile
	KeyFile  string
	First    bool // shake hands before the server's first line, as a server with handshake_first expects
}

// wanted tells whether TLS was asked for, whatever the address says.
func (t *TLS) wanted() bool { return *t != TLS{} }

func (t *TLS) check(bad func(field, format string, args ...any)) {
	if (t.CertFile == "") != (t.KeyFile == "") {
		bad("tls", "a client certificate and its key belong together: give client_cert and client_key, or none")
	}
}

// files are those that config reads.
func (t *TLS) files() []string { return []string{t.CAFile, t.CertFile, t.KeyFile} }

// config reads the files. The error is a *FatalError that names the field.
func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := readSmall(t.CAFile)
		if err == nil {
			c.RootCAs = x509.NewCertPool()
			if !c.RootCAs.AppendCertsFromPEM(pem) {
				err = errors.New("it holds no certificate in PEM form")
			}
		}
		if err != nil {
			return nil, &FatalError{Code: CodeTLS, Field: "tls.ca_file", Detail: "read " + t.CAFile, Err: err,
				Fix: "give the certificate of the authority that signed the server's"}
		}
	}
	if t.CertFile != "" {
		cert, err := readSmall(t.CertFile)
		key, keyErr := readSmall(t.KeyFile)
		certificate := tls.Certificate{}
		if err = errors.Join(err, keyErr); err == nil {
			certificate, err = tls.X509KeyPair(cert, key)
		}
		if err != nil {
			return nil, &FatalError{Code: CodeTLS, Field: "tls.client_cert", Detail: fmt.Sprintf("read %s with %s", t.CertFile, t.KeyFile), Err: err,
				Fix: "give a certificate and the key that belongs to it, both in PEM form"}
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	return c, nil
}

// trouble turns what went wrong in or around a handshake into a *FatalError with the exact mismatch, or nil if err
// is about something else.
func (t *TLS) trouble(address string, err error) *FatalError {
	fatal := func(field, fix string) *FatalError {
		return &FatalError{Code: CodeTLS, Field: field, Detail: "secure the connection to " + address, Err: err, Fix: fix}
	}
	var (
		host    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	text := err.Error()
	switch {
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fatal("url", "the server offers no TLS: use nats://, or configure TLS on the server")
	case errors.As(err, &host):
		return fatal("url", fmt.Sprintf("the certificate is for %s: use such an address, or give the server a certificate for %s", holders(host.Certificate), host.Host))
	case errors.As(err, &unknown):
		if t.CAFile != "" {
			return fatal("tls.ca_file", "the authority in "+t.CAFile+" did not sign the server's certificate: name the one that did")
		}
		return fatal("tls.ca_file", "name the certificate of the authority that signed the server's: this system does not know it")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fatal("url", fmt.Sprintf("renew the server's certificate (valid from %s to %s) or correct this machine's clock",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339)))
	case errors.As(err, &invalid):
		return fatal("url", "give the server a certificate that may be used for a server")
	case errors.As(err, &record):
		return fatal("tls.first", "the server does not speak TLS first: set first to false, or handshake_first on the server")
	case strings.Contains(text, "protocol version not supported"), strings.Contains(text, "unsupported protocol version"):
		return fatal("url", "let the server speak TLS 1.2 or newer")
	case errors.As(err, &alert), strings.Contains(text, "remote error: tls: "), strings.Contains(text, "closed by remote after TLS handshake"):
		if t.CertFile != "" {
			return fatal("tls.client_cert", "the server does not trust "+t.CertFile+": give a client certificate of an authority that it trusts, and look at its log")
		}
		return fatal("tls.client_cert", "the server asks for a client certificate: give one that it trusts, and look at its log")
	}
	return nil
}

// holders lists the names and addresses that a certificate is for.
func holders(c *x509.Certificate) string {
	list := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	if len(list) == 0 {
		return "nobody"
	}
	return strings.Join(list, ", ")
}

// exposed tells whether credentials would cross a network in the clear. A server may still ask for TLS; what it does is
// known only when the credentials are on their way.
func (c *Config) exposed() bool {
	if !c.secret() || c.TLS.wanted() {
		return false
	}
	for _, text := range strings.Split(c.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || u.Scheme != "nats" && u.Scheme != "ws" {
			continue
		}
		if c.DiscoveredServers { // whatever address they announce is spoken to in the same way
			return true
		}
		if u.Hostname() == "localhost" {
			continue
		}
		if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
			return true
		}
	}
	return false
}
