// This is the example module of ../c once more, in Go: the same events give the same bytes. Build it with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags="-s -w" -o envelope.wasm .
//
// and give it memory: a Go module brings its runtime and needs limits: { memory: 64MiB }. It is 1.9 MB against 10 KB,
// and takes about eight times as long for an event.
//
// The interface is in guest.go and exists only in a Wasm build. The rest is ordinary Go, so that it can be tested and
// debugged on any machine. To make your own module, change write in write.go.
package main
