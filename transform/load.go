package transform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"edge/wasm"
)

// PinError says that a module file is not the one that the configuration pins.
type PinError struct {
	Path      string
	Want, Got string // SHA-256 in hex
}

func (e *PinError) Error() string {
	return fmt.Sprintf("load module %s: its sha256 is %s, the configuration pins %s: restore the pinned file or update sha256", e.Path, e.Got, e.Want)
}

// Load reads a module file, holds it against its pin (SHA-256 in hex; "" pins nothing) and has the engine
// admit and compile it. At most lim.Module bytes are read, however long the file is.
func Load(ctx context.Context, engine *wasm.Engine, path, pin string, lim wasm.Limits) (*wasm.Module, error) {
	code, err := readModule(path, lim.Module)
	if err != nil {
		return nil, err
	}
	if pin != "" {
		sum := sha256.Sum256(code)
		if got := hex.EncodeToString(sum[:]); !strings.EqualFold(got, pin) {
			return nil, &PinError{Path: path, Want: pin, Got: got}
		}
	}
	m, err := engine.Load(ctx, code, lim)
	if err != nil {
		return nil, fmt.Errorf("load module %s: %w", path, err)
	}
	return m, nil
}

func readModule(path string, limit int) ([]byte, error) {
	st, err := os.Stat(path) // before it is opened: opening a pipe waits for its writer
	if err != nil {
		return nil, fmt.Errorf("load module: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("load module %s: not a regular file: name the module's .wasm", path)
	}
	if st.Size() == 0 { // or a file of the kernel's, whose read may wait
		return nil, fmt.Errorf("load module %s: it is empty: build it again", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load module: %w", err)
	}
	defer f.Close()
	code, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("load module: %w", err)
	}
	if len(code) > limit {
		return nil, fmt.Errorf("load module %s: larger than the limit of %d bytes: strip its names and debug sections", path, limit)
	}
	return code, nil
}
