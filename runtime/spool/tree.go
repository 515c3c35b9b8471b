package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
)

// The engine's pages, in the byte order of the machine: see FORMAT.md.
const (
	pageHeader = 16 // id u64, kind u16, count u16, overflow u32
	pageEntry  = 16 // leaf: flags, position, key and value length, u32 each; branch: position, key length, u32; page u64
	rootHeader = 16 // of a bucket's value: root page u64, 0 if the page itself follows; a number u64 that nobody uses

	kindBranch = 1
	kindLeaf   = 2
	flagBucket = 1

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSummed  = 56 // bytes of a meta that its FNV-1a is over
	noFreelist  = math.MaxUint64

	maxKey   = 32768 // the engine's limit
	maxDepth = 64    // with two entries a page the most that 2^64 pages can have
)

// meta is what one of the two first pages says.
type meta struct {
	root     uint64
	freelist uint64
	pages    uint64 // high-water mark: pages below it are the database
	txid     uint64
}

// parseMeta reads a meta page. ok is false if it is damaged.
func parseMeta(page []byte) (m meta, ok bool) {
	b := page[pageHeader:]
	e := binary.NativeEndian
	h := fnv.New64a()
	h.Write(b[:metaSummed])
	if e.Uint32(b) != metaMagic || e.Uint32(b[4:]) != metaVersion || e.Uint32(b[8:]) != pageSize || e.Uint64(b[metaSummed:]) != h.Sum64() {
		return m, false
	}
	return meta{root: e.Uint64(b[16:]), freelist: e.Uint64(b[32:]), pages: e.Uint64(b[40:]), txid: e.Uint64(b[48:])}, true
}

// tree walks through every page that can be reached and believes none. What it lets pass, the engine can walk
// through as well: the engine looks for free pages in a goroutine of its own, where what it panics with would end
// the process on every start.
//
// It asks more than the engine does: entries lie one behind the other with nothing between them, as they are
// written, so that a wrong bit in a header or an entry shows, whatever it is in. Values are not looked at; they
// have sums.
type tree struct {
	file   io.ReaderAt
	pages  uint64
	seen   []uint64 // a bit for each page
	levels [][]byte // a page's header and entries, for each level; used again by the next page there
}

// shape is what the keys and values of one bucket look like.
type shape struct {
	buckets bool // all values are buckets; else none is
	keyLen  int  // 0 if keys have any length
}

// order is how far the walk through one bucket has come. Invariant: low <= every key that follows, and last is
// less.
type order struct {
	low, last []byte // nil at the beginning
	found     []bucket
}

// bucket is an entry that is a bucket.
type bucket struct{ name, value []byte }

// checkTree returns nil if the engine can work with the database of size bytes in file, and whether one of the two
// metas is damaged; else why it cannot.
func checkTree(file io.ReaderAt, size int64) (metaLost bool, err error) {
	if size < 4*pageSize {
		return false, fmt.Errorf("it has only %d bytes", size)
	}
	head := make([]byte, 2*pageSize)
	if _, err := file.ReadAt(head, 0); err != nil {
		return false, err
	}
	m, ok0 := parseMeta(head)
	m1, ok1 := parseMeta(head[pageSize:])
	switch {
	case !ok0 && !ok1:
		return false, fmt.Errorf("both of its meta pages are damaged")
	case ok1 && (!ok0 || m1.txid > m.txid):
		m = m1
	}
	if m.pages > uint64(size)/pageSize {
		return false, fmt.Errorf("it has %d bytes of %d pages", size, m.pages)
	}
	if m.freelist != noFreelist {
		return false, fmt.Errorf("it has a list of free pages")
	}
	t := &tree{file: file, pages: m.pages, seen: make([]uint64, m.pages/64+1)}
	top := order{}
	if err := t.page(m.root, 0, &top, nil, shape{buckets: true}); err != nil {
		return false, err
	}
	for _, c := range top.found {
		s := shape{}
		if bytes.Equal(c.name, bucketRows) {
			s.keyLen = 8
		}
		if err := t.walk(c, s); err != nil {
			return false, fmt.Errorf("bucket %q: %w", c.name, err)
		}
	}
	return !ok0 || !ok1, nil
}

