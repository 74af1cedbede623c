package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func TestDriveRunsNodesWithinTheCapAndDrainsWhenSealed(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{commandPool("c", 2)}, admissions("a", "b", "c")...))
	require.Equal(t, []string{"a", "b"}, r.at("c"))
	require.Equal(t, contract.NodeID("r", 1, "a", 1), r.running[0].Ticket)

	r.succeed("a")
	require.Equal(t, []string{"b", "c"}, r.at("c"))
	r.succeed("b", "c")
	require.Len(t, r.settled, 3)
	require.False(t, r.drained, "more may come before the seal")

	r.drive.Seal()
	r.step()
	require.True(t, r.drained)
	require.True(t, r.drive.Drained())
}

func TestDriveRetriesWithinTheBoundOfEachCause(t *testing.T) {
	t.Parallel()
	for cause, most := range map[contract.Cause]int{
		contract.CauseWork: 2, contract.CauseConflict: 3, contract.CauseProvider: 5, contract.CauseHost: 5, "": 2,
	} {
		t.Run("cause "+string(cause), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, input([]contract.Pool{commandPool("c", 2)}, admissions("a")...))
			for k := 1; k <= most; k++ {
				require.Len(t, r.running, 1, "attempt %d", k)
				require.Equal(t, k, r.running[0].Input.Attempt)
				if k > 1 {
					require.Equal(t, "tail", r.running[0].Input.Tail)
					require.Equal(t, "refs/x", r.running[0].Input.Salvage)
					require.Nil(t, r.running[0].Input.Kept)
				}
				r.fail("a", cause)
				if k == most || cause != contract.CauseProvider && cause != contract.CauseHost {
					continue
				}
				backOff := 30 * time.Second << (k - 1)
				r.advance(backOff - time.Millisecond)
				require.Empty(t, r.running, "backs off after failure %d", k)
				r.advance(time.Millisecond)
			}
			require.Empty(t, r.running)
			require.Len(t, r.settled, 1)
			require.Equal(t, contract.NodeBlocked, r.settled[0].State)
			require.Len(t, r.settled[0].Attempts, most)
			require.Contains(t, r.settled[0].Reason, "no")
		})
	}
}

func TestDriveSendsNodesToTheSecondPoolAtOnceWhenTheFirstIsWalled(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{agentPool("p1", "x", "m", 2), agentPool("p2", "y", "m", 2)}, admissions("a")...))
	require.Equal(t, []string{"a"}, r.at("p1"))
	r.limit("a", contract.OutcomeRateLimited, time.Hour)
	require.Equal(t, []string{"a"}, r.at("p2"))
	require.Equal(t, &contract.Kept{Attempt: 1, Host: "h", Pool: "p1"}, r.running[0].Leaves, "the kept tree is left to be salvaged")
	require.Nil(t, r.running[0].Input.Kept)
	require.Equal(t, 2, r.running[0].Input.Attempt)
}

func TestDriveStrandsWalledNodesWithTheEarliestInstantAndTheirTree(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{agentPool("p1", "x", "m", 1), agentPool("p2", "y", "m", 1)}, admissions("a", "b")...))
	r.limit("a", contract.OutcomeRateLimited, 3*time.Hour)
	r.limit("b", contract.OutcomeRateLimited, time.Hour)
	require.Len(t, r.stranded, 2)
	require.True(t, r.drained, "an idle drive with everything stranded is over")
	for _, s := range r.stranded {
		require.Equal(t, contract.StrandQuotaPaused, s.Cause)
		require.Equal(t, r.now.Add(time.Hour), *s.NotBefore)
		require.Equal(t, contract.Charged{}, s.Charged)
		require.NotNil(t, s.Kept)
		require.Len(t, s.Passed, 2)
		require.Contains(t, s.Passed[0].Reason, "paused until")
		require.Equal(t, 2, s.NextAttempt)
	}
}
