package strictyaml

import (
	"strconv"
	"strings"
)

// Kind is the type of a value as it is written.
type Kind int

// Kinds.
const (
	Null Kind = iota
	Bool
	Int
	Float
	Text
	List
	Map
)

// noun names a kind in a fault's text.
func (k Kind) noun() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "a boolean"
	case Int, Float:
		return "a number"
	case Text:
		return "text"
	case List:
		return "a list"
	default:
		return "a mapping"
	}
}

// Node is a value with its place in the file. Lines and columns count from one;
// columns count characters.
type Node struct {
	Kind    Kind
	Line    int
	Column  int
	Text    string // scalars: text after quoting is resolved, numbers and booleans as written
	Items   []*Node
	Entries []Entry
}

// Entry is a key of a mapping with its value. Line and Column are the key's.
type Entry struct {
	Key    string
	Line   int
	Column int
	Value  *Node
}

// Fault is something wrong at a place. Path is like nodes[2].depends_on[0] and
// empty for the file as a whole; Remedy may be empty.
type Fault struct {
	Line    int
	Column  int
	Path    string
	Problem string
	Remedy  string
}

// Get returns the value of a key, or nil. The receiver may be nil.
func (n *Node) Get(key string) *Node {
	if e := n.entry(key); e != nil {
		return e.Value
	}
	return nil
}

func (n *Node) entry(key string) *Entry {
	if n == nil {
		return nil
	}
	for i := range n.Entries {
		if n.Entries[i].Key == key {
			return &n.Entries[i]
		}
	}
	return nil
}

// At returns the position of a path like nodes[2].depends_on[0], or of its
// nearest ancestor that is written in the file. A mapping's place is that of its
// key when it has one.
func (n *Node) At(path string) (line, column int) {
	if n == nil {
		return 0, 0
	}
	line, column = n.Line, n.Column
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		var next *Node
		if index, ok := strings.CutPrefix(step, "["); ok {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || i < 0 || i >= len(n.Items) {
				return line, column
			}
			next = n.Items[i]
			line, column = next.Line, next.Column
		} else {
			e := n.entry(step)
			if e == nil {
				return line, column
			}
			next = e.Value
			line, column = place(e)
		}
		n = next
	}
	return line, column
}

// place is where a fault about an entry is shown: at a scalar or flow value on
// the key's own line, else at the key, since a block's first line says little.
func place(e *Entry) (line, column int) {
	if e.Value != nil && e.Value.Line == e.Line && e.Value.Kind != Null {
		return e.Value.Line, e.Value.Column
	}
	return e.Line, e.Column
}

// Child appends a key to a path.
func Child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index appends an index to a path.
func Index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}
