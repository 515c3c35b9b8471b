package spool

import "slices"

// Stats is a copy of what the spool knows about itself. Everything but the positions counts since Open.
type Stats struct {
	FirstSeq Seq // oldest event present, LastSeq+1 if there is none
	LastSeq  Seq // newest durable event, 0 if there never was one
	Events   uint64
	Bytes    int64 // pages in use: what Options.MaxBytes bounds
	Disk     int64 // the file, with pages that wait to be used again
	MaxBytes int64
	Full     bool // an Append waits for room
	DiskFull bool // it is the disk that has none, not MaxBytes
	Sinks    []SinkStats

	Commits  uint64
	Appended uint64 // events

	DamagedRows   uint64 // set aside and not yet looked after, also by earlier runs
	DamagedEvents uint64 // their events, by position
	SetAside      string // the file that an unreadable database was moved to by this Open, "" if none
}

// SinkStats is one sink's cursor.
type SinkStats struct {
	Name    string
	Floor   Seq    // everything up to here is settled
	Skipped uint64 // positions up to Floor, and since Open, that had no event to read: see Reader.Skipped
}

// Floor is the floor of a sink, 0 if there is no such sink.
func (s *Stats) Floor(sink string) Seq {
	for i := range s.Sinks {
		if s.Sinks[i].Name == sink {
			return s.Sinks[i].Floor
		}
	}
	return 0
}

// Skipped is the count of a sink, 0 if there is no such sink.
func (s *Stats) Skipped(sink string) uint64 {
	for i := range s.Sinks {
		if s.Sinks[i].Name == sink {
			return s.Sinks[i].Skipped
		}
	}
	return 0
}

// Stats may be called at any time, also after Close. The result shares nothing with the spool.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.FirstSeq, out.LastSeq = s.first, s.last
	out.Events = uint64(s.last - (s.first - 1))
	out.MaxBytes = s.opt.MaxBytes
	out.Full = s.full && len(s.queue) > 0
	out.DiskFull = out.Full && s.noRoom
	out.Sinks = slices.Grow(out.Sinks, len(s.sinks))
	for _, c := range s.sinks {
		out.Sinks = append(out.Sinks, SinkStats{c.name, c.floor, c.skipped})
	}
	return out
}
