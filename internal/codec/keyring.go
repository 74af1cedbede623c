package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// KeyBytes is the size of a key: AES-256.
const KeyBytes = 32

// key is one key, ready for use.
type key struct {
	id   string
	aead cipher.AEAD
}

// Keyring are the keys of a deployment, the one that encrypts first. The zero
// value has none: it encrypts nothing and refuses what is encrypted.
type Keyring struct {
	keys []key
}

// keyID is what may name a key.
var keyID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ParseKeys reads keys, each written ID:BASE64 with 32 bytes of key, one a line
// or separated by commas. Empty lines and lines that begin with # count for
// nothing. The first key encrypts; to exchange keys put the new one first and
// keep the old one for as long as histories with it are kept. Errors never show
// a key.
func ParseKeys(text string) (Keyring, error) {
	var ring Keyring
	for i, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ',' }) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		k, err := parseKey(line)
		if err != nil {
			return Keyring{}, fmt.Errorf("read key %d: %w", i+1, err)
		}
		if _, twice := ring.find(k.id); twice {
			return Keyring{}, fmt.Errorf("read key %d: %s is there twice", i+1, k.id)
		}
		ring.keys = append(ring.keys, k)
	}
	if len(ring.keys) == 0 {
		return Keyring{}, errors.New("read keys: there are none: make one with `starter codec key`")
	}
	return ring, nil
}

func parseKey(line string) (key, error) {
	id, secret, found := strings.Cut(line, ":")
	if !found || !keyID.MatchString(id) {
		return key{}, errors.New("it is not ID:BASE64, with an id of letters, digits, '.', '_' and '-'")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err != nil || len(raw) != KeyBytes {
		return key{}, fmt.Errorf("%s is not the base64 of %d bytes", id, KeyBytes)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, fmt.Errorf("%s: %w", id, err)
	}
	// A nonce of its own for each payload, chosen at random and stored in front of
	// it: good for 2^32 payloads of a key (NIST SP 800-38D, 8.3).
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, fmt.Errorf("%s: %w", id, err)
	}
	return key{id: id, aead: aead}, nil
}

// NewKey makes a key with an id, as [ParseKeys] reads it.
func NewKey(id string) (string, error) {
	if !keyID.MatchString(id) {
		return "", fmt.Errorf("make key: %q is no id: letters, digits, '.', '_' and '-'", id)
	}
	raw := make([]byte, KeyBytes)
	_, _ = rand.Read(raw) // never fails (crypto/rand)
	return id + ":" + base64.StdEncoding.EncodeToString(raw), nil
}

// Empty reports whether there is no key.
func (r Keyring) Empty() bool { return len(r.keys) == 0 }

// IDs names the keys, the one that encrypts first.
func (r Keyring) IDs() []string {
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.id
	}
	return ids
}

func (r Keyring) find(id string) (key, bool) {
	for _, k := range r.keys {
		if k.id == id {
			return k, true
		}
	}
	return key{}, false
}
