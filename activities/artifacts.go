package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"mendflow/internal/contract"
)

// Artifacts stores and loads parts of a run's state.
type Artifacts struct {
	Host *Host
}

// SaveState stores a part under a key made of its content, so that a repetition changes nothing.
func (a *Artifacts) SaveState(ctx context.Context, in contract.StateInput) (contract.Artifact, error) {
	sum := sha256.Sum256(in.Data)
	key := fmt.Sprintf("runs/%s/state/%s-%s", in.Run, in.Name, hex.EncodeToString(sum[:8]))
	ref, err := a.Host.Artifacts.Put(ctx, key, in.Data)
	if err != nil {
		return contract.Artifact{}, translate(ctx, fmt.Errorf("store state: %w", err))
	}
	return reference(ref), nil
}

// LoadState reads a part back.
func (a *Artifacts) LoadState(ctx context.Context, part contract.Artifact) ([]byte, error) {
	data, err := a.Host.Artifacts.Get(ctx, part.URI)
	if err != nil {
		return nil, translate(ctx, fmt.Errorf("load state: %w", err))
	}
	return data, nil
}
