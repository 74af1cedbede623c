package contract

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWorkflowIdsCanBeReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		run := rapid.StringMatching(`[a-z0-9][a-z0-9.-]{0,63}`).Draw(t, "run")
		drive := rapid.IntRange(1, 2000).Draw(t, "drive")
		got, ok := ParseRemediationID(RemediationID(run))
		require.True(t, ok)
		require.Equal(t, run, got)
		of, number, ok := ParseLevelID(LevelID(run, drive))
		require.True(t, ok)
		require.Equal(t, run, of)
		require.Equal(t, drive, number)
		_, ok = ParseRemediationID(LevelID(run, drive))
		require.False(t, ok, "a drive is no run")
		_, _, ok = ParseLevelID(NodeID(run, drive, "node", 3))
		require.False(t, ok, "an attempt is no drive")
	})
}

func TestForeignIdsAreNotOurs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "remediation/", "broker/x", "remediation/a/b", "xremediation/a", "remediation/r/L", "remediation/r/Lxx"} {
		_, ok := ParseRemediationID(id)
		require.False(t, ok, id)
		_, _, ok = ParseLevelID(id)
		require.False(t, ok, id)
	}
}

func TestQueuesOfPoolsAreLowerKebab(t *testing.T) {
	t.Parallel()
	require.Equal(t, "mendflow-pool-sonnet", PoolQueue("Sonnet"))
	require.Equal(t, "mendflow-host-h-1", HostQueue("h-1"))
	require.Equal(t, "remediation/r/L07/n/a12", NodeID("r", 7, "n", 12))
}

func TestOnlyWorkersFaultsAreCharged(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[Outcome]bool{
		OutcomeSuccess: true, OutcomeError: true, OutcomeTimeout: true, OutcomeInterrupted: false,
		OutcomeRateLimited: false, OutcomeOverloaded: false, OutcomeCreditExhausted: false, OutcomeAuthFailed: false,
		OutcomeModelUnavailable: false, OutcomePacketTooLarge: false, OutcomeQuotaUnclassified: false,
	} {
		require.Equal(t, want, outcome.Charged(), outcome)
		require.Equal(t, want, AttemptResult{Outcome: outcome}.Row().Charged, outcome)
	}
}