// walk walks through one bucket, which may be a page inside of its value.
func (t *tree) walk(c bucket, s shape) error {
	if len(c.value) < rootHeader {
		return fmt.Errorf("its root has %d bytes", len(c.value))
	}
	o := order{}
	if root := binary.NativeEndian.Uint64(c.value); root != 0 {
		if len(c.value) != rootHeader {
			return fmt.Errorf("its root has %d bytes", len(c.value))
		}
		return t.page(root, 0, &o, nil, s)
	}
	page := c.value[rootHeader:]
	if len(page) < pageHeader {
		return fmt.Errorf("its page has %d bytes", len(page))
	}
	n := node{buf: page, size: uint64(len(page))}
	if n.kind() != kindLeaf || n.overflow() != 0 {
		return fmt.Errorf("its page is no leaf")
	}
	used, err := n.layout()
	if err != nil {
		return err
	}
	if used != n.size {
		return fmt.Errorf("its page uses %d bytes of %d", used, n.size)
	}
	return n.leaf(&o, nil, s)
}

// page walks through the page id and all below it. Keys are less than high, if there is one.
func (t *tree) page(id uint64, level int, o *order, high []byte, s shape) error {
	if level == maxDepth {
		return fmt.Errorf("page %d is %d levels deep", id, level)
	}
	n, err := t.node(id, level)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if n.kind() == kindLeaf {
		if n.count() == 0 && level > 0 {
			return fmt.Errorf("page %d is empty", id)
		}
		if err := n.leaf(o, high, s); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		return nil
	}
	if n.count() == 0 {
		return fmt.Errorf("page %d is empty", id)
	}
	key, err := n.key(0)
	for i := range n.count() {
		if err == nil {
			err = o.check(key, high)
		}
		if err != nil {
			return fmt.Errorf("page %d: entry %d: %w", id, i, err)
		}
		o.low = key
		below, next := high, []byte(nil)
		if i+1 < n.count() {
			if next, err = n.key(i + 1); err != nil {
				return fmt.Errorf("page %d: entry %d: %w", id, i+1, err)
			}
			below = next
		}
		if err := t.page(n.u64(i, 8), level+1, o, below, s); err != nil {
			return err
		}
		key = next
	}
	return nil
}

// node reads a page that nobody has referred to before.
func (t *tree) node(id uint64, level int) (*node, error) {
	if id < 2 || id >= t.pages {
		return nil, fmt.Errorf("there are %d pages", t.pages)
	}
	if level == len(t.levels) {
		t.levels = append(t.levels, make([]byte, pageSize))
	}
	n := &node{file: t.file, at: int64(id) * pageSize, buf: t.levels[level][:pageSize]}
	if _, err := t.file.ReadAt(n.buf, n.at); err != nil {
		return nil, err
	}
	if got := binary.NativeEndian.Uint64(n.buf); got != id {
		return nil, fmt.Errorf("it says that it is %d", got)
	}
	if k := n.kind(); k != kindBranch && k != kindLeaf {
		return nil, fmt.Errorf("it is of kind %#x", k)
	}
	pages := n.overflow() + 1
	if pages > t.pages-id {
		return nil, fmt.Errorf("it has %d pages of %d", pages, t.pages-id)
	}
	for p := id; p < id+pages; p++ {
		if t.seen[p/64]&(1<<(p%64)) != 0 {
			return nil, fmt.Errorf("it is used twice")
		}
		t.seen[p/64] |= 1 << (p % 64)
	}
	n.size = pages * pageSize
	if end := uint64(pageHeader + n.count()*pageEntry); end > n.size {
		return nil, fmt.Errorf("it has %d entries", n.count())
	} else if end > pageSize { // at most a megabyte
		n.buf = make([]byte, end)
		if _, err := t.file.ReadAt(n.buf, n.at); err != nil {
			return nil, err
		}
		t.levels[level] = n.buf
	}
	used, err := n.layout()
	if err != nil {
		return nil, err
	}
	if used <= n.size-pageSize {
		return nil, fmt.Errorf("it uses %d bytes of %d", used, n.size)
	}
	return n, nil
}

