package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/provider"
	"mendflow/internal/provider/claude"
)

// Whoever starts a run cannot make a worker run another program or use another log-in.
func TestProgramAndHomeAreTheWorkers(t *testing.T) {
	t.Parallel()
	var providers provider.Registry
	providers.Register(contract.ProviderClaude, claude.Provider{})
	run := &openRun{config: contract.RunConfig{Pools: []contract.Pool{{ID: "p", Provider: contract.ProviderClaude, Options: map[string]string{
		"program": "/theirs", "config_dir": "/their/home", "steps": "7",
	}}}}}
	pool := func(own map[string]string) map[string]string {
		h := &Host{Providers: &providers, Pools: map[string]contract.Pool{"p": {ID: "p", Provider: contract.ProviderClaude, Options: own}}}
		p, err := h.pool(run, contract.NodeInput{Pool: "p"})
		require.NoError(t, err)
		return p.Options
	}
	require.Equal(t, map[string]string{"steps": "7", "program": "/ours"}, pool(map[string]string{"program": "/ours", "steps": "9"}))
	require.Equal(t, map[string]string{"steps": "7", "config_dir": "/our/home"}, pool(map[string]string{"config_dir": "/our/home"}))
	require.Equal(t, map[string]string{"steps": "7"}, pool(nil))
	require.Equal(t, "/theirs", run.config.Pools[0].Options["program"], "the run's own is not changed")
}
