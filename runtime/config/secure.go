package config

import (
	"os"
	"runtime"
	"strings"
)

// checkCredentials refuses more than one way to say who we are, halves of one, and warns of what others can read.
func (w *walker) checkCredentials(at string, n *NATS, c *Config) {
	hasUser, hasPassword := w.given(at+".user"), w.given(at+".password")
	first := ""
	for _, key := range []string{"token", "user", "password", "creds_file", "nkey_file"} {
		switch {
		case !w.given(at + "." + key), key == "password" && first == "user":
		case first != "":
			w.failAt(at+"."+key, "%s: both %s and %s: keep one of token, user with password, creds_file and nkey_file", at, first, key)
		default:
			first = key
		}
	}
	switch {
	case hasUser && !hasPassword:
		w.failAt(at+".user", "%s: user without password: add it", at)
	case first == "password":
		w.failAt(at+".password", "%s: password without user: add it", at)
	}
	_, embedded := n.Embedded()
	for _, key := range []string{"creds_file", "nkey_file"} {
		if embedded && w.given(at+"."+key) {
			w.failAt(at+"."+key, "%s.%s: the embedded server knows a token only: remove it, or name a server", at, key)
		}
	}
	// The seeds of creds_file and nkey_file never cross the network: the server gets a signature.
	if (w.given(at+".token") || hasUser) && n.TLS == (TLS{}) && openURL(n.URL) {
		w.warn(c, at+".url", "a credential goes over the network in the clear: use tls://")
	}
	w.checkReaders(c, at+".creds_file", n.CredsFile)
	w.checkReaders(c, at+".nkey_file", n.NKeyFile)
	w.checkReaders(c, at+".tls.client_key", n.TLS.ClientKey)
}

func (w *walker) checkTLS(at string, n *NATS, c *Config) {
	if _, embedded := n.Embedded(); embedded && w.given(at+".tls") {
		w.failAt(at+".tls", "%s.tls: the embedded server is in this process and speaks no TLS: remove it, or name a server", at)
	}
	hasCert, hasKey := w.given(at+".tls.client_cert"), w.given(at+".tls.client_key")
	switch {
	case hasCert && !hasKey:
		w.failAt(at+".tls.client_cert", "%s.tls: client_cert without client_key: add it", at)
	case hasKey && !hasCert:
		w.failAt(at+".tls.client_key", "%s.tls: client_key without client_cert: add it", at)
	}
}

// checkReaders warns of a private file that others than its owner can read. Windows keeps that elsewhere.
func (w *walker) checkReaders(c *Config, path, file string) {
	if file == "" || runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		w.warn(c, path, "others than its owner may read the file (mode %04o): chmod 600", info.Mode().Perm())
	}
}

// checkStrict holds a strict binding against the publisher's rules: one subject, spelled out, and no other.
func (w *walker) checkStrict(at string, n *NATS) {
	if n.Binding != BindingStrict {
		return
	}
	switch {
	case !w.given(at + ".subject"):
		w.failAt(at+".binding", "%s.binding: a strict binding is to one subject: give it as subject", at)
	case strings.ContainsAny(n.Subject, "{}"):
		w.failAt(at+".subject", "%s.subject: a strict binding is to one subject without placeholders: spell it out, or write binding: template", at)
	case strings.ContainsFunc(n.Subject, func(r rune) bool { return r != '.' && (r > 0x7f || !nameByte(byte(r))) }):
		w.failAt(at+".subject", "%s.subject: a strict binding takes letters, digits, - and _ with dots between them", at)
	}
	if w.given(at + ".allow_subjects") {
		w.failAt(at+".allow_subjects", "%s.allow_subjects: a strict binding allows its subject only: remove it", at)
	}
}
