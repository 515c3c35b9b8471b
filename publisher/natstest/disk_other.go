//go:build !linux

package natstest

import (
	"errors"
	"os"
)

func limitFileSize(*os.Process, int64) error {
	return errors.New("only linux limits a running process: run the test there")
}
