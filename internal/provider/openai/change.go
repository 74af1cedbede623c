package openai

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// change is a checked change of one file.
type change struct {
	path    string
	content string
	remove  bool
}

func (c change) verb() string {
	if c.remove {
		return "delete_file"
	}
	return "write_file"
}

// plan checks all changes of an answer before any is made.
func (t *tree) plan(files []fileChange) ([]change, error) {
	var changes []change
	seen := map[string]bool{}
	for _, f := range files {
		clean, err := t.writable(f.Path)
		if err != nil {
			return nil, err
		}
		if seen[clean] {
			return nil, fmt.Errorf("path %q is changed twice", f.Path)
		}
		seen[clean] = true
		c := change{path: clean, remove: f.Delete}
		switch {
		case f.Delete:
			if _, err := t.content(clean); err != nil {
				return nil, err
			}
		case f.Content != nil:
			c.content = *f.Content
		case len(f.Replace) > 0:
			data, err := t.content(clean)
			if err != nil {
				return nil, err
			}
			c.content = string(data)
			for _, r := range f.Replace {
				if c.content, err = replaced(c.content, clean, r.Old, r.New); err != nil {
					return nil, err
				}
			}
		default:
			return nil, fmt.Errorf("path %q has neither content nor replacements", f.Path)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (t *tree) apply(c change) error {
	if c.remove {
		return t.remove(c.path)
	}
	return t.write(c.path, c.content)
}

// show inlines the files that any of the globs matches, as far as there is room;
// those that are left out are named.
func (t *tree) show(globs []string, room int) string {
	var b strings.Builder
	var left []string
	seen := map[string]bool{}
	for _, glob := range globs {
		_ = t.walk(glob, func(name string) bool { // a glob that is not valid shows nothing
			if seen[name] || len(seen) >= maxFiles {
				return len(seen) < maxFiles
			}
			seen[name] = true
			data, err := t.content(name)
			if err != nil || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
				return true
			}
			if len(data) > room {
				left = append(left, name)
				return true
			}
			room -= len(data)
			fence := fenceFor(data)
			fmt.Fprintf(&b, "### %s\n\n%s\n%s", name, fence, data)
			if len(data) > 0 && data[len(data)-1] != '\n' {
				b.WriteString("\n")
			}
			b.WriteString(fence + "\n\n")
			return true
		})
	}
	if b.Len() == 0 && len(left) == 0 {
		return "None of the files that the task names exist yet.\n"
	}
	for _, name := range left {
		fmt.Fprintf(&b, "Too large to be shown: %s\n", name)
	}
	return b.String()
}

// fenceFor is a fence that does not occur in the data.
func fenceFor(data []byte) string {
	fence := "```"
	for bytes.Contains(data, []byte(fence)) {
		fence += "`"
	}
	return fence
}
