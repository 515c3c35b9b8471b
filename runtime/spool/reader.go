package spool

import (
	"fmt"
	"io"
	"slices"

	"go.etcd.io/bbolt"
)

// Block is a run of consecutive events. The caller owns it and uses it again; Records alias its buffer and are
// valid until the next Read into it.
type Block struct {
	First   Seq      // of Records[0]; Records[i] is event First+i
	Records [][]byte // as they were appended

	buf   []byte
	spans []span
}

// span is one row's copy in a Block's buffer.
type span struct {
	first, last Seq // by the keys around it
	from, to    int
}

// Reader is a sink's cursor. Its methods belong to one goroutine, but Ready, Floor and Skipped, which anybody may call.
//
// Invariant: floor < next. What was read and is not released will be read again by the next Reader.
type Reader struct {
	spool  *Spool
	cursor *cursor
	next   Seq    // first position that Read has not returned
	gaps   []span // positions below next that Read passed over, above the floor
}

// Reader returns a cursor for a configured sink, at its floor. A sink has one reader at a time: a new one
// starts at the floor again, and the old one must not be used any more.
func (s *Spool) Reader(sink string) (*Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sinks {
		if c.name == sink {
			return &Reader{spool: s, cursor: c, next: c.floor + 1}, nil
		}
	}
	return nil, fmt.Errorf("read spool: no sink %q: it was opened for %q", sink, s.opt.Sinks)
}

// Read fills b with the events that follow what was read before: at most maxEvents, and at most maxBytes of
// records, but always one. It never waits. 0 and nil mean that there is nothing new; io.EOF, that the spool is
// sealed and all is read. Damaged rows are passed over, so b.First may be beyond the last block's end; their
// positions count as settled, and in Skipped, once the floor reaches them. Any other error stays.
func (r *Reader) Read(b *Block, maxEvents, maxBytes int) (int, error) {
	b.First, b.Records = 0, b.Records[:0]
	maxEvents, maxBytes = max(maxEvents, 1), max(maxBytes, 1)
	for {
		last, ended, err := r.spool.readable()
		switch {
		case err != nil:
			return 0, err
		case r.next > last && ended:
			return 0, io.EOF
		case r.next > last:
			return 0, nil
		}
		all, err := r.copyRows(b, maxEvents, maxBytes, last)
		if err != nil {
			return 0, err
		}
		r.parse(b, maxEvents, maxBytes)
		if n := len(b.Records); n > 0 {
			return n, nil
		}
		if all {
			r.skip(last) // nothing is left of what last promises
		}
	}
}

// readable is the last position that may be read, and whether it will stay the last.
func (s *Spool) readable() (last Seq, ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.db == nil {
		return 0, false, ErrStopped
	}
	return s.last, s.sealed && len(s.queue) == 0 && s.taken == 0, s.err
}

// copyRows copies rows, from the one that may hold r.next on, until there is enough. It only looks at keys and
// counts: what is in the rows is checked on the copy, outside of the transaction. all tells that no row up to
// last was left behind.
func (r *Reader) copyRows(b *Block, maxEvents, maxBytes int, last Seq) (all bool, err error) {
	b.buf, b.spans = b.buf[:0], b.spans[:0]
	err = r.spool.view(func(tx *bbolt.Tx) error {
		cur := tx.Bucket(bucketRows).Cursor()
		k, v := seekRow(cur, r.next)
		for events, bytes := 0, 0; events < maxEvents && bytes < maxBytes; {
			if k == nil {
				all = true
				break
			}
			first, err := rowKey(k)
			if err != nil {
				return err
			}
			if first > last {
				all = true
				break
			}
			sp := span{first: first, last: last, from: len(b.buf)}
			end := first + Seq(max(rowCount(v), 1))
			b.buf = append(b.buf, v...)
			sp.to = len(b.buf)
			if k, v = cur.Next(); k != nil {
				next, err := rowKey(k)
				if err != nil {
					return err
				}
				sp.last = min(last, next-1)
			}
			b.spans = append(b.spans, sp)
			if end > r.next {
				events += int(end - max(first, r.next))
				bytes += sp.to - sp.from
			}
		}
		r.spool.shedIn(tx, int64(len(b.buf)))
		return nil
	})
	return all, err
}