// check holds the next key against those around it.
func (o *order) check(key, high []byte) error {
	if o.last != nil && bytes.Compare(key, o.last) <= 0 || bytes.Compare(key, o.low) < 0 || high != nil && bytes.Compare(key, high) >= 0 {
		return fmt.Errorf("its key is out of order")
	}
	return nil
}

// node is a page. Its header and entries are in buf, keys and values may be beyond.
type node struct {
	file io.ReaderAt // nil if all is in buf
	at   int64       // in file
	buf  []byte
	size uint64 // with overflow
}

func (n *node) kind() uint16     { return binary.NativeEndian.Uint16(n.buf[8:]) }
func (n *node) count() int       { return int(binary.NativeEndian.Uint16(n.buf[10:])) }
func (n *node) overflow() uint64 { return uint64(binary.NativeEndian.Uint32(n.buf[12:])) }

// u32 and u64 are the fields of entry i, at bytes from its start.
func (n *node) u32(i, at int) uint64 {
	return uint64(binary.NativeEndian.Uint32(n.buf[pageHeader+i*pageEntry+at:]))
}
func (n *node) u64(i, at int) uint64 {
	return binary.NativeEndian.Uint64(n.buf[pageHeader+i*pageEntry+at:])
}

// entry is where in the page entry i's key is, and the lengths of key and value.
func (n *node) entry(i int) (at, key, value uint64) {
	at = uint64(pageHeader + i*pageEntry)
	if n.kind() == kindBranch {
		return at + n.u32(i, 0), n.u32(i, 4), 0
	}
	return at + n.u32(i, 4), n.u32(i, 8), n.u32(i, 12)
}

// layout checks that entries and what they point to fill the page without gap or overlap, and returns how far.
func (n *node) layout() (used uint64, err error) {
	used = uint64(pageHeader + n.count()*pageEntry)
	if used > n.size {
		return 0, fmt.Errorf("it has %d entries", n.count())
	}
	for i := range n.count() {
		at, key, value := n.entry(i)
		if at != used || key == 0 || key > maxKey {
			return 0, fmt.Errorf("entry %d is not where it should be", i)
		}
		if used += key + value; used > n.size {
			return 0, fmt.Errorf("entry %d goes beyond its end", i)
		}
	}
	return used, nil
}

// bytes returns a part of the page, aliasing it where it is in buf.
func (n *node) bytes(at, size uint64) ([]byte, error) {
	if end := at + size; end <= uint64(len(n.buf)) {
		return n.buf[at:end:end], nil
	}
	b := make([]byte, size)
	_, err := n.file.ReadAt(b, n.at+int64(at))
	return b, err
}

func (n *node) key(i int) ([]byte, error) {
	at, key, _ := n.entry(i)
	return n.bytes(at, key)
}

// leaf checks the entries of a leaf and moves o behind them.
func (n *node) leaf(o *order, high []byte, s shape) error {
	for i := range n.count() {
		key, err := n.key(i)
		if err != nil {
			return err
		}
		if err := o.check(key, high); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		o.last = append(o.last[:0], key...)
		if s.keyLen != 0 && len(key) != s.keyLen {
			return fmt.Errorf("entry %d: its key has %d bytes", i, len(key))
		}
		flags := n.u32(i, 0)
		if flags > flagBucket || (flags == flagBucket) != s.buckets {
			return fmt.Errorf("entry %d has flags %#x", i, flags)
		}
		if !s.buckets {
			continue
		}
		at, klen, vlen := n.entry(i)
		if vlen > pageSize {
			return fmt.Errorf("entry %d: a bucket of %d bytes", i, vlen)
		}
		value, err := n.bytes(at+klen, vlen)
		if err != nil {
			return err
		}
		o.found = append(o.found, bucket{bytes.Clone(key), bytes.Clone(value)})
	}
	return nil
}
