package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// parseJSON reads valid JSON. It has a reader of its own because the YAML library
// miscounts columns after tabs, which JSON is often indented with.
func parseJSON(data []byte) (*Node, []Fault) {
	r := jsonReader{data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	r.decoder.UseNumber()
	r.lines = append(r.lines, 0)
	for i, c := range data {
		if c == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	root := r.value("")
	return root, r.faults
}

type jsonReader struct {
	data    []byte
	decoder *json.Decoder
	lines   []int // offsets at which lines begin
	faults  []Fault
}

// next returns the next token and where it begins. The input is known to be
// valid, so that no error is possible but a number out of range, kept as text.
func (r *jsonReader) next() (token json.Token, line, column int) {
	at := int(r.decoder.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	token, err := r.decoder.Token()
	if err != nil {
		token = nil
	}
	line = sort.SearchInts(r.lines, at+1)
	return token, line, utf8.RuneCount(r.data[r.lines[line-1]:at]) + 1
}

func (r *jsonReader) value(path string) *Node {
	token, line, column := r.next()
	n := &Node{Line: line, Column: column}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			n.Kind = List
			for i := 0; r.decoder.More(); i++ {
				n.Items = append(n.Items, r.value(Index(path, i)))
			}
		} else {
			n.Kind = Map
			r.object(n, path)
		}
		r.next()
	case string:
		n.Kind, n.Text = Text, t
	case json.Number:
		n.Kind, n.Text = Int, t.String()
		if strings.ContainsAny(n.Text, ".eE") {
			n.Kind = Float
		}
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(t)
	}
	return n
}

func (r *jsonReader) object(n *Node, path string) {
	seen := map[string]int{}
	for r.decoder.More() {
		token, line, column := r.next()
		key, _ := token.(string)
		child := Child(path, key)
		value := r.value(child)
		if first, twice := seen[key]; twice {
			r.faults = append(r.faults, Fault{
				Line: line, Column: column, Path: child,
				Problem: fmt.Sprintf("key %q is given twice", key), Remedy: fmt.Sprintf("the first is in line %d", first),
			})
			continue
		}
		seen[key] = line
		n.Entries = append(n.Entries, Entry{Key: key, Line: line, Column: column, Value: value})
	}
}
