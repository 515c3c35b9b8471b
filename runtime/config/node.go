package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What a file may cost. The parser's work grows with the square of the number of tokens (0.3 s for 22,000 of them
// in maps, measured) and of the nesting; a configuration of a hundred sinks has some 6,000 tokens and six levels.
const (
	maxFile   = 1 << 20
	maxTokens = 20_000
	maxDepth  = 64
)

// pos is a place in the file, both from 1; the column counts characters. The zero pos is no place.
type pos struct{ line, column int }

type kind uint8

const (
	scalar kind = iota
	mapping
	sequence
)

// style is what YAML takes a scalar for.
type style uint8

const (
	plainText style = iota
	quotedText
	number
	boolean
	null
)

func (s style) String() string {
	return [...]string{"a text", "a text in quotes", "a number", "true or false", "nothing"}[s]
}

// node is one value of the file. Without aliases it is a tree.
type node struct {
	pos     pos // of the value; of its key for a mapping or sequence in a mapping
	kind    kind
	style   style   // of a scalar
	text    string  // of a scalar, references replaced
	file    string  // its one reference, if the whole text was one to a file
	foreign bool    // text came at least in part out of a reference, and is not to be repeated
	lost    bool    // a reference in it could not be replaced: reported, has no value
	entries []entry // of a mapping, in the order of the file
	items   []*node // of a sequence
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	pos   pos // of the key
	value *node
}

func (n *node) what() string {
	switch n.kind {
	case mapping:
		return "a mapping"
	case sequence:
		return "a list"
	}
	return n.style.String()
}

// syntaxError is the one mistake that ends the reading of a file.
type syntaxError struct {
	pos     pos
	message string
}

func (e *syntaxError) Error() string { return e.message }

// parseYAML turns text, which is UTF-8 with plain line feeds, into the tree of its one document. The error is a
// *syntaxError.
func parseYAML(text string) (root *node, err error) {
	defer func() {
		// The library is not ours, and this is the place where it meets a stranger's bytes: that it stumbles is
		// the file's fault as far as the operator is concerned.
		if r := recover(); r != nil {
			root, err = nil, &syntaxError{message: "not YAML that can be read (the parser gave up): check brackets, quotes and indentation"}
		}
	}()
	tokens := lexer.Tokenize(text)
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var at interface {
			GetToken() *token.Token
			GetMessage() string
		}
		if errors.As(err, &at) {
			return nil, &syntaxError{tokenPos(at.GetToken()), "not YAML: " + at.GetMessage()}
		}
		return nil, &syntaxError{message: "not YAML: " + firstLine(err.Error())}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			at := tokenPos(doc.Body.GetToken())
			if second, err := convert(doc.Body, 0); err == nil {
				at = second.pos
			}
			return nil, &syntaxError{at, "a second document begins: a configuration is one document, remove the ---"}
		}
		body = doc.Body
	}
	if body == nil {
		return nil, &syntaxError{message: "is empty: a configuration needs at least agent, datasets, inputs and sinks"}
	}
	return convert(body, 0)
}

// checkTokens refuses what the parser should not even begin with: too much, too deep, and the parts of YAML that
// a configuration does not use.
func checkTokens(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return &syntaxError{tokenPos(tokens[maxTokens]), fmt.Sprintf("more than %d YAML tokens: split the configuration over several agents", maxTokens)}
	}
	depth, line, row := 0, 0, 0 // open brackets; "-" and "?" in one line
	for _, t := range tokens {
		if l := t.Position.Line; l != line {
			line, row = l, 0
		}
		refuse := ""
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			row++
		case token.MappingKeyType:
			refuse = `keys that begin with "?" are not supported: write key: value`
		case token.AnchorType:
			refuse = `anchors are not supported: write the value where it is used (a text that begins with "&" needs quotes)`
		case token.AliasType:
			refuse = `aliases are not supported: write the value where it is used (a text that begins with "*" needs quotes)`
		case token.MergeKeyType:
			refuse = "merge keys are not supported: write the keys where they are used"
		case token.TagType:
			refuse = `tags are not supported: remove it (a text that begins with "!" needs quotes)`
		case token.DirectiveType:
			refuse = "directives are not supported: remove the line"
		}
		if depth+row > maxDepth {
			refuse = fmt.Sprintf("more than %d levels inside one another", maxDepth)
		}
		if refuse != "" {
			return &syntaxError{tokenPos(t), refuse}
		}
	}
	return nil
}

func convert(n ast.Node, depth int) (*node, error) {
	at := tokenPos(n.GetToken())
	if depth > maxDepth {
		return nil, &syntaxError{at, fmt.Sprintf("more than %d levels inside one another", maxDepth)}
	}
	text := func(s style, v string) (*node, error) { return &node{pos: at, style: s, text: v}, nil }
	switch n := n.(type) {
	case *ast.MappingNode:
		return convertMapping(n.Values, at, depth)
	case *ast.MappingValueNode:
		return convertMapping([]*ast.MappingValueNode{n}, at, depth)
	case *ast.SequenceNode:
		out := &node{pos: at, kind: sequence}
		for _, item := range n.Values {
			c, err := convert(item, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, c)
		}
		return out, nil
	case *ast.StringNode:
		if t := n.Token.Type; t == token.SingleQuoteType || t == token.DoubleQuoteType {
			return text(quotedText, n.Value)
		}
		return text(plainText, n.Value)
	case *ast.LiteralNode:
		return text(quotedText, n.Value.Value)
	case *ast.IntegerNode:
		return text(number, n.Token.Value)
	case *ast.FloatNode:
		return text(number, n.Token.Value)
	case *ast.InfinityNode, *ast.NanNode:
		return text(number, n.GetToken().Value)
	case *ast.BoolNode:
		return text(boolean, strings.ToLower(n.Token.Value))
	case *ast.NullNode:
		return text(null, "")
	}
	return nil, &syntaxError{at, "not supported here: write plain keys, lists and values"}
}

func convertMapping(values []*ast.MappingValueNode, at pos, depth int) (*node, error) {
	out := &node{pos: at, kind: mapping}
	for i, v := range values {
		k, ok := v.Key.(ast.Node)
		if !ok || k.GetToken() == nil {
			return nil, &syntaxError{at, "a key that is not a plain text"}
		}
		e := entry{pos: tokenPos(k.GetToken())}
		switch k := k.(type) {
		case *ast.StringNode:
			e.key = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
			e.key = k.GetToken().Value
		default:
			return nil, &syntaxError{e.pos, "a key that is not a plain text"}
		}
		c, err := convert(v.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if c.kind != scalar || c.style == null {
			c.pos = e.pos
		}
		if i == 0 {
			out.pos = e.pos
		}
		e.value = c
		out.entries = append(out.entries, e)
	}
	return out, nil
}

func tokenPos(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{}
	}
	return pos{t.Position.Line, t.Position.Column}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// badText returns the place of the first byte of text that is not UTF-8 or that no configuration holds.
func badText(text string) (at pos, message string) {
	line, column := 1, 1
	for i, r := range text {
		switch {
		case r == '\n':
			line, column = line+1, 0
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			return pos{line, column}, "a byte that is not UTF-8: save the file as UTF-8"
		case r < ' ' && r != '\t', r == 0x7f:
			return pos{line, column}, fmt.Sprintf("control character %#x: remove it", r)
		}
		column++
	}
	return pos{}, ""
}
