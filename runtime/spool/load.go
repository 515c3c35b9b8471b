package spool

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// load reads the state, repairs what can be repaired, and forgets sinks that are gone.
func (s *Spool) load(path string) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		if err := checkFormat(tx, path); err != nil {
			return err
		}
		if err := s.loadEpoch(tx); err != nil {
			return err
		}
		if err := s.loadRows(tx, path); err != nil {
			return err
		}
		if err := s.loadOffsets(tx); err != nil {
			return err
		}
		return s.loadFloors(tx)
	})
	if err != nil {
		return err
	}
	s.released = 0 // whatever the floors allow is deleted by the first transaction
	c := change{}
	s.measure(&c)
	s.stats.Bytes, s.stats.Disk = c.used, c.size
	return s.db.View(func(tx *bbolt.Tx) error {
		shed(tx)
		return nil
	})
}

func checkFormat(tx *bbolt.Tx, path string) error {
	state := tx.Bucket(bucketState)
	if state == nil {
		return fmt.Errorf("open spool %s: it is a database, but not a spool: move it away", path)
	}
	content, ok := parseSummed(keyFormat, state.Get(keyFormat))
	if !ok || len(content) != 4 {
		return fmt.Errorf("open spool %s: its format version is damaged: move the file away to start with an empty spool", path)
	}
	if v := binary.BigEndian.Uint32(content); v != formatVersion {
		return &VersionError{Path: path, Found: v, Supported: formatVersion}
	}
	for _, name := range [][]byte{bucketRows, bucketOffsets, bucketFloors, bucketDamaged} {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("open spool %s: it has no %q: move the file away to start with an empty spool", path, name)
		}
	}
	return nil
}

func (s *Spool) loadEpoch(tx *bbolt.Tx) error {
	content, ok := parseSummed(keyEpoch, tx.Bucket(bucketState).Get(keyEpoch))
	if !ok || len(content) != len(s.epoch) {
		s.log.Error("spool's epoch is damaged; a new one is drawn: events that were sent and not acknowledged may be stored twice")
		if err := putEpoch(tx); err != nil {
			return err
		}
		content, _ = parseSummed(keyEpoch, tx.Bucket(bucketState).Get(keyEpoch))
	}
	copy(s.epoch[:], content)
	return nil
}

// loadRows finds the first and the last position. The stored last position counts events whose rows are gone;
// if it is damaged, the last row and the floors tell.
func (s *Spool) loadRows(tx *bbolt.Tx, path string) error {
	state := tx.Bucket(bucketState)
	stored := state.Get(keyLast)
	content, ok := parseSummed(keyLast, stored)
	ok = ok && len(content) == 8
	if ok {
		s.last = Seq(binary.BigEndian.Uint64(content))
	}
	cur := tx.Bucket(bucketRows).Cursor()
	if k, v := cur.Last(); k != nil {
		first, err := rowKey(k)
		if err != nil {
			return err
		}
		end := first // a damaged row is one event at least
		if recs, err := parseRow(nil, k, v); err == nil {
			end = first + Seq(len(recs)) - 1
		}
		s.last = max(s.last, end)
	}
	if stored != nil && !ok {
		if err := tx.Bucket(bucketFloors).ForEach(func(k, v []byte) error {
			if floor, ok := parseSummed(k, v); ok && len(floor) == 8 {
				s.last = max(s.last, Seq(binary.BigEndian.Uint64(floor)))
			}
			return nil
		}); err != nil {
			return err
		}
		s.log.Error("spool's last position was damaged; it is taken from rows and floors", "last", uint64(s.last))
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(s.last))
		if err := state.Put(keyLast, appendSummed(nil, keyLast, b[:])); err != nil {
			return err
		}
	}
	s.first = s.last + 1
	if k, _ := cur.First(); k != nil {
		first, err := rowKey(k)
		if err != nil {
			return err
		}
		s.first = first
	}
	return tx.Bucket(bucketDamaged).ForEach(func(k, v []byte) error {
		s.stats.DamagedRows++
		s.stats.DamagedEvents += uint64(max(rowCount(v), 1))
		return nil
	})
}

// loadOffsets sets damaged resume positions aside. Their inputs begin again: an event may come twice, none is lost.
func (s *Spool) loadOffsets(tx *bbolt.Tx) error {
	offsets := tx.Bucket(bucketOffsets)
	var bad [][]byte
	if err := offsets.ForEach(func(k, v []byte) error {
		if _, ok := parseSummed(k, v); !ok {
			bad = append(bad, slices.Clone(k))
		}
		return nil
	}); err != nil {
		return err
	}
	for _, k := range bad {
		v := slices.Clone(offsets.Get(k))
		if err := offsets.Delete(k); err != nil {
			return err
		}
		if err := tx.Bucket(bucketDamaged).Put(append([]byte("offset "), k...), v); err != nil {
			return err
		}
		s.log.Error("an input's resume position is damaged; the input will read from its beginning", "input", string(k))
	}
	return nil
}

// loadFloors gives every configured sink its floor and forgets the others.
func (s *Spool) loadFloors(tx *bbolt.Tx) error {
	floors := tx.Bucket(bucketFloors)
	var gone [][]byte
	known := map[string]Seq{}
	if err := floors.ForEach(func(k, v []byte) error {
		content, ok := parseSummed(k, v)
		switch {
		case !slices.Contains(s.opt.Sinks, string(k)):
			gone = append(gone, slices.Clone(k))
			if ok && len(content) == 8 {
				floor := Seq(binary.BigEndian.Uint64(content))
				s.log.Warn("sink is no longer configured; its position is forgotten", "sink", string(k),
					"floor", uint64(floor), "events_left", uint64(s.last-min(floor, s.last)))
			}
		case ok && len(content) == 8:
			known[string(k)] = min(Seq(binary.BigEndian.Uint64(content)), s.last)
		default:
			s.log.Error("a sink's floor is damaged; it starts at the oldest event again", "sink", string(k), "oldest", uint64(s.first))
		}
		return nil
	}); err != nil {
		return err
	}
	for _, k := range gone {
		if err := floors.Delete(k); err != nil {
			return err
		}
	}
	for _, name := range s.opt.Sinks {
		floor := max(known[name], s.first-1) // nothing is left below the oldest event
		c := &cursor{name: name, floor: floor, durable: floor, ready: make(chan struct{}, 1)}
		s.sinks = append(s.sinks, c)
		content := seqKey(floor)
		if err := floors.Put([]byte(name), appendSummed(nil, []byte(name), content[:])); err != nil {
			return err
		}
		if floor < s.last {
			c.ready <- struct{}{}
		}
	}
	return nil
}
