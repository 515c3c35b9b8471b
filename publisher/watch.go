package publisher

import (
	"context"
	"crypto/sha256"
	"time"
)

// lookEvery is how often files of credentials are looked at while something is to be mended. Reading them is surer than
// watching: files are replaced through links and across file systems, and some of those tell nobody.
const lookEvery = time.Second

// fingerprint sums up the contents of files. One that cannot be read counts with its error, so that its return is a
// change too.
func fingerprint(files []string) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		b, err := readSmall(f)
		if err != nil {
			b = []byte(err.Error())
		}
		sum := sha256.Sum256(b)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// pause waits for d, or until a file is not what it was, or until one of the channels says that there is no point in
// waiting. It tells whether to go on, which it does not when ctx has ended.
func (p *Publisher) pause(ctx context.Context, d time.Duration, was [sha256.Size]byte, ended <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var look <-chan time.Time
	files := p.cfg.files()
	if len(files) > 0 {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		look = tick.C
	}
	for {
		select {
		case <-timer.C:
			return true
		case <-look:
			if fingerprint(files) != was {
				p.cfg.Logger.Info("credentials or certificates have changed: trying again", "stream", p.cfg.Stream)
				return true
			}
		case <-ended:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
