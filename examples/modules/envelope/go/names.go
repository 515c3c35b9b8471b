package main

// member is one member of a JSON object.
type member struct {
	text, value []byte // as it is written, from the name's first quote on, and its value alone
	name        []byte // without quotes and escapes
	hash        uint32 // of name
	renamed     bool   // text is the value alone
}

// member reads `"name": value` at i and returns the position behind it. A name with escapes is kept in plain.
func (r *reader) member(i, depth int, plain *[]byte) (c member, end int) {
	if i == len(r.src) || r.src[i] != '"' {
		return c, r.bad(i, "a name in quotes was expected")
	}
	end, escaped := r.string(i + 1)
	if end < 0 {
		return c, end
	}
	start := i
	c.name = r.src[i+1 : end-1]
	if escaped {
		from := len(*plain)
		if !r.unescape(i+1, end-1, plain) {
			return c, -1
		}
		c.name = (*plain)[from:]
	}
	c.hash = hash(c.name)
	if i = r.colon(end); i < 0 {
		return c, i
	}
	if end = r.value(i, depth); end >= 0 {
		c.text, c.value = r.src[start:end], r.src[i:end]
	}
	return c, end
}

func hash(s []byte) uint32 { // FNV-1a
	h := uint32(2166136261)
	for _, c := range s {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// names are the names of the message in work: a hash table with room for twice maxNames, so that a look-up is short.
// A slot belongs to the message if it has its stamp; nothing needs to be cleared between events.
type names struct {
	slots        [2 * maxNames]slot
	stamp, taken uint32
}

type slot struct {
	stamp, hash uint32
	name        []byte
}

const (
	free     = iota // the name was free and is taken now
	occupied        // somebody was first
	full            // too many names
)

func (n *names) reset() {
	n.taken = 0
	if n.stamp++; n.stamp == 0 { // 2^32 events later old stamps would look like new ones
		n.slots = [2 * maxNames]slot{}
		n.stamp = 1
	}
}

func (n *names) take(name []byte, hash uint32) int {
	for i := hash; ; i++ {
		s := &n.slots[i%uint32(len(n.slots))]
		if s.stamp != n.stamp {
			if n.taken == maxNames {
				return full
			}
			n.taken++
			*s = slot{n.stamp, hash, name}
			return free
		}
		if s.hash == hash && string(s.name) == string(name) {
			return occupied
		}
	}
}
