package plan

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Faults of a path or glob, as texts for people.
var (
	errPathEmpty    = errors.New("it is empty")
	errPathAbsolute = errors.New("it is absolute; write it from the repository root")
	errPathOutside  = errors.New("it leaves the repository (..)")
	errPathGit      = errors.New("it lies in .git, which workers never own")
	errPathNUL      = errors.New("it contains a NUL byte")
	errPathUTF8     = errors.New("it is not UTF-8")
)

// CanonicalPath returns the one spelling of a path in the repository: relative to
// the root, without empty and "." parts, in Unicode form NFC. Files that differ
// only in their normal form are one file here, as on the file systems that
// compose names. A path that is empty, absolute, leaves the repository or lies in
// .git is an error.
func CanonicalPath(path string) (string, error) {
	clean, err := cleanPath(path)
	return norm.NFC.String(clean), err
}

// cleanPath is CanonicalPath in the normal form in which the path is written: git
// knows a file by its bytes.
func cleanPath(path string) (string, error) {
	if err := checkPathText(path); err != nil {
		return "", err
	}
	parts, err := cleanParts(path)
	if err != nil {
		return "", err
	}
	return strings.Join(parts, "/"), nil
}

// spellings returns the path and its other normal forms, one of which git may
// know although an editor wrote another.
func spellings(path string) []string {
	if isASCII(path) {
		return []string{path}
	}
	all := []string{path}
	for _, form := range []norm.Form{norm.NFC, norm.NFD} {
		if s := form.String(path); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func checkPathText(path string) error {
	switch {
	case path == "":
		return errPathEmpty
	case !utf8.ValidString(path):
		return errPathUTF8
	case strings.ContainsRune(path, 0):
		return errPathNUL
	case strings.HasPrefix(path, "/"), hasDriveLetter(path):
		return errPathAbsolute
	}
	return nil
}

func hasDriveLetter(path string) bool {
	return len(path) >= 3 && path[1] == ':' && (path[2] == '/' || path[2] == '\\') &&
		unicode.IsLetter(rune(path[0]))
}

// cleanParts splits at slashes and drops what says nothing.
func cleanParts(path string) ([]string, error) {
	raw := strings.Split(path, "/")
	parts := make([]string, 0, len(raw))
	for _, part := range raw {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			return nil, errPathOutside
		case strings.EqualFold(part, ".git"):
			return nil, errPathGit
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, errPathEmpty
	}
	return parts, nil
}

// canonical is CanonicalPath for paths that git listed: what is no path in the
// repository stays as it is and so matches nothing but itself.
func canonical(path string, foldCase bool) string {
	if plain(path) {
		if !foldCase {
			return path
		}
		return foldString(path)
	}
	if c, err := CanonicalPath(path); err == nil {
		path = c
	}
	if foldCase {
		path = foldString(path)
	}
	return path
}

// plain reports that a path is canonical already, which nearly every path is.
func plain(path string) bool {
	prev := byte('/')
	for i := range len(path) {
		c := path[i]
		if c >= utf8.RuneSelf || (prev == '/' && (c == '/' || c == '.')) {
			return false
		}
		prev = c
	}
	return prev != '/'
}

// foldString maps every rune to the smallest of its case variants, so that two
// strings are equal exactly when they differ in simple case only.
func foldString(s string) string {
	return strings.Map(foldRune, s)
}

func foldRune(r rune) rune {
	if r < utf8.RuneSelf && r != 'k' && r != 's' { // these two have variants beyond ASCII
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}
	low := r
	for v := unicode.SimpleFold(r); v != r; v = unicode.SimpleFold(v) {
		low = min(low, v)
	}
	return low
}
