package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

const (
	maxBytes  = 16 << 20
	maxDepth  = 1000    // nesting; deeper files exhaust the stack of the YAML library
	maxValues = 500_000 // after aliases are expanded
)

// Parse reads one document into nodes. A syntax error ends the reading, so it is
// then the only fault; duplicate keys, aliases without anchor and further
// documents are all reported. The node is nil when nothing can be decoded.
func Parse(data []byte) (*Node, []Fault) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if fault, bad := checkText(data); bad {
		return nil, []Fault{fault}
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(data) {
		return parseJSON(data)
	}
	if fault, bad := checkDepth(data); bad {
		return nil, []Fault{fault}
	}
	file, err := parseYAML(data)
	if err != nil {
		return nil, []Fault{syntaxFault(err)}
	}
	b := builder{anchors: map[string]ast.Node{}, open: map[string]bool{}}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if body != nil {
			line, column := start(doc.Body)
			b.fault(line, column, "", "the file has a second document", "keep one document per file")
			break
		}
		body = doc.Body
	}
	if body == nil {
		return nil, []Fault{{Line: 1, Column: 1, Problem: "the file is empty"}}
	}
	root := b.build(body, "")
	return root, b.faults
}

func checkText(data []byte) (Fault, bool) {
	if len(data) > maxBytes {
		return Fault{Line: 1, Column: 1, Problem: fmt.Sprintf("the file has %d bytes; at most %d are read", len(data), maxBytes)}, true
	}
	line := 1
	for text := range bytes.Lines(data) {
		switch {
		case !utf8.Valid(text):
			return Fault{Line: line, Column: 1, Problem: "the line is not UTF-8"}, true
		case bytes.IndexByte(text, 0) >= 0:
			return Fault{Line: line, Column: 1, Problem: "the line contains a NUL byte"}, true
		}
		line++
	}
	return Fault{}, false
}

// checkDepth bounds what the recursive YAML parser is given: brackets, whatever
// they mean where they stand, and the compact lists (- - - x) of one line.
func checkDepth(data []byte) (Fault, bool) {
	line, brackets := 1, 0
	for text := range bytes.Lines(data) {
		compact := 0
		for _, c := range bytes.TrimLeft(text, " ") {
			if c != '-' && c != '?' && c != ' ' {
				break
			}
			compact++
		}
		for _, c := range text {
			switch c {
			case '[', '{':
				brackets++
			case ']', '}':
				brackets = max(0, brackets-1)
			}
		}
		if compact > 2*maxDepth || brackets > maxDepth {
			return Fault{Line: line, Column: 1, Problem: fmt.Sprintf("values are nested more than %d deep", maxDepth)}, true
		}
		line++
	}
	return Fault{}, false
}

// parseYAML guards against the library's own panics on malformed input.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, errors.New("it cannot be read as YAML")
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

func syntaxFault(err error) Fault {
	fault := Fault{Line: 1, Column: 1, Problem: err.Error()}
	var located yaml.Error
	if errors.As(err, &located) {
		fault.Problem = located.GetMessage()
		if t := located.GetToken(); t != nil && t.Position != nil {
			fault.Line, fault.Column = max(1, t.Position.Line), max(1, t.Position.Column)
		}
	}
	fault.Problem = "the YAML is malformed: " + fault.Problem
	return fault
}

// builder turns the library's tree into nodes.
type builder struct {
	anchors map[string]ast.Node
	open    map[string]bool // anchors being expanded
	values  int
	faults  []Fault
}

func (b *builder) fault(line, column int, path, problem, remedy string) {
	b.faults = append(b.faults, Fault{Line: line, Column: column, Path: path, Problem: problem, Remedy: remedy})
}

// build returns a node of kind Null where it reports a fault.
func (b *builder) build(n ast.Node, path string) *Node {
	line, column := start(n)
	out := &Node{Line: line, Column: column}
	if b.values++; b.values > maxValues {
		if b.values == maxValues+1 {
			b.fault(line, column, path, fmt.Sprintf("the file has more than %d values, aliases expanded", maxValues), "")
		}
		return out
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.Kind = Map
		b.entries(out, n.Values, path)
	case *ast.MappingValueNode:
		out.Kind = Map
		b.entries(out, []*ast.MappingValueNode{n}, path)
	case *ast.SequenceNode:
		out.Kind = List
		for i, item := range n.Values {
			out.Items = append(out.Items, b.build(item, Index(path, i)))
		}
	case *ast.AnchorNode:
		b.anchors[nameOf(n.Name)] = n.Value
		b.open[nameOf(n.Name)] = true
		defer delete(b.open, nameOf(n.Name))
		return b.build(n.Value, path)
	case *ast.AliasNode:
		return b.alias(n, path)
	case *ast.TagNode:
		return b.tag(n, path)
	case nil:
	default:
		b.scalar(out, n, path)
	}
	return out
}

