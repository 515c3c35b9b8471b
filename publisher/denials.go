package publisher

// denial is how many messages under one subject the server has refused on the current connection, of those that have no
// result yet.
type denial struct {
	count int
	text  string // the server's words
}

// denied takes an announcement that the server has refused a message under a subject. It does not say which: rights can
// change while messages are on their way, and the announcement overtakes acknowledgements that wait for the stream's
// store. So it is counted, until no more messages under the subject are unanswered than were refused.
func (p *Publisher) denied(s *session, subject, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != s {
		return // what was written on that connection has its deadline
	}
	d := p.denials[subject]
	d.count++
	d.text = text
	p.denials[subject] = d
	p.settleDenialsLocked()
}

// settleDenialsLocked ends the messages that are known to be the refused ones. It is called after answers and with every
// look at the deadlines, outside of any walk over the window.
func (p *Publisher) settleDenialsLocked() {
	if len(p.denials) == 0 || p.session == nil {
		return
	}
	for subject, d := range p.denials {
		all := p.window.onWire(p.session.number, subject)
		if len(all) > d.count {
			continue
		}
		delete(p.denials, subject)
		for _, u := range all {
			// The end of one can end its burst, and with it what was collected here.
			if s := &p.slots[u.slot]; s.gen == u.gen && s.state != slotFree && s.state != slotSpent {
				p.deniedLocked(u.slot, subject, d.text)
			}
		}
	}
}
