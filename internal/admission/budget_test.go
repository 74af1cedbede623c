package admission

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func (g *rig) budget(tokens int64) {
	require.Empty(g.t, g.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, g.now).Refused)
	g.carryOut()
}

// lease is the last one that a run was told.
func (g *rig) lease(run string) int64 {
	inbox := g.runs[run].inbox
	require.NotEmpty(g.t, inbox, "%s was told nothing", run)
	return *inbox[len(inbox)-1].Lease.Tokens
}

// uses has a run tell what it used, needs, and reserves for an attempt.
func (g *rig) uses(run string, used, need, least int64) {
	r := g.runs[run]
	r.used.Tokens, r.need.Tokens, r.least.Tokens = used, need, least
	g.tell(run)
}

func TestDeploymentBudgetIsLeasedInSlabs(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(2, 10)
	g.budget(1_000_000)
	g.queuedOrStarted("a")
	require.Equal(t, int64(1_000_000), g.lease("a"), "before it told what it needs, its share")
	g.queuedOrStarted("b")
	require.NotContains(t, g.begun, "b", "all is leased")
	row, _, _ := g.m.Run("b")
	require.Contains(t, row.Reason, "budget")

	g.budget(4_000_000)
	require.Equal(t, int64(1_500_000), g.lease("b"), "a slab")
	g.take("b")
	g.tell("b", contract.RunStarting, contract.RunPreparing, contract.RunImplementing)
	g.take("a")
	g.tell("a", contract.RunStarting, contract.RunPreparing, contract.RunImplementing)
	g.uses("a", 900_000, 3_000_000, 500_000)
	require.Equal(t, int64(900_000+1_550_000), g.lease("a"), "what it needs, within its share of what is left")
	status := g.m.Status().Budget
	require.Equal(t, int64(900_000), status.Settled.Tokens)
	require.Equal(t, int64(1_500_000+1_550_000), status.Reserved.Tokens)
}

// A run may use more than it was leased: what others were promised is cut, and
// nothing is promised twice.
func TestLeasesAreCutWhenARunUsedMore(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(2, 10)
	g.budget(2_000_000)
	g.started("a")
	g.uses("a", 0, 1_000_000, 500_000)
	g.budget(2_500_000)
	g.started("b")
	g.uses("a", 2_200_000, 1_000_000, 500_000)
	status := g.m.Status().Budget
	require.Equal(t, int64(300_000), status.Reserved.Tokens)
	require.Equal(t, int64(300_000), g.lease("b"))
	g.uses("b", 400_000, 1_000_000, 500_000)
	require.Zero(t, g.m.Status().Budget.Reserved.Tokens)
}

// A run that ran out of budget gives its slot and what it has left back; it hears
// when there is room for an attempt of its.
func TestRunOutOfBudgetHearsOfRoom(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.budget(600_000)
	g.started("a")
	g.uses("a", 500_000, 3_000_000, 500_000)
	g.pause("a", contract.HoldBudget)
	require.Zero(t, g.m.Status().Running)
	require.Zero(t, g.m.Status().Budget.Reserved.Tokens)
	g.runs["a"].inbox = nil
	g.budget(900_000)
	require.Equal(t, int64(500_000), g.lease("a"), "400 000 are too little: it would only stop again")
	g.budget(1_000_000)
	require.Equal(t, int64(1_000_000), g.lease("a"))
	g.take("a")
	g.want("a")
	require.Equal(t, contract.RunImplementing, g.status("a"))

	g.budget(0)
	inbox := g.runs["a"].inbox
	require.Nil(t, inbox[len(inbox)-1].Lease, "no cap any more")
	tokens := int64(-1)
	require.NotEmpty(t, g.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, g.now).Refused)
}

// What a walled run does not use is free for others.
func TestPausedRunGivesItsLeaseBack(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(2, 10)
	g.budget(1_000_000)
	g.started("a")
	g.queuedOrStarted("b")
	require.NotContains(t, g.begun, "b")
	g.pause("a", contract.HoldQuota)
	require.Contains(t, g.begun, "b")
}

func (g *rig) queuedOrStarted(id string) {
	s := submission("/repo/" + id)
	s.ID = id
	g.submit(s)
}
