package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/provider"
	"mendflow/internal/provider/command"
)

func request(c *plan.Command) provider.Request {
	return provider.Request{
		Pool: contract.Pool{ID: "fixer", Model: "m'1", Command: c}, Node: "B-001",
		PromptFile: "/s/p.md", ResultFile: "/s/r.json", Worktree: "/w t",
	}
}

func TestBuildReplacesPlaceholdersPerArgument(t *testing.T) {
	t.Parallel()
	launch, err := command.Provider{}.Build(request(&plan.Command{Argv: []string{"fix", "--in={worktree}", "{node}", "{prompt}", "{result}", "{model}", "{other}"}}))
	require.NoError(t, err)
	require.Equal(t, []string{"fix", "--in=/w t", "B-001", "/s/p.md", "/s/r.json", "m'1", "{other}"}, launch.Argv)
	require.Empty(t, launch.Shell)
}

func TestBuildQuotesValuesInAShellLine(t *testing.T) {
	t.Parallel()
	launch, err := command.Provider{}.Build(request(&plan.Command{Shell: "cd {worktree} && fix {model}"}))
	require.NoError(t, err)
	require.Equal(t, `cd '/w t' && fix 'm'\''1'`, launch.Shell)
}

func TestBuildWithoutACommandSaysWhatToAdd(t *testing.T) {
	t.Parallel()
	_, err := command.Provider{}.Build(request(nil))
	require.ErrorContains(t, err, "pool fixer has no command")
}

func TestOnlyADeclaredFreeCommandIsKnownToHaveUsedNothing(t *testing.T) {
	t.Parallel()
	req := request(&plan.Command{Argv: []string{"fix"}})
	require.False(t, command.Provider{}.Read(req).Report().Usage.Known)
	req.Pool.Cost = &contract.Cost{}
	require.Equal(t, contract.Usage{Known: true}, command.Provider{}.Read(req).Report().Usage)
	req.Pool.Cost = &contract.Cost{InputMicros: 1}
	require.False(t, command.Provider{}.Read(req).Report().Usage.Known)
}
