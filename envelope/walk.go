package envelope

// members walks over the members of one object: open it, then next, then take the value at i and put the
// position behind it into i, and so on. After next has returned false with no flaw, i is behind the brace.
type members struct {
	src     []byte
	i       int
	started bool
	// The key of the current member: src[keyStart:keyEnd] without quotes, with escapes if escaped.
	keyStart, keyEnd int
	escaped          bool
}

// openObject begins at an opening brace with depth containers open around it.
func openObject(src []byte, i, depth int) (members, flaw) {
	if depth >= MaxNesting {
		return members{i: i}, tooDeep
	}
	return members{src: src, i: i + 1}, fine
}

// next moves to the value of the next member. It returns false at the end and with a flaw.
func (m *members) next(f *flaw) bool {
	src, i := m.src, skipSpace(m.src, m.i)
	if i < len(src) && src[i] == '}' {
		m.i = i + 1
		return false
	}
	if m.started {
		if i >= len(src) || src[i] != ',' {
			return m.stop(f, i, badComma)
		}
		i = skipSpace(src, i+1)
	}
	m.started = true
	if i >= len(src) || src[i] != '"' {
		return m.stop(f, i, badKey)
	}
	end, escaped, bad := scanString(src, i+1)
	if bad != fine {
		return m.stop(f, end, bad)
	}
	m.keyStart, m.keyEnd, m.escaped = i+1, end-1, escaped
	i = skipSpace(src, end)
	if i >= len(src) || src[i] != ':' {
		return m.stop(f, i, badColon)
	}
	m.i = skipSpace(src, i+1)
	return true
}

func (m *members) stop(f *flaw, i int, bad flaw) bool {
	if i >= len(m.src) {
		bad = cutShort
	}
	m.i, *f = i, bad
	return false
}

// list walks over the elements of one list in the same way.
type list struct {
	src     []byte
	i       int
	started bool
}

func openList(src []byte, i, depth int) (list, flaw) {
	if depth >= MaxNesting {
		return list{i: i}, tooDeep
	}
	return list{src: src, i: i + 1}, fine
}

func (l *list) next(f *flaw) bool {
	src, i := l.src, skipSpace(l.src, l.i)
	if i < len(src) && src[i] == ']' {
		l.i = i + 1
		return false
	}
	if l.started {
		if i >= len(src) || src[i] != ',' {
			l.i, *f = i, badComma
			if i >= len(src) {
				*f = cutShort
			}
			return false
		}
		i = skipSpace(src, i+1)
	}
	l.started = true
	l.i = i // the value's own scan reports what is missing
	return true
}
