package publisher

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// servers is the list of addresses that a connection is tried at, in turns. It belongs to the goroutine of Run.
type servers struct {
	list  []server
	next  int
	named int // how many of them are configured; the others were announced
}

type server struct {
	url string
	// name is what the certificate must hold if it is not the host of url: servers announce bare addresses, and their
	// certificates name hosts.
	name string
}

// maxServers bounds the list: a cluster has a handful.
const maxServers = 64

func newServers(addresses string, first int) servers {
	var s servers
	for u := range strings.SplitSeq(addresses, ",") {
		s.list = append(s.list, server{url: strings.TrimSpace(u)})
	}
	s.named = len(s.list)
	s.next = first % len(s.list) // a fleet with one list does not crowd at its first address
	return s
}

// take gives the address of the next attempt.
func (s *servers) take() server {
	a := s.list[s.next%len(s.list)]
	s.next = (s.next + 1) % len(s.list)
	return a
}

// stay makes the address of the last attempt the next one as well: it worked.
func (s *servers) stay() { s.next = (s.next + len(s.list) - 1) % len(s.list) }

// move makes another address the next one: this one connects, and is of no use.
func (s *servers) move() { s.next = (s.next + 1) % len(s.list) }

// learn replaces the announced addresses by these, which are bare "host:port" or URLs as the client library gives them.
// They are spoken to as the first configured one is.
func (s *servers) learn(announced []string) {
	first, err := url.Parse(s.list[0].url)
	if err != nil {
		return // refused by the check of the configuration
	}
	at := s.list[s.next%len(s.list)].url
	s.list = s.list[:s.named]
	for _, text := range announced {
		host := text
		if _, rest, ok := strings.Cut(text, "://"); ok {
			host = rest
		}
		a := server{url: first.Scheme + "://" + host}
		if u, err := url.Parse(a.url); err != nil || u.Hostname() == "" || u.User != nil {
			continue
		} else if net.ParseIP(u.Hostname()) != nil && net.ParseIP(first.Hostname()) == nil {
			a.name = first.Hostname()
		}
		if len(s.list) < maxServers && !slices.ContainsFunc(s.list, func(b server) bool { return b.url == a.url }) {
			s.list = append(s.list, a)
		}
	}
	s.next = max(0, slices.IndexFunc(s.list, func(b server) bool { return b.url == at }))
}
