package workflows

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/testkit"
)

// SignsOfLife sees what the hook lets it see: nothing.
func (h *host) SignsOfLife(ctx context.Context, _ contract.NodeInput) (contract.SignOfLife, error) {
	return contract.SignOfLife{}, h.begin(ctx, "SignsOfLife")
}

func (h *host) TakeOver(ctx context.Context, _ contract.HandOverInput) (contract.WorkerEnd, error) {
	return contract.WorkerEnd{Host: testHost, Outcome: contract.OutcomeSuccess}, h.begin(ctx, "TakeOver")
}

func (f *farm) registerAttended(registry worker.ActivityRegistry) {
	registry.RegisterActivityWithOptions(func(ctx context.Context, in contract.NodeInput) (contract.SignOfLife, error) {
		return f.of(in.Run).SignsOfLife(ctx, in)
	}, activity.RegisterOptions{Name: "SignsOfLife"})
	registry.RegisterActivityWithOptions(func(ctx context.Context, in contract.HandOverInput) (contract.WorkerEnd, error) {
		return f.of(in.Run).TakeOver(ctx, in)
	}, activity.RegisterOptions{Name: "TakeOver"})
}

// attendedPools are a program's pool and one of people, who may be quiet for two seconds.
func attendedPools() []contract.Pool {
	return []contract.Pool{testPool("main", 1), {
		ID: "other", Provider: contract.ProviderHost, Account: "other", Tier: plan.TierStandard, MaxConcurrent: 2,
		Options: map[string]string{contract.OptionQuiet: "6s"},
	}}
}

// attendedHost has three nodes that may be worked on side by side, and lays desks out.
func attendedHost() *host {
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 0))
	h.work = func(in contract.NodeInput) attemptScript {
		var s attemptScript
		if in.Claim != nil {
			s.end.Desk = &contract.Desk{Host: testHost, Worktree: "/tree/" + in.Node}
		}
		return s
	}
	return h
}

func (l *lab) claims() []contract.ClaimRow {
	l.t.Helper()
	answer, err := l.client.QueryWorkflow(l.t.Context(), l.id, "", contract.QueryClaims)
	var rows []contract.ClaimRow
	if err != nil || answer.Get(&rows) != nil {
		return nil
	}
	return rows
}

// claim asks for a node and waits until the claim is as wanted.
func (l *lab) claim(order contract.Operator, state contract.ClaimState) contract.ClaimRow {
	l.t.Helper()
	answer := l.ordered(contract.CommandNodeClaim, order)
	require.NotNil(l.t, answer.Claim)
	return l.claimIs(answer.Claim.ID, state)
}

func (l *lab) claimIs(id string, state contract.ClaimState) contract.ClaimRow {
	l.t.Helper()
	var row contract.ClaimRow
	testkit.Eventually(l.t, "claim "+id+" is "+string(state), func() bool {
		rows := l.claims()
		at := slices.IndexFunc(rows, func(r contract.ClaimRow) bool { return r.ID == id && r.State == state })
		if at >= 0 {
			row = rows[at]
		}
		return at >= 0
	})
	return row
}

// desk waits until a claimed node may be worked on.
func (l *lab) desk(row contract.ClaimRow) contract.Desk {
	l.t.Helper()
	var desk contract.Desk
	testkit.Eventually(l.t, "the desk of "+row.Node, func() bool {
		answer, err := l.client.QueryWorkflow(l.t.Context(), contract.NodeID(l.in.Run, row.Drive, row.Node, row.Attempt), "", contract.QueryDesk)
		return err == nil && answer.Get(&desk) == nil && desk.Worktree != ""
	})
	return desk
}

