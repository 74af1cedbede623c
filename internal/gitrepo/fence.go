package gitrepo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
)

// A Fence is the right of one attempt to land its node. OID is the blob that the fence ref must
// still hold when the attempt lands.
type Fence struct {
	Attempt Attempt
	OID     string
}

// fenceBlob is the content of a fence. The nonce makes every blob new: a ref that does not change
// is not checked by a lease.
type fenceBlob struct {
	Run     string `json:"run"`
	Node    string `json:"node"`
	Opening int    `json:"opening"`
	Attempt int    `json:"attempt"` // 0: nobody may land
	Reason  string `json:"reason,omitempty"`
	Landed  string `json:"landed,omitempty"`
	Nonce   string `json:"nonce"`
}

func (m *Mirror) newFence(b fenceBlob) (string, error) {
	b.Nonce = rand.Text()
	body, err := json.Marshal(b)
	if err != nil {
		return "", fmt.Errorf("write fence: %w", err)
	}
	body = append(body, '\n')
	if m.hub.URL == "" {
		if _, err := writeObject(m.hub.GitDir, m.format, "blob", body); err != nil {
			return "", err
		}
	}
	return writeObject(m.dir, m.format, "blob", body)
}

// SetFence gives the attempt the right to land and takes it from every other attempt of its node.
func (m *Mirror) SetFence(ctx context.Context, a Attempt) (Fence, error) {
	if err := a.check(); err != nil {
		return Fence{}, err
	}
	oid, err := m.moveFence(ctx, a.Run, a.Node, fenceBlob{Run: a.Run, Node: a.Node, Opening: a.Opening, Attempt: a.Number})
	if err != nil {
		return Fence{}, fmt.Errorf("set fence for %s: %w", a, err)
	}
	return Fence{Attempt: a, OID: oid}, nil
}

// MoveFence takes the right to land from every attempt of the node, because it is cancelled,
// interrupted or superseded.
func (m *Mirror) MoveFence(ctx context.Context, a Attempt, reason string) error {
	if err := a.check(); err != nil {
		return err
	}
	_, err := m.moveFence(ctx, a.Run, a.Node, fenceBlob{Run: a.Run, Node: a.Node, Opening: a.Opening, Reason: reason})
	if err != nil {
		return fmt.Errorf("move fence of %s: %w", a, err)
	}
	return nil
}

// refTries bounds how often a swap is repeated whose expected value was overtaken.
const refTries = 5

func (m *Mirror) moveFence(ctx context.Context, run, node string, b fenceBlob) (string, error) {
	oid, err := m.newFence(b)
	if err != nil {
		return "", err
	}
	name := FenceRef(run, node)
	return oid, m.forceRef(ctx, name, oid)
}

// forceRef points a ref of ours in the hub to an object that is there already (by path) or is sent
// along (by URL), whatever it held. An unknown answer is resolved by looking.
func (m *Mirror) forceRef(ctx context.Context, name, oid string) error {
	var last error
	for range refTries {
		refs, err := m.hubRefs(ctx, name)
		if err != nil {
			return errors.Join(last, err)
		}
		if refs[name] == oid {
			return nil
		}
		_, last = m.update(ctx, transfer{}, []refUpdate{{name, refs[name], oid}}, nil)
		if last == nil || ctx.Err() != nil {
			return last
		}
		if errors.Is(last, ErrLocked) {
			if err := m.waitHubLock(ctx, name); err != nil {
				return errors.Join(last, err)
			}
		}
	}
	return last
}