// seekRow finds the row that seq is in, or if there is none the one before it, or the first.
func seekRow(cur *bbolt.Cursor, seq Seq) (k, v []byte) {
	key := seqKey(seq)
	if k, v = cur.Seek(key[:]); string(k) == string(key[:]) {
		return k, v
	}
	if k == nil {
		return cur.Last()
	}
	if k, v = cur.Prev(); k == nil {
		return cur.First()
	}
	return k, v
}

// rowKey is the position in a row's key.
func rowKey(k []byte) (Seq, error) {
	first, ok := keySeq(k)
	if !ok {
		return 0, &DamageError{What: "a row's key", Why: fmt.Sprintf("it has %d bytes", len(k))}
	}
	return first, nil
}

// parse turns the copied rows into records and moves r.next behind what b holds, or behind a gap.
func (r *Reader) parse(b *Block, maxEvents, maxBytes int) {
	bytes := 0
	for _, sp := range b.spans {
		if sp.first > r.next { // rows are missing here
			if len(b.Records) > 0 {
				return
			}
			r.skip(sp.first - 1)
		}
		key := seqKey(sp.first)
		had := len(b.Records)
		recs, err := parseRow(b.Records, key[:], b.buf[sp.from:sp.to])
		n := Seq(len(recs) - had)
		if err != nil || sp.first+n-1 > sp.last {
			if had > 0 {
				return // what is good first; the next Read meets it again
			}
			r.spool.report(sp.first)
			r.skip(sp.last)
			continue
		}
		b.Records = slices.Delete(recs, had, had+int(min(n, r.next-sp.first)))
		if len(b.Records) > 0 && b.First == 0 {
			b.First = r.next
		}
		for i := had; i < len(b.Records); i++ {
			bytes += len(b.Records[i])
			if i > 0 && bytes > maxBytes || i == maxEvents {
				b.Records = b.Records[:i]
				r.next = b.First + Seq(i)
				return
			}
		}
		r.next = max(r.next, sp.first+n)
	}
}

// skip passes over the positions from r.next to last.
func (r *Reader) skip(last Seq) {
	if last < r.next {
		return
	}
	r.gaps = append(r.gaps, span{first: r.next, last: last})
	r.next = last + 1
	r.Release(r.Floor())
}

// report hands a damaged row to the committer.
func (s *Spool) report(first Seq) {
	s.mu.Lock()
	if !slices.Contains(s.damage, first) {
		s.damage = append(s.damage, first)
	}
	s.mu.Unlock()
	s.poke()
}

// Ready has a value when something may be there to read or the spool was sealed, stopped or failed. It is a
// notice, not a count: after one, read until there is nothing.
func (r *Reader) Ready() <-chan struct{} { return r.cursor.ready }

// Release says that every event up to floor is settled. It is remembered at once and durable with the next
// commit, at the latest floorDelay later, and after Run. A floor below the present one changes nothing; one that
// was not read is a bug of the caller.
func (r *Reader) Release(floor Seq) {
	if floor >= r.next {
		panic(fmt.Sprintf("BUG: seq %d released before it was read (next=%d)", floor, r.next))
	}
	var skipped uint64
	for len(r.gaps) > 0 && r.gaps[0].first <= floor+1 {
		floor = max(floor, r.gaps[0].last)
		skipped += uint64(r.gaps[0].last - r.gaps[0].first + 1)
		r.gaps = r.gaps[1:]
	}
	s := r.spool
	s.mu.Lock()
	c, look := r.cursor, false
	c.skipped += skipped
	if floor > c.floor {
		look = c.floor == c.durable || s.full || s.sealed // else the committer knows already
		c.floor = floor
	}
	s.mu.Unlock()
	if look {
		s.poke()
	}
}

// Floor is the position up to which everything is settled.
func (r *Reader) Floor() Seq {
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	return r.cursor.floor
}

// Skipped is how many positions up to the floor the sink's readers have passed over since Open, because their rows
// were damaged or missing. Each counts once, when the floor passes it: since Open the floor has moved by what was
// released as settled and by Skipped, exactly. Stats has both of one moment.
func (r *Reader) Skipped() uint64 {
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	return r.cursor.skipped
}
