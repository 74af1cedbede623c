package plan

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"

	"mendflow/internal/strictyaml"
)

const maxIDLength = 64

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// CheckID says what is wrong with an id of a node, finding, pool or account. Ids
// become parts of paths, git refs and workflow ids, on file systems that ignore case.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("the id is missing")
	case len(id) > maxIDLength:
		return fmt.Errorf("the id has %d characters, at most %d are allowed", len(id), maxIDLength)
	case !idPattern.MatchString(id):
		return fmt.Errorf("%q is no id: use letters, digits, _, - and single dots inside", strictyaml.Shorten(id, 40))
	case strings.HasSuffix(strings.ToLower(id), ".lock"):
		return fmt.Errorf("%q ends in .lock, which git reserves", id)
	}
	return nil
}

// CheckPlanID is CheckID for plans, which are lower case and begin with a letter or digit.
func CheckPlanID(id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if id != strings.ToLower(id) {
		return fmt.Errorf("%q has capital letters; a plan's id is lower case", id)
	}
	if id[0] == '-' || id[0] == '_' {
		return fmt.Errorf("%q begins with %q; begin with a letter or digit", id, id[:1])
	}
	return nil
}

// idFromFile derives a plan id from a file's name; empty when nothing is left of it.
func idFromFile(name string) string {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		base = strings.TrimSuffix(base, ext)
	}
	id := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '-'
	}, strings.ToLower(base))
	for strings.Contains(id, "..") {
		id = strings.ReplaceAll(id, "..", ".")
	}
	id = strings.TrimLeft(id, "-_.")
	id = id[:min(len(id), maxIDLength)]
	id = strings.TrimSuffix(strings.TrimRight(id, "-_."), ".lock")
	if CheckPlanID(id) != nil {
		return ""
	}
	return id
}

// idIndex finds ids, which are unique ignoring case, and tells misspelt ones.
type idIndex struct {
	index map[string]int
	ids   []string
}

func newIDIndex(size int) *idIndex {
	return &idIndex{index: make(map[string]int, size)}
}

// add returns the index of an earlier id that this one repeats, or -1.
func (x *idIndex) add(id string, i int) int {
	key := strings.ToLower(id)
	if first, twice := x.index[key]; twice {
		return first
	}
	x.index[key] = i
	x.ids = append(x.ids, id)
	return -1
}

// find returns the index of exactly this id.
func (x *idIndex) find(id string, spelling func(int) string) (int, bool) {
	i, ok := x.index[strings.ToLower(id)]
	return i, ok && spelling(i) == id
}

// remedy helps with an unknown id. Numbered ids are all near to each other, so a
// guess is made only where more than digits differ, or nothing but case.
func (x *idIndex) remedy(id, kind string) string {
	if len(x.ids) == 0 {
		return fmt.Sprintf("no %s are declared", kind)
	}
	near, ok := strictyaml.Nearest(id, x.ids)
	if ok && (strings.EqualFold(near, id) || withoutDigits(near) != withoutDigits(id)) {
		return strictyaml.DidYouMean(near)
	}
	return fmt.Sprintf("known %s are %s", kind, enumerate(x.ids))
}

func withoutDigits(id string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return unicode.ToLower(r)
	}, id)
}

// enumerate lists at most eight texts.
func enumerate(texts []string) string {
	const most = 8
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}
