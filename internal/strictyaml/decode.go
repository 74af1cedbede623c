package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshaler is a type that reads more than one shape of value.
type Unmarshaler interface {
	// UnmarshalStrict reads n, which is never of kind Null, and reports through c.
	UnmarshalStrict(c *Context, n *Node, path string)
}

// Enum is a text type with a closed list of values.
type Enum interface {
	// Values lists what may be written, in the order in which people know it.
	Values() []string
}

// Context collects faults while values are decoded.
type Context struct {
	faults []Fault
}

// Fault reports a fault at a node.
func (c *Context) Fault(n *Node, path, problem, remedy string) {
	c.faults = append(c.faults, Fault{Line: n.Line, Column: n.Column, Path: path, Problem: problem, Remedy: remedy})
}

// Decode reads a node into the value that the pointer refers to.
func (c *Context) Decode(n *Node, path string, into any) {
	c.decode(n, path, reflect.ValueOf(into).Elem())
}

// Decode reads a parsed document into a pointer to a struct and returns every
// fault, in the order of the file. The target holds what could be read even then.
func Decode(root *Node, into any) []Fault {
	c := &Context{}
	if root != nil {
		if root.Kind != Map {
			c.Fault(root, "", "the file holds "+root.Kind.noun()+", want a mapping with keys", "")
			return c.faults
		}
		c.Decode(root, "", into)
	}
	return c.faults
}

func (c *Context) decode(n *Node, path string, v reflect.Value) {
	if n.Kind == Null {
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		c.decode(n, path, v.Elem())
		return
	}
	switch target := v.Addr().Interface().(type) {
	case Unmarshaler:
		target.UnmarshalStrict(c, n, path)
		return
	case encoding.TextUnmarshaler:
		if n.Kind == List || n.Kind == Map {
			c.want(n, path, Text)
		} else if err := target.UnmarshalText([]byte(n.Text)); err != nil {
			c.Fault(n, path, err.Error(), "")
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		c.decodeStruct(n, path, v)
	case reflect.Slice:
		c.decodeSlice(n, path, v)
	case reflect.Map:
		c.decodeMap(n, path, v)
	case reflect.String:
		c.decodeText(n, path, v)
	case reflect.Bool:
		if c.want(n, path, Bool) {
			v.SetBool(strings.EqualFold(n.Text, "true"))
		}
	case reflect.Int, reflect.Int64:
		c.decodeInt(n, path, v)
	default:
		panic(fmt.Sprintf("decode %s: type %s is not supported", path, v.Type()))
	}
}

// want reports a fault unless the node has the kind.
func (c *Context) want(n *Node, path string, kind Kind) bool {
	if n.Kind == kind {
		return true
	}
	problem := fmt.Sprintf("it is %s, want %s", n.describe(), kind.noun())
	remedy := ""
	switch {
	case kind == Text && (n.Kind == Int || n.Kind == Float || n.Kind == Bool):
		remedy = fmt.Sprintf("put it in quotes: %q", n.Text)
	case kind == List && n.Kind == Text:
		remedy = fmt.Sprintf("write [%s]", n.Text)
	}
	c.Fault(n, path, problem, remedy)
	return false
}

func (n *Node) describe() string {
	switch n.Kind {
	case Int, Float:
		return "the number " + n.Text
	case Bool:
		return "the boolean " + n.Text
	case Text:
		return fmt.Sprintf("the text %s", strconv.Quote(Shorten(n.Text, 40)))
	default:
		return n.Kind.noun()
	}
}

// Shorten cuts a text to at most limit characters for a message.
func Shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}

func (c *Context) decodeStruct(n *Node, path string, v reflect.Value) {
	if n.Kind != Map {
		names := fieldNames(v.Type())
		c.Fault(n, path, fmt.Sprintf("it is %s, want a mapping", n.describe()), "its keys are "+strings.Join(names, ", "))
		return
	}
	for _, e := range n.Entries {
		index, ok := fieldIndex(v.Type(), e.Key)
		if !ok {
			c.unknownKey(e, path, v.Type())
			continue
		}
		c.decode(e.Value, Child(path, e.Key), v.Field(index))
	}
}

func (c *Context) unknownKey(e Entry, path string, t reflect.Type) {
	names := fieldNames(t)
	remedy := "known keys are " + strings.Join(names, ", ")
	if near, ok := Nearest(e.Key, names); ok {
		remedy = DidYouMean(near)
	}
	at := &Node{Line: e.Line, Column: e.Column}
	c.Fault(at, Child(path, e.Key), fmt.Sprintf("unknown key %q", e.Key), remedy)
}

func (c *Context) decodeSlice(n *Node, path string, v reflect.Value) {
	if !c.want(n, path, List) {
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		if item.Kind == Null {
			c.Fault(item, Index(path, i), "the list has an empty entry", "remove it")
			continue
		}
		c.decode(item, Index(path, i), out.Index(i))
	}
	v.Set(out)
}

// decodeMap reads free-form options: text keys, scalar values as they are written.
func (c *Context) decodeMap(n *Node, path string, v reflect.Value) {
	if !c.want(n, path, Map) {
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, e := range n.Entries {
		if e.Value.Kind == List || e.Value.Kind == Map {
			c.want(e.Value, Child(path, e.Key), Text)
			continue
		}
		out.SetMapIndex(reflect.ValueOf(e.Key), reflect.ValueOf(e.Value.Text))
	}
	v.Set(out)
}

func (c *Context) decodeText(n *Node, path string, v reflect.Value) {
	if !c.want(n, path, Text) {
		return
	}
	v.SetString(n.Text)
	enum, ok := v.Interface().(Enum)
	if !ok {
		return
	}
	values := enum.Values()
	for _, known := range values {
		if n.Text == known {
			return
		}
	}
	remedy := "write one of " + strings.Join(values, ", ")
	if near, ok := Nearest(n.Text, values); ok {
		remedy = fmt.Sprintf("%s (one of %s)", DidYouMean(near), strings.Join(values, ", "))
	}
	c.Fault(n, path, fmt.Sprintf("unknown value %q", Shorten(n.Text, 40)), remedy)
}

func (c *Context) decodeInt(n *Node, path string, v reflect.Value) {
	if n.Kind != Int {
		c.Fault(n, path, fmt.Sprintf("it is %s, want a whole number", n.describe()), "")
		return
	}
	number, err := strconv.ParseInt(n.Text, 10, v.Type().Bits())
	if err != nil {
		c.Fault(n, path, fmt.Sprintf("%s is no decimal whole number in range", n.Text), "")
		return
	}
	v.SetInt(number)
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || !f.IsExported() {
		return ""
	}
	return name
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := fieldName(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func fieldIndex(t reflect.Type, key string) (int, bool) {
	for i := range t.NumField() {
		if name := fieldName(t.Field(i)); name != "" && name == key {
			return i, true
		}
	}
	return 0, false
}
