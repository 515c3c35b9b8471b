package wasm

import "bytes"

// Levels of a guest's log lines, as edge.log takes them; what lies outside counts as the nearest.
const (
	LogDebug = iota
	LogInfo
	LogWarn
	LogError
)

const (
	lineBytes   = 1 << 10 // of a line; the rest is cut
	linesPerRun = 16
	saidBytes   = 200 // of a line that becomes part of a fault
)

// guestLog passes a guest's lines on, within a budget.
type guestLog struct {
	emit    func(level int, text []byte) // may be nil
	left    int                          // lines of this run
	dropped uint64                       // lines beyond the budget, since the beginning
	parts   [2]partLine                  // of what is written to descriptors 1 and 2
	said    []byte                       // the run's first line to descriptor 2, cut: what a runtime says before it dies
}

type partLine struct {
	buf [lineBytes]byte
	n   int
}

// begin starts a run's budget.
func (l *guestLog) begin() { l.left, l.said = linesPerRun, l.said[:0] }

// line passes one line on. text is the guest's memory: it is read here and now.
func (l *guestLog) line(level int, text []byte) {
	if l.left == 0 {
		l.dropped++
		return
	}
	l.left--
	if l.emit != nil {
		l.emit(min(max(level, LogDebug), LogError), text[:min(len(text), lineBytes)])
	}
}

// write takes a piece of what a language runtime writes to its standard output (0) or error (1), and passes whole
// lines on.
func (l *guestLog) write(which int, text []byte) {
	p := &l.parts[which]
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		piece := text
		if end >= 0 {
			piece = text[:end]
		}
		n := copy(p.buf[p.n:], piece)
		p.n += n
		text = text[n:]
		if n == end && n == len(piece) {
			text = text[1:]
			l.end(which)
		} else if p.n == lineBytes {
			l.end(which)
		}
	}
}

// end passes on what has been written of a line.
func (l *guestLog) end(which int) {
	p := &l.parts[which]
	if p.n > 0 {
		if which == 1 && len(l.said) == 0 {
			l.said = append(l.said, p.buf[:min(p.n, saidBytes)]...)
		}
		l.line(LogInfo+which, p.buf[:p.n])
	}
	p.n = 0
}

// flush ends a run: lines that were not ended are passed on.
func (l *guestLog) flush() {
	l.end(0)
	l.end(1)
}
