package wasm

import (
	"fmt"
	"os"
)

// privateDir makes dir if it is missing, and refuses one whose files others could have written.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	return checkOwner(dir, st)
}
