package e2e

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestHubByHTTPSWithACAOfItsOwn lands on a hub whose certificate nobody knows but
// the user's git configuration, which the plan lets git read; and says what is
// wrong where the plan does not.
func TestHubByHTTPSWithACAOfItsOwn(t *testing.T) {
	t.Parallel()
	lab, home := userLab(t)
	p := testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}}, More: map[string]any{"git": map[string]any{"user_config": true}}}
	c := testkit.NewCase(t, testkit.RunID(t), p)
	hub, server := c.Repo.ServeHTTP(t, filepath.Join(c.Dir, "hub.git"), true)
	c.Repo, c.Before = hub, hub.Checkout(t)
	ca := filepath.Join(home, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(ca, certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[http]\n\tsslCAInfo = "+ca+"\n"), 0o600))

	refused := lab.Client.Starter(t, "start", "--id", c.Run, "--repo", hub.URL, "--plan", testkit.Plan{Nodes: p.Nodes}.Write(t, filepath.Join(c.Dir, "strict.yaml")), "--pools", lab.Pools)
	require.NotZero(t, refused.Code)
	require.Contains(t, refused.Err, "certificate")

	lab.Start(t, c)
	v := lab.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	requireAllLanded(t, lab, c)
}
