package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/strictyaml"
)

// Fault is something wrong with a file, at its place. Line and Column count from
// one and are zero when the fault is about no line; Path is like
// nodes[2].depends_on[0]. A warning does not make the file invalid.
type Fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy,omitempty"`
	Warning bool   `json:"warning,omitempty"`
}

// String renders the fault in one line, as compilers do.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ":")
		if f.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", f.Line, f.Column)
		}
		b.WriteString(" ")
	}
	if f.Warning {
		b.WriteString("warning: ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Problem)
	if f.Remedy != "" {
		b.WriteString("; " + f.Remedy)
	}
	return b.String()
}

// Faults are all that was found, in the order of the file.
type Faults []Fault

// Errors returns what makes the file invalid.
func (fs Faults) Errors() Faults {
	return slices.DeleteFunc(slices.Clone(fs), func(f Fault) bool { return f.Warning })
}

// Warnings returns what an author should look at.
func (fs Faults) Warnings() Faults {
	return slices.DeleteFunc(slices.Clone(fs), func(f Fault) bool { return !f.Warning })
}

// Err returns the faults as an error, or nil when there are none but warnings.
func (fs Faults) Err() error {
	if errs := fs.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// Error renders one fault a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders by place, errors before warnings at one place, and drops repetitions.
func (fs Faults) sorted() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(fs)
}

// FaultReport collects the faults of one file and finds their positions in it.
// The zero value collects without positions.
type FaultReport struct {
	file   string
	root   *strictyaml.Node
	faults Faults
	unread []string // paths of what could not be read
}

// NewFaultReport starts a report for a file that was read into root.
func NewFaultReport(file string, root *strictyaml.Node) *FaultReport {
	return &FaultReport{file: file, root: root}
}

// AddFound takes over what strict decoding found.
func (r *FaultReport) AddFound(found []strictyaml.Fault) {
	for _, f := range found {
		r.unread = append(r.unread, f.Path)
		r.faults = append(r.faults, Fault{
			File: r.file, Line: f.Line, Column: f.Column, Path: f.Path, Problem: f.Problem, Remedy: f.Remedy,
		})
	}
}

// Add reports an error at a path, unless one is reported at that path or inside
// already: a rule says nothing sensible about a value that could not be read.
func (r *FaultReport) Add(path, problem, remedy string) {
	if !r.Broken(path) {
		r.add(path, problem, remedy, false)
	}
}

// AddMissing reports that a key of the mapping at path is missing, unless an
// unknown key of it was probably meant to be that one.
func (r *FaultReport) AddMissing(path, key, problem, remedy string) {
	for _, f := range r.faults {
		parent, _, _ := cutLast(f.Path, ".")
		if parent == path && f.Remedy == strictyaml.DidYouMean(key) {
			return
		}
	}
	r.Add(strictyaml.Child(path, key), problem, remedy)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// Warn reports a warning at a path.
func (r *FaultReport) Warn(path, problem, remedy string) {
	r.add(path, problem, remedy, true)
}

func (r *FaultReport) add(path, problem, remedy string, warning bool) {
	f := Fault{File: r.file, Path: path, Problem: problem, Remedy: remedy, Warning: warning}
	if r.root != nil {
		f.Line, f.Column = r.root.At(path)
	}
	r.faults = append(r.faults, f)
}

// Broken reports whether an error was found at the path, or below it.
func (r *FaultReport) Broken(path string) bool {
	for _, f := range r.faults {
		if rest, ok := strings.CutPrefix(f.Path, path); ok && !f.Warning && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// Faults returns everything reported, in the order of the file.
func (r *FaultReport) Faults() Faults { return r.faults.sorted() }
