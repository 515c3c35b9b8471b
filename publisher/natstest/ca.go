package natstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// CA is an authority of a test's own. Its methods belong to the goroutine of the test.
type CA struct {
	t      testing.TB
	dir    string
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	issued int
}

// CertConfig is what a certificate says.
type CertConfig struct {
	Hosts    []string  // names and addresses that it is valid for; the first one is also its common name
	Client   bool      // it proves a client, else a server
	NotAfter time.Time // when it ends; zero for in a day
}

// NewCA makes an authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, dir: t.TempDir(), key: newKey(t)}
	tpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "natstest authority"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &ca.key.PublicKey, ca.key)
	if err != nil {
		t.Fatalf("natstest: make an authority: %v", err)
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatalf("natstest: make an authority: %v", err)
	}
	writePEM(t, ca.File(), "CERTIFICATE", der)
	return ca
}

// File is the authority's certificate in PEM form.
func (ca *CA) File() string { return filepath.Join(ca.dir, "ca.pem") }

// Option makes a plain client trust the authority, and nothing else. nats.ClientCert may come beside it.
func (ca *CA) Option() nats.Option { return nats.Secure(ca.config()) }

func (ca *CA) config() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Issue makes a certificate and its key, in two PEM files.
func (ca *CA) Issue(t testing.TB, cfg CertConfig) (certFile, keyFile string) {
	t.Helper()
	ca.issued++
	end := cfg.NotAfter
	if end.IsZero() {
		end = time.Now().Add(24 * time.Hour)
	}
	tpl := &x509.Certificate{
		SerialNumber: big.NewInt(int64(ca.issued) + 1), NotBefore: time.Now().Add(-12 * time.Hour), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if cfg.Client {
		tpl.ExtKeyUsage[0] = x509.ExtKeyUsageClientAuth
	}
	for i, h := range cfg.Hosts {
		if i == 0 {
			tpl.Subject.CommonName = h
		}
		if ip := net.ParseIP(h); ip != nil {
			tpl.IPAddresses = append(tpl.IPAddresses, ip)
		} else {
			tpl.DNSNames = append(tpl.DNSNames, h)
		}
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, tpl, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		t.Fatalf("natstest: issue a certificate: %v", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("natstest: issue a certificate: %v", err)
	}
	base := filepath.Join(ca.dir, strconv.Itoa(ca.issued))
	writePEM(t, base+".cert.pem", "CERTIFICATE", der)
	writePEM(t, base+".key.pem", "PRIVATE KEY", keyDER)
	return base + ".cert.pem", base + ".key.pem"
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("natstest: make a key: %v", err)
	}
	return key
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatalf("natstest: %v", err)
	}
}