// attend lets people work beside a program that is held until they are done.
func attend(t *testing.T, l *lab) {
	entered, release := l.host.hold("RunWorker")
	defer release()
	programs := l.host.hook
	l.host.hook = func(ctx context.Context, name string) error { // people are not held
		l.host.mu.Lock()
		last := l.host.attempts[max(0, len(l.host.attempts)-1):]
		l.host.mu.Unlock()
		if name == "RunWorker" && len(last) > 0 && last[0].Claim != nil {
			return nil
		}
		return programs(ctx, name)
	}
	l.begin()
	awaitClosed(t, "RunWorker", entered)

	first := l.claim(contract.Operator{By: "ann"}, contract.ClaimGiven)
	require.Equal(t, "/tree/"+first.Node, l.desk(first).Worktree)
	require.Equal(t, first.ID, l.ordered(contract.CommandNodeClaim, contract.Operator{By: "ann", Node: first.Node}).Claim.ID, "who holds it keeps it alive")
	second := l.claim(contract.Operator{By: "bob"}, contract.ClaimGiven)
	require.NotEqual(t, first.Node, second.Node)
	none := l.ordered(contract.CommandNodeClaim, contract.Operator{By: "cyd"})
	require.Contains(t, none.Claim.Reason, "pool other has 2 of 2 nodes already")
	l.ordered(contract.CommandNodeAccept, contract.Operator{Node: first.Node})
	require.Equal(t, contract.OutcomeSuccess, l.claimIs(first.ID, contract.ClaimEnded).Outcome)

	quiet := l.claimIs(second.ID, contract.ClaimEnded)
	require.Contains(t, quiet.Reason, "nothing was heard of bob for 6s")
	require.NotEmpty(t, quiet.Salvage)
	third := l.claim(contract.Operator{Node: second.Node, By: "cyd"}, contract.ClaimGiven)
	l.ordered(contract.CommandNodeRelease, contract.Operator{Node: third.Node, Reason: "lunch"})
	require.Contains(t, l.claimIs(third.ID, contract.ClaimEnded).Reason, "lunch")
	release()
	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status)
}

func TestPeopleWorkBesideAProgram(t *testing.T) {
	t.Parallel()
	h := attendedHost()
	l := newLab(t, h, attendedPools()...)
	attend(t, l)
	byPool := map[string]int{}
	for _, in := range h.lands {
		byPool[in.Pool]++
	}
	require.Equal(t, map[string]int{"main": 2, "other": 1}, byPool)
	require.Equal(t, 1, h.count("TakeOver"))
}

func TestClaimsAreRefusedWithTheirReason(t *testing.T) {
	t.Parallel()
	h := attendedHost()
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)
	for reason, order := range map[string]struct {
		command string
		order   contract.Operator
	}{
		"no such pool of provider host":  {contract.CommandNodeClaim, contract.Operator{}},
		`nobody has claimed node "a"`:    {contract.CommandNodeAccept, contract.Operator{Node: "a"}},
		`nobody has claimed node "nope"`: {contract.CommandNodeRelease, contract.Operator{Node: "nope"}},
	} {
		answer := l.ordered(order.command, order.order)
		require.Equal(t, contract.ClaimDeclined, answer.Claim.State)
		require.Contains(t, strings.Join(answer.Done, "\n"), reason)
	}
	l.ordered(contract.CommandPools, contract.Operator{Pools: attendedPools()})
	row := l.claim(contract.Operator{Node: "nope"}, contract.ClaimDeclined)
	require.Contains(t, row.Reason, "no node nope")
	l.ordered(contract.CommandPause, contract.Operator{Finish: true})
	require.Contains(t, l.ordered(contract.CommandNodeClaim, contract.Operator{}).Claim.Reason, "nothing may start")
	release()
	l.untilStatus(contract.RunPaused)
	l.ordered(contract.CommandCancel, contract.Operator{})
	l.wait()
}

// A claim is remembered across continue-as-new, and so is who may hand over.
func TestAClaimOutlivesContinueAsNew(t *testing.T) {
	t.Parallel()
	h := attendedHost()
	bulky(h)
	pools := attendedPools()
	pools[1].Options[contract.OptionQuiet] = (10 * time.Minute).String()
	l := newLab(t, h, pools[1]).begin()
	l.untilStatus(contract.RunImplementing)
	row := l.claim(contract.Operator{Node: "b", By: "ann"}, contract.ClaimGiven)
	l.desk(row)
	l.renew(l.id)
	l.ordered(contract.CommandNodeAccept, contract.Operator{Node: "b"})
	require.Equal(t, "commit-of-b", l.claimIs(row.ID, contract.ClaimEnded).Commit)
	l.ordered(contract.CommandCancel, contract.Operator{})
	l.wait()
}
