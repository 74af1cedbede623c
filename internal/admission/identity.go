package admission

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
)

// Identity is what a generation of a plan on a repository is: the SHA-256 of
// the three, in hexadecimal. hub is the canonical name of the repository.
func Identity(hub, planID string, generation int) string {
	data, err := json.Marshal([]any{hub, planID, generation})
	if err != nil {
		panic(err) // plain values always marshal
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// RunID is the name of a generation of a plan on a repository.
func RunID(hub, planID string, generation int) string {
	id := planID + "-" + Identity(hub, planID, generation)[:6]
	if generation > 1 {
		id += fmt.Sprintf(".g%d", generation)
	}
	return id
}

// nameBook remembers names for ever, eight bytes each: sorted digests. Two of a
// hundred thousand names are taken for the same with a chance of one in four
// thousand million; the second is then refused and wants another.
type nameBook []byte

const digestSize = 8

func nameDigest(name string) []byte {
	h := fnv.New64a()
	h.Write([]byte(name))
	return binary.BigEndian.AppendUint64(nil, h.Sum64())
}

func (b nameBook) at(digest []byte) (int, bool) {
	n := len(b) / digestSize
	i := sort.Search(n, func(i int) bool { return string(b[i*digestSize:(i+1)*digestSize]) >= string(digest) })
	return i * digestSize, i < n && string(b[i*digestSize:(i+1)*digestSize]) == string(digest)
}

func (b nameBook) has(name string) bool {
	_, found := b.at(nameDigest(name))
	return found
}

func (b *nameBook) add(name string) {
	digest := nameDigest(name)
	if at, found := b.at(digest); !found {
		*b = slices.Insert(*b, at, digest...)
	}
}
