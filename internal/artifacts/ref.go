package artifacts

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxTail is the most that a [Ref] carries of its artifact, in bytes.
const MaxTail = 4 << 10

// Ref is a reference to an artifact. The zero value refers to none.
type Ref struct {
	URI    string `json:"uri"`    // the key inside the deployment's store
	SHA256 string `json:"sha256"` // of the content, in lower-case hexadecimal
	Bytes  int64  `json:"bytes"`
	Tail   string `json:"tail,omitempty"` // the end of the content, valid UTF-8, at most MaxTail bytes
}

// Bounds of a key. The segment bound leaves room for the suffix of the name
// under which a file is written.
const (
	maxKey     = 1024
	maxSegment = 200
)

// checkKey accepts slash-separated segments of letters, digits and ._@+=,-, none
// of them empty, "." or "..", and none that looks like a file under way.
func checkKey(key string) error {
	if err := checkPrefix(key); err != nil {
		return err
	}
	if key == "" || strings.HasSuffix(key, "/") {
		return fmt.Errorf("%w %q: it names no artifact", ErrInvalidKey, key)
	}
	if underWay(key) {
		return fmt.Errorf("%w %q: reserved for artifacts under way", ErrInvalidKey, key)
	}
	return nil
}

// checkPrefix accepts what a key may begin with.
func checkPrefix(prefix string) error {
	if len(prefix) > maxKey {
		return fmt.Errorf("%w: longer than %d bytes", ErrInvalidKey, maxKey)
	}
	for i := range len(prefix) {
		c := prefix[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !plain && !strings.ContainsRune("._@+=,-/", rune(c)) {
			return fmt.Errorf("%w %q: character %q", ErrInvalidKey, prefix, c)
		}
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(prefix, "/"), "/") {
		switch {
		case segment == "" && prefix != "", segment == ".", segment == "..":
			return fmt.Errorf("%w %q: segment %q", ErrInvalidKey, prefix, segment)
		case len(segment) > maxSegment:
			return fmt.Errorf("%w %q: a segment is longer than %d bytes", ErrInvalidKey, prefix, maxSegment)
		}
	}
	return nil
}

// underWay recognises the names under which fileblob writes: the key, a dot, the
// time in hexadecimal, and .tmp. A crash leaves such a file.
func underWay(key string) bool {
	name, ok := strings.CutSuffix(key, ".tmp")
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot < 0 || len(name)-dot-1 != 16 {
		return false
	}
	return strings.Trim(name[dot+1:], "0123456789abcdef") == ""
}

// tail keeps the last bytes written to it.
type tail struct {
	bytes []byte // at most twice MaxTail, so that not every byte moves the others
	cut   bool   // something before bytes was dropped
}

func (t *tail) add(p []byte) {
	if len(p) > MaxTail {
		t.cut = true
		t.bytes = append(t.bytes[:0], p[len(p)-MaxTail:]...)
		return
	}
	t.bytes = append(t.bytes, p...)
	if len(t.bytes) > 2*MaxTail {
		t.cut = true
		t.bytes = t.bytes[:copy(t.bytes, t.bytes[len(t.bytes)-MaxTail:])]
	}
}

// String is the tail as valid UTF-8: a cut character at its beginning is left
// out, bytes that are no text become question marks.
func (t *tail) String() string {
	b := t.bytes[max(0, len(t.bytes)-MaxTail):]
	if t.cut || len(b) < len(t.bytes) {
		for i := 1; i < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
			b = b[1:]
		}
	}
	return strings.ToValidUTF8(string(b), "?")
}
