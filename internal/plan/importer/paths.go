package importer

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"mendflow/internal/plan"
)

var (
	errOutside = errors.New("it lies outside the repository")
	errScheme  = errors.New("it is no file")
)

// inside turns a path, or a URI reference that is resolved already, into one of the repository.
func inside(reference, root string, uri bool) (string, error) {
	p := reference
	if uri {
		var err error
		if p, err = filePath(reference); err != nil {
			return "", err
		}
	}
	p = strings.ReplaceAll(p, `\`, "/")
	if windowsDrive(p) {
		p = "/" + p
	}
	if strings.HasPrefix(p, "/") {
		root = strings.TrimSuffix(strings.ReplaceAll(root, `\`, "/"), "/")
		if windowsDrive(root) {
			root = "/" + root
		}
		rest, ok := strings.CutPrefix(path.Clean(p), root+"/")
		if root == "" || !ok {
			return "", errOutside
		}
		p = rest
	}
	p = path.Clean(p)
	if p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return "", errOutside
	}
	canonical, err := plan.CanonicalPath(p)
	if err != nil {
		return "", err
	}
	return canonical, nil
}

func windowsDrive(p string) bool {
	return len(p) >= 3 && p[1] == ':' && p[2] == '/' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}

// filePath is the path of a URI reference, unescaped.
func filePath(reference string) (string, error) {
	u, err := url.Parse(reference)
	if err != nil {
		// Tools write paths where a URI belongs; what is no URI is taken for one.
		if strings.Contains(reference, "://") {
			return "", fmt.Errorf("%q is no URI", clip(reference, 80))
		}
		return reference, nil
	}
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost"):
		p := u.Path
		if len(p) > 1 && windowsDrive(p[1:]) {
			p = p[1:]
		}
		return p, nil
	case len(u.Scheme) == 1: // a drive, not a scheme
		return reference, nil
	case u.Scheme != "" || u.Host != "":
		return "", errScheme
	}
	return u.Path, nil
}

// bases resolves uriBaseIds: each may rest on another.
type bases struct {
	uris map[string]artifactLocation
}

// resolve joins a reference with its base. One that the file does not locate is, by
// convention, the root of the sources.
func (b *bases) resolve(l artifactLocation) (string, error) {
	uri := l.URI
	for depth := 0; l.BaseID != ""; depth++ {
		base, ok := b.uris[l.BaseID]
		if depth > len(b.uris) {
			return "", fmt.Errorf("the base %s rests on itself", clip(l.BaseID, 40))
		}
		if !ok || base.URI == "" && base.BaseID == "" {
			if outsideBase(l.BaseID) {
				return "", errOutside
			}
			return uri, nil // as a relative path from the root
		}
		uri, l = join(base.URI, uri), base
	}
	return uri, nil
}

// outsideBase knows the bases that tools use for code that is not the repository's.
func outsideBase(id string) bool {
	switch strings.ToUpper(strings.Trim(id, "%")) {
	case "GOROOT", "GOMODCACHE", "SYSROOT", "STDLIB":
		return true
	}
	return false
}

func join(base, ref string) string {
	if base == "" || strings.Contains(ref, "://") || strings.HasPrefix(ref, "/") {
		return ref
	}
	return strings.TrimSuffix(base, "/") + "/" + ref
}
