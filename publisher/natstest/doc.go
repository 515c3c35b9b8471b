// Package natstest gives tests a real nats-server: a process of its own, built from the version in go.mod, on
// loopback, with JetStream, a random token and a data folder that the test throws away.
//
//	srv := natstest.Start(t)
//	nc := srv.Connect(t)
//	srv.Kill()    // kill -9
//	srv.Restart() // same port, token and data
//
// What it promises: Start returns when the server takes connections and JetStream is up; everything is stopped and
// awaited when the test ends, and on Linux also when the test binary dies; a server that can not be built or started
// fails the test with the server's own log, and nothing is ever skipped.
//
// NewProxy puts something between client and server that eats acknowledgements, cuts, refuses, stalls and delays:
//
//	p := natstest.NewProxy(t, srv.Addr)
//	p.EatAcks(func(n int, _ []byte) bool { return n == 1 }) // the server has stored it, and nobody hears of it
//
// StartCluster starts several servers that replicate streams among them:
//
//	c := natstest.StartCluster(t, 3)
//	js := c.JetStream(t)
//	c.Leader(t, "ORDERS").Kill() // the others elect a new one, which takes them seconds
//
// NewCA issues certificates for TLS, MutualTLS and HandshakeFirst, also wrong and expired ones. NewOperator has accounts
// and users known by signed claims, with credentials files that expire or are revoked, and NKeyUser a user known by a key:
//
//	ca := natstest.NewCA(t)
//	cert, key := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}})
//	srv := natstest.Start(t, natstest.TLS(cert, key))
//
// LimitFileSize stands in for a full disk. It is a limit of the process, because mounting a small disk needs rights that
// not every machine gives.
//
// Connect works without options on all of these, but not with Authorization, and trusts exactly what the server was
// given, so that a test can look at a stream whatever is wrong with the certificate that it is about.
//
// What it does not: routes of a cluster are in the clear, Pause and Reload need a Unix system, and LimitFileSize Linux.
//
// The binary is kept in the user's cache folder under the server's and Go's version, so only the first test run on a
// machine pays for the build. The server syncs every write (sync_interval: always), because tests that kill it ask
// what survives; that makes it slow (a few thousand messages a second), which a test about speed should override with
// SyncInterval.
package natstest
