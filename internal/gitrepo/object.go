package gitrepo

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object ids
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// objectFormat is a repository's extensions.objectFormat.
type objectFormat string

const (
	formatSHA1   objectFormat = "sha1"
	formatSHA256 objectFormat = "sha256"
)

func (f objectFormat) hexLen() int {
	if f == formatSHA256 {
		return sha256.Size * 2
	}
	return sha1.Size * 2
}

func (f objectFormat) hash() hash.Hash {
	if f == formatSHA256 {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // git's object ids
}

// id computes the id of an object.
func (f objectFormat) id(kind string, body []byte) string {
	h := f.hash()
	fmt.Fprintf(h, "%s %d\x00", kind, len(body))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func isOID(s string) bool {
	if len(s) != sha1.Size*2 && len(s) != sha256.Size*2 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// objectPath is where a loose object lies.
func objectPath(gitDir, oid string) string {
	return filepath.Join(gitDir, "objects", oid[:2], oid[2:])
}

// writeObject stores a loose object as git does (temporary file, then a name that is never
// overwritten) and returns its id. A fence, a commit or a small blob costs no process that way.
func writeObject(gitDir string, format objectFormat, kind string, body []byte) (string, error) {
	oid := format.id(kind, body)
	target := objectPath(gitDir, oid)
	if _, err := os.Lstat(target); err == nil {
		return oid, nil
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	fmt.Fprintf(z, "%s %d\x00", kind, len(body))
	_, _ = z.Write(body) // into memory; Close reports what went wrong
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("write %s: %w", kind, err)
	}
	if err := placeObject(gitDir, target, packed.Bytes()); err != nil {
		return "", fmt.Errorf("write %s to %s: %w", kind, gitDir, err)
	}
	return oid, nil
}

func placeObject(gitDir, target string, content []byte) error {
	objects, err := os.Stat(filepath.Join(gitDir, "objects"))
	if err != nil {
		return err
	}
	dir := filepath.Dir(target)
	if err := os.Mkdir(dir, 0o777); err == nil {
		// A shared hub (core.sharedRepository) shows its mode on the objects folder.
		if err := os.Chmod(dir, objects.Mode()&(fs.ModePerm|fs.ModeSetgid)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	tmp, err := os.CreateTemp(dir, "tmp_obj_")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(content); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o400 | objects.Mode().Perm()&0o044); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), target); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(tmp.Name(), target)
	}
	return nil
}

// A Signature is who wrote a commit and when.
type Signature struct {
	Name, Mail string
	When       time.Time // whole seconds; written in UTC
}

const (
	defaultName = "Mendflow"
	defaultMail = "mendflow@localhost"
)

// signature reads "Name <mail>"; characters that end a field in a commit are dropped.
func (o Options) signature(when time.Time) Signature {
	sig := Signature{Name: defaultName, Mail: defaultMail, When: when}
	name, mail, ok := strings.Cut(o.Author, "<")
	clean := func(s string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r == '<' || r == '>' || r < ' ' {
				return -1
			}
			return r
		}, s))
	}
	if n := clean(name); n != "" {
		sig.Name = n
	}
	if ok && clean(mail) != "" {
		sig.Mail = clean(mail)
	}
	return sig
}

func (s Signature) line() string {
	return fmt.Sprintf("%s <%s> %d +0000", s.Name, s.Mail, s.When.Unix())
}

// commitBody is the content of a commit object.
func commitBody(tree string, parents []string, sig Signature, message string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", sig.line(), sig.line())
	message = strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", ""), "\uFFFD")
	fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(message, "\n"))
	return b.Bytes()
}
