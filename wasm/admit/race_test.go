//go:build race

package admit

// underRace says that the race detector slows the compiler down tenfold; nothing here runs concurrently.
const underRace = true
