package envelope

// dedupe is one walk over one record that validates it and finds what must be left out.
//
// Invariant: the result is src[start:end] without the cuts; start == end while nothing is kept. Cuts are in order, do
// not overlap, and lie between start and end. cutBytes is what they take together.
type dedupe struct {
	event      *Event
	src        []byte
	names      *names
	cuts       []cut
	start, end int
	cutBytes   int
	room       int    // bytes that may be kept
	objects    uint32 // objects seen so far: the number of the one being walked tells its names from others'
}

// full tells that more is kept than there is room for.
func (d *dedupe) full() bool {
	kept := d.end - d.start - d.cutBytes
	return kept > 0 && kept > d.room
}

func (d *dedupe) cut(from, to int) {
	if from < to {
		d.cuts = append(d.cuts, cut{from, to})
		d.cutBytes += to - from
	}
}

// record walks the outermost object, whose brace is at i. It stops early when what is kept can not fit any more, so
// that a record far over the limit costs no more than one that fits.
func (d *dedupe) record(i int) (int, flaw) {
	m, f := openObject(d.src, i, 0)
	last := 0 // end of the member before, kept or not
	for f == fine && m.next(&f) {
		key, start := d.key(&m), m.keyStart-1
		if taken(key, d.event, len(d.event.Identity)) || !d.names.add(d.src, &m, key, 0) {
			m.i, f = scanValue(d.src, m.i, 1)
			last = m.i
			continue
		}
		if d.start == d.end {
			d.start = start
		} else {
			d.cut(d.end, last)
		}
		m.i, f = d.value(m.i, 1)
		d.end, last = m.i, m.i
		if f == fine && d.full() {
			return len(d.src), fine
		}
	}
	return m.i, f
}

// value walks one value inside the record.
func (d *dedupe) value(i, depth int) (int, flaw) {
	if i >= len(d.src) {
		return i, cutShort
	}
	switch d.src[i] {
	case '{':
		return d.object(i, depth)
	case '[':
		l, f := openList(d.src, i, depth)
		for f == fine && l.next(&f) {
			l.i, f = d.value(l.i, depth+1)
		}
		return l.i, f
	}
	return scanValue(d.src, i, depth)
}

// object walks an object inside the record. Its first member is always kept, so that every cut begins at a comma.
func (d *dedupe) object(i, depth int) (int, flaw) {
	m, f := openObject(d.src, i, depth)
	d.objects++
	object := d.objects
	kept, last := m.i, m.i // ends of the last kept member and of the last member
	for f == fine && m.next(&f) {
		if !d.names.add(d.src, &m, d.key(&m), object) {
			m.i, f = scanValue(d.src, m.i, depth+1)
			last = m.i
			continue
		}
		d.cut(kept, last)
		m.i, f = d.value(m.i, depth+1)
		kept, last = m.i, m.i
	}
	d.cut(kept, last)
	return m.i, f
}

// key returns the current member's name without escapes.
func (d *dedupe) key(m *members) []byte {
	key := d.src[m.keyStart:m.keyEnd:m.keyEnd]
	if m.escaped {
		return d.names.unescape(key)
	}
	return key
}