func (b *builder) scalar(out *Node, n ast.Node, path string) {
	switch n := n.(type) {
	case *ast.StringNode:
		out.Kind, out.Text = Text, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = Text, n.Value.Value
	case *ast.IntegerNode:
		out.Kind, out.Text = Int, n.Token.Value
	case *ast.FloatNode:
		out.Kind, out.Text = Float, n.Token.Value
	case *ast.InfinityNode:
		out.Kind, out.Text = Float, n.Token.Value
	case *ast.NanNode:
		out.Kind, out.Text = Float, n.Token.Value
	case *ast.BoolNode:
		out.Kind, out.Text = Bool, n.Token.Value
	case *ast.NullNode:
	default:
		b.fault(out.Line, out.Column, path, fmt.Sprintf("%s is not supported here", n.Type()), "")
	}
}

func (b *builder) alias(n *ast.AliasNode, path string) *Node {
	line, column := start(n)
	name := nameOf(n.Value)
	target, known := b.anchors[name]
	switch {
	case b.open[name]:
		b.fault(line, column, path, fmt.Sprintf("alias *%s contains itself", name), "")
	case !known:
		b.fault(line, column, path, fmt.Sprintf("alias *%s has no anchor before it", name), "")
	default:
		b.open[name] = true
		defer delete(b.open, name)
		return b.build(target, path)
	}
	return &Node{Line: line, Column: column}
}

// tag allows the tags that only repeat what YAML says anyway, and !!str.
func (b *builder) tag(n *ast.TagNode, path string) *Node {
	out := &Node{}
	if n.Value != nil {
		out = b.build(n.Value, path)
	}
	name := n.GetToken().Value
	want, known := map[string]Kind{"!!str": Text, "!!int": Int, "!!float": Float, "!!bool": Bool, "!!null": Null, "!!seq": List, "!!map": Map}[name]
	switch {
	case known && want == out.Kind:
	case name == "!!str" && out.Kind != List && out.Kind != Map:
		out.Kind = Text
	default:
		line, column := start(n)
		b.fault(line, column, path, fmt.Sprintf("tag %s does not fit", name), "leave the tag out")
	}
	return out
}

func (b *builder) entries(out *Node, values []*ast.MappingValueNode, path string) {
	seen := map[string]Entry{}
	var merged []Entry
	for _, v := range values {
		if v.Key.Type() == ast.MergeKeyType {
			merged = append(merged, b.merge(v.Value, path)...)
			continue
		}
		line, column := start(v.Key)
		key, ok := b.key(v.Key, path)
		if !ok {
			continue
		}
		child := Child(path, key)
		if first, twice := seen[key]; twice {
			b.fault(line, column, child, fmt.Sprintf("key %q is given twice", key), fmt.Sprintf("the first is in line %d", first.Line))
			continue
		}
		e := Entry{Key: key, Line: line, Column: column, Value: b.build(v.Value, child)}
		seen[key] = e
		out.Entries = append(out.Entries, e)
	}
	for _, e := range merged { // own keys win, then the first merged one
		if _, own := seen[e.Key]; !own {
			seen[e.Key] = e
			out.Entries = append(out.Entries, e)
		}
	}
}

func (b *builder) key(n ast.MapKeyNode, path string) (string, bool) {
	var node ast.Node = n
	if k, ok := n.(*ast.MappingKeyNode); ok {
		node = k.Value
	}
	var out Node
	switch k := node.(type) {
	case *ast.StringNode, *ast.LiteralNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		b.scalar(&out, k, path)
		return out.Text, true
	}
	line, column := start(n)
	b.fault(line, column, path, "a key is not text", "")
	return "", false
}

// merge returns the entries of <<: *a or <<: [*a, *b].
func (b *builder) merge(n ast.Node, path string) []Entry {
	value := b.build(n, path)
	if value.Kind == Map {
		return value.Entries
	}
	if value.Kind == List {
		var all []Entry
		for _, item := range value.Items {
			all = append(all, item.Entries...)
		}
		return all
	}
	line, column := start(n)
	b.fault(line, column, path, "<< takes a mapping or a list of mappings", "")
	return nil
}

func nameOf(n ast.Node) string {
	if n == nil {
		return ""
	}
	return strings.TrimSpace(n.GetToken().Value)
}

// start is where a value begins in the file; a block mapping begins at its first key.
func start(n ast.Node) (line, column int) {
	switch m := n.(type) {
	case nil:
		return 1, 1
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return start(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return start(m.Key)
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return 1, 1
	}
	return max(1, t.Position.Line), max(1, t.Position.Column)
}
