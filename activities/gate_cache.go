package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
)

// cacheKey names a stored result of a run. The configuration is part of it: a
// run that was opened anew under an old id shares nothing with its predecessor.
func cacheKey(run string, config contract.Artifact, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{config.URI, config.SHA256}, parts...), "\n")))
	return fmt.Sprintf("runs/%s/gate/known/%s.json", run, hex.EncodeToString(sum[:12]))
}

// recall reads a result that an earlier execution stored; found is false without one.
func (a *Gate) recall(ctx context.Context, key string, result any) (found bool, err error) {
	data, err := a.Host.Artifacts.Get(ctx, key)
	if errors.Is(err, artifacts.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, result)
	}
	if err != nil {
		return false, fmt.Errorf("read known result: %w", err)
	}
	return true, nil
}

// remember stores a result for whoever asks the same again.
func (a *Gate) remember(ctx context.Context, key string, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("write known result: %w", err)
	}
	if _, err := a.Host.Artifacts.Put(ctx, key, data); err != nil {
		return fmt.Errorf("store known result: %w", err)
	}
	return nil
}
