package workercmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/provider"
	"mendflow/internal/provider/host"
	"mendflow/internal/quota"
)

func TestSamplePoolsAreValidAndCanBeLaunched(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/pools/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 5)
	used := map[contract.Provider]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		parsed, faults := dispatch.ParsePools(file, data)
		require.NoError(t, faults.Err(), file)
		require.Empty(t, faults.Warnings(), file)
		require.NoError(t, CheckOptions(file, parsed.Pools))
		for _, p := range parsed.LimitPatterns {
			_, err := quota.CompilePatterns([]quota.Pattern{{Match: p.Match, Outcome: quota.Outcome(p.Outcome), Reset: p.Reset}})
			require.NoError(t, err)
		}
		for _, p := range parsed.Pools {
			used[p.Provider] = true
			adapter, err := Providers().Lookup(p.Provider)
			require.NoError(t, err)
			_, err = adapter.Build(provider.Request{Pool: p, Worktree: "/w", Home: "/h", Folder: "/f", ResultFile: "/r/result.json"})
			if adapter.About().Attended {
				require.ErrorIs(t, err, host.ErrAttended, p.ID)
				continue
			}
			require.NoError(t, err, p.ID)
		}
	}
	for _, name := range Providers().Names() {
		require.True(t, used[name] || name == contract.ProviderCommand, "no sample uses %s", name)
	}
}

func TestEveryProviderOfPoolsFilesHasAnAdapter(t *testing.T) {
	t.Parallel()
	require.Equal(t, []contract.Provider{
		contract.ProviderClaude, contract.ProviderCodex, contract.ProviderCommand, contract.ProviderGemini,
		contract.ProviderHost, contract.ProviderOpenAI, contract.ProviderOpencode, contract.ProviderQwen,
	}, Providers().Names())
}

func TestUnknownOptionsAreRefusedWithTheirPool(t *testing.T) {
	t.Parallel()
	pools := []contract.Pool{
		{ID: "a", Provider: contract.ProviderClaude, Options: map[string]string{"stesp": "1"}},
		{ID: "b", Provider: contract.ProviderHost, Options: map[string]string{"x": "1"}},
		{ID: "c", Provider: contract.ProviderCommand, Options: map[string]string{"speaks": "claude"}},
	}
	err := CheckOptions("pools.yaml", pools)
	require.ErrorContains(t, err, `pools.yaml: pool a: unknown option "stesp": did you mean "steps"?`)
	require.ErrorContains(t, err, `pool b: unknown option "x"`)
	require.NotContains(t, err.Error(), "pool c")
}
