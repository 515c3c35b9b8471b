package envelope

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxPointer is how many tokens a JSON pointer may have: a longer one could not match, because a record nests no deeper.
const maxPointer = MaxNesting

// PointerError says why a JSON pointer can not be used.
type PointerError struct {
	Pointer string
	Detail  string
}

func (e *PointerError) Error() string {
	return fmt.Sprintf("json pointer %q: %s", e.Pointer, e.Detail)
}

// Extractor validates records and finds values in them by JSON pointers (RFC 6901), both in one pass. It holds
// scratch, so each goroutine has its own.
type Extractor struct {
	root    node
	count   int
	scratch []byte // the unescaped form of one key
}

// node is one token of the pointers, as a tree: pointers that begin alike share their nodes.
type node struct {
	token    string
	index    int   // token as a list index, or -1
	targets  []int // numbers of the pointers that end here
	children []node
	seen     bool // in the object or list that is being walked: a later member of this name does not count
}

// NewExtractor makes an extractor for pointers such as /id, /header/stamp or /samples/0. The empty pointer, which
// means the whole record, is refused: a record is no id, time or name. The error is a *PointerError.
func NewExtractor(pointers []string) (*Extractor, error) {
	x := &Extractor{count: len(pointers)}
	for i, p := range pointers {
		if err := x.add(p, i); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *Extractor) add(pointer string, number int) error {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return &PointerError{pointer, `must begin with "/", such as /id`}
	}
	if !utf8.ValidString(pointer) {
		return &PointerError{pointer, "is not valid UTF-8"}
	}
	if strings.Count(pointer, "/") > maxPointer {
		return &PointerError{pointer, fmt.Sprintf("has more than %d tokens", maxPointer)}
	}
	n := &x.root
	for token := range strings.SplitSeq(rest, "/") {
		for i := range len(token) {
			if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
				return &PointerError{pointer, "has a ~ that is neither ~0 (for ~) nor ~1 (for /)"}
			}
		}
		n = n.child(strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	n.targets = append(n.targets, number)
	return nil
}

// child returns the child for a token, made if it is new.
func (n *node) child(token string) *node {
	for i := range n.children {
		if n.children[i].token == token {
			return &n.children[i]
		}
	}
	index := -1
	if v, err := strconv.ParseInt(token, 10, 32); err == nil && strconv.FormatInt(v, 10) == token && v >= 0 {
		index = int(v)
	}
	n.children = append(n.children, node{token: token, index: index})
	return &n.children[len(n.children)-1]
}

// Extract checks that record is exactly one JSON object, with white space around it at most, and sets out[i] to the
// bytes of the value at pointer i, or to nil if there is none. The values alias record. Of members with equal keys
// the first counts, in every object on the way. out is as long as the list of pointers. The error is a *RejectError;
// out is then all nil.
func (x *Extractor) Extract(record []byte, out [][]byte) error {
	if len(out) != x.count {
		panic(fmt.Sprintf("BUG: room for %d values of %d pointers", len(out), x.count))
	}
	clear(out)
	i, err := openRecord(record)
	if err != nil {
		return err
	}
	i, f := x.object(record, i, 0, &x.root, out)
	if f != fine {
		clear(out)
		return f.reject(i)
	}
	if err := closeRecord(record, i); err != nil {
		clear(out)
		return err
	}
	return nil
}

// object walks one object whose members n's children name.
func (x *Extractor) object(src []byte, i, depth int, n *node, out [][]byte) (int, flaw) {
	for c := range n.children {
		n.children[c].seen = false
	}
	m, f := openObject(src, i, depth)
	for f == fine && m.next(&f) {
		key := src[m.keyStart:m.keyEnd]
		if m.escaped {
			x.scratch = appendUnescaped(x.scratch[:0], key)
			key = x.scratch
		}
		var hit *node
		for c := range n.children {
			if n.children[c].token == string(key) {
				hit = &n.children[c]
				break
			}
		}
		m.i, f = x.value(src, m.i, depth+1, hit, out)
	}
	return m.i, f
}

// list walks one list whose elements n's children name by index.
func (x *Extractor) list(src []byte, i, depth int, n *node, out [][]byte) (int, flaw) {
	for c := range n.children {
		n.children[c].seen = false
	}
	l, f := openList(src, i, depth)
	for at := 0; f == fine && l.next(&f); at++ {
		var hit *node
		for c := range n.children {
			if n.children[c].index == at {
				hit = &n.children[c]
				break
			}
		}
		l.i, f = x.value(src, l.i, depth+1, hit, out)
	}
	return l.i, f
}

// value takes one value, and notes it if a pointer leads to it or through it.
func (x *Extractor) value(src []byte, i, depth int, n *node, out [][]byte) (end int, f flaw) {
	switch {
	case n == nil || n.seen || i >= len(src):
		return scanValue(src, i, depth)
	case src[i] == '{' && len(n.children) > 0:
		end, f = x.object(src, i, depth, n, out)
	case src[i] == '[' && len(n.children) > 0:
		end, f = x.list(src, i, depth, n, out)
	default:
		end, f = scanValue(src, i, depth)
	}
	n.seen = true
	for _, t := range n.targets {
		out[t] = src[i:end:end]
	}
	return end, f
}
