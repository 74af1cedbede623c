package run

import (
	"encoding/json"
	"slices"

	"mendflow/internal/contract"
)

// Bounds of a recorded friction.
const (
	maxNote          = 2000 // contract.Friction
	maxDiscriminator = 200
)

// FrictionBook records surprises of a run, each once per (type, discriminator).
// The zero value is empty. It marshals as the list of its entries.
type FrictionBook struct {
	entries []contract.Friction
	known   map[frictionKey]bool
}

type frictionKey struct {
	kind          contract.FrictionType
	discriminator string
}

// Add records those that are new and returns them, in their order. Notes and
// discriminators are cut to their bounds; a severity that is not given is a
// warning.
func (b *FrictionBook) Add(friction ...contract.Friction) []contract.Friction {
	var added []contract.Friction
	for _, f := range friction {
		f.Discriminator, f.Note = cut(f.Discriminator, maxDiscriminator), cut(f.Note, maxNote)
		if f.Severity == "" {
			f.Severity = "warning"
		}
		key := frictionKey{f.Type, f.Discriminator}
		if b.known[key] {
			continue
		}
		if b.known == nil {
			b.known = map[frictionKey]bool{}
		}
		b.known[key] = true
		b.entries = append(b.entries, f)
		added = append(added, f)
	}
	return added
}

// Entries returns what was recorded, oldest first.
func (b *FrictionBook) Entries() []contract.Friction { return slices.Clone(b.entries) }

// MarshalJSON writes the entries.
func (b FrictionBook) MarshalJSON() ([]byte, error) {
	if b.entries == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(b.entries)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *FrictionBook) UnmarshalJSON(data []byte) error {
	var entries []contract.Friction
	if err := json.Unmarshal(data, &entries); err != nil {
		return err
	}
	*b = FrictionBook{}
	b.Add(entries...)
	return nil
}
