//go:build !wasip1

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, `This is a Wasm module, not a program. Build it with
  GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags="-s -w" -o envelope.wasm ./examples/modules/envelope/go`)
	os.Exit(2)
}
