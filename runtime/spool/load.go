package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// load reads the state, repairs what can be repaired, and forgets sinks that are gone. It writes nothing when it
// returns an error.
func (s *Spool) load(path string, metaLost bool) error {
	if err := s.update(func(tx *bbolt.Tx) error {
		if err := s.checkFormat(tx, path); err != nil {
			return err
		}
		if err := s.loadEpoch(tx, metaLost); err != nil {
			return err
		}
		if err := s.loadRows(tx, path); err != nil {
			return err
		}
		if err := s.loadOffsets(tx); err != nil {
			return err
		}
		return s.loadFloors(tx)
	}); err != nil {
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

// update runs f in a writing transaction. The engine's own Update would, after a panic, walk through the tree again.
func (s *Spool) update(f func(*bbolt.Tx) error) error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	ended := false
	defer func() {
		if !ended {
			s.abandon(tx)
		}
	}()
	if err := f(tx); err != nil {
		return err
	}
	err = tx.Commit()
	ended = true
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// checkFormat looks whether this is a spool that can be read. A version that is damaged counts as this one if
// either its number or its sum says so.
func (s *Spool) checkFormat(tx *bbolt.Tx, path string) error {
	state := tx.Bucket(bucketState)
	if state == nil {
		return &DamageError{What: path, Why: "it is a database, but not a spool"}
	}
	for _, name := range [][]byte{bucketRows, bucketOffsets, bucketFloors, bucketDamaged} {
		if tx.Bucket(name) == nil {
			return &DamageError{What: path, Why: fmt.Sprintf("it has no %q", name)}
		}
	}
	version := binary.BigEndian.AppendUint32(nil, formatVersion)
	want, stored := appendSummed(nil, keyFormat, version), state.Get(keyFormat)
	content, ok := parseSummed(keyFormat, stored)
	switch {
	case ok && len(content) == 4:
		if v := binary.BigEndian.Uint32(content); v != formatVersion {
			return &VersionError{Path: path, Found: v, Supported: formatVersion}
		}
		return nil
	case len(stored) == len(want) && (bytes.Equal(stored[:sumSize], want[:sumSize]) || bytes.Equal(stored[sumSize:], version)):
		s.log.Error("spool's format version was damaged; it is written again", "version", formatVersion)
		return state.Put(keyFormat, want)
	}
	return &DamageError{What: path, Why: "its format version is damaged"}
}

// loadEpoch reads the epoch. After the newer of the two metas was lost, the last transaction is gone, and its
// positions are given out again: under the old epoch other events would have the ids of those that may be published.
func (s *Spool) loadEpoch(tx *bbolt.Tx, metaLost bool) error {
	content, ok := parseSummed(keyEpoch, tx.Bucket(bucketState).Get(keyEpoch))
	switch {
	case !ok || len(content) != len(s.epoch):
		s.log.Error("spool's epoch is damaged; a new one is drawn: events that were sent and not acknowledged may be stored twice")
	case metaLost:
		s.log.Error("one of the spool's two meta pages is damaged: without a power cut before this, the last events may be missing; " +
			"a new epoch is drawn: events that were sent and not acknowledged may be stored twice")
	default:
		copy(s.epoch[:], content)
		return nil
	}
	if err := putEpoch(tx); err != nil {
		return err
	}
	content, _ = parseSummed(keyEpoch, tx.Bucket(bucketState).Get(keyEpoch))
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
	if !ok { // nothing is stored before the first event
		if err := tx.Bucket(bucketFloors).ForEach(func(k, v []byte) error {
			if floor, ok := parseSummed(k, v); ok && len(floor) == 8 {
				s.last = max(s.last, Seq(binary.BigEndian.Uint64(floor)))
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if !ok && (stored != nil || s.last > 0) {
		s.log.Error("spool's last position was damaged; it is taken from rows and floors", "last", uint64(s.last))
		b := seqKey(s.last)
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
