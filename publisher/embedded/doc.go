// Package embedded runs a nats-server with JetStream inside this process, for the case that there is none yet: a
// quickstart, a bench, a robot without a broker of its own.
//
// What it promises: it listens on loopback only; Start returns when JetStream takes requests, with streams of earlier
// runs recovered; Close stops it and returns when its files are written.
//
// What it does not: it shares memory, collector and fate with the process. It is no faster than a server beside it
// (46,000 to 53,000 events a second on 2 cores either way). A power cut may cost what was stored within SyncInterval,
// a killed process costs nothing that was acknowledged.
package embedded
