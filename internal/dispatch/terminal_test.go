package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func in(minutes int) *time.Time {
	at := epoch.Add(time.Duration(minutes) * time.Minute)
	return &at
}

func TestFoldTakesTheEarliestPresentInstantAndKeepsCauses(t *testing.T) {
	t.Parallel()
	got := Fold([]contract.Stranding{
		{Node: "C", Cause: contract.StrandQuotaPaused},
		{Node: "A", Cause: contract.StrandQuotaPaused, NotBefore: in(9)},
		{Node: "B", Cause: contract.StrandNoCapablePool, Reason: "too large"},
		{Node: "D", Cause: contract.StrandQuotaPaused, NotBefore: in(3)},
	})
	require.Equal(t, Terminal{
		Kind: TerminalWaiting, NotBefore: in(3),
		Causes: []CauseNodes{
			{contract.StrandQuotaPaused, []string{"A", "C", "D"}},
			{contract.StrandNoCapablePool, []string{"B"}},
		},
		Helpless: []Helpless{{"B", contract.StrandNoCapablePool, "too large"}},
	}, got)
	require.Equal(t, Terminal{Kind: TerminalDone}, Fold(nil), "empty is a value of the same shape")
}

func TestFoldDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ss := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) contract.Stranding {
			s := contract.Stranding{
				Node: rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(t, "node"), Opening: rapid.IntRange(1, 2).Draw(t, "opening"),
				Cause: rapid.SampledFrom(strandCauses[:]).Draw(t, "cause"), NextAttempt: rapid.IntRange(1, 3).Draw(t, "next"),
				Reason: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "reason"),
			}
			if rapid.Bool().Draw(t, "timed") {
				s.NotBefore = in(rapid.IntRange(0, 5).Draw(t, "at"))
			}
			return s
		}), 0, 8).Draw(t, "strandings")
		want := asJSON(t, Fold(ss))
		require.Equal(t, want, asJSON(t, Fold(rapid.Permutation(ss).Draw(t, "order"))))
		require.Equal(t, want, asJSON(t, Fold(append(ss, ss...))))
	})
}

func TestHoldForFollowsTheTerminal(t *testing.T) {
	t.Parallel()
	waits := func(cause contract.StrandCause, at *time.Time) contract.Stranding {
		return contract.Stranding{Node: "N-" + string(cause), Cause: cause, NotBefore: at}
	}
	for name, c := range map[string]struct {
		of    []contract.Stranding
		kind  contract.HoldKind
		until *time.Time
		says  string
	}{
		"quota with an instant": {[]contract.Stranding{waits(contract.StrandQuotaPaused, in(5))}, contract.HoldQuota, in(5), "paused"},
		"an instant wins over the budget": {
			[]contract.Stranding{waits(contract.StrandBudgetExhausted, nil), waits(contract.StrandQuotaPaused, in(5))}, contract.HoldQuota, in(5), "paused",
		},
		"budget": {[]contract.Stranding{waits(contract.StrandBudgetExhausted, nil), waits(contract.StrandHeld, nil)}, contract.HoldBudget, nil, "budget"},
		"no capable pool says what would help": {
			[]contract.Stranding{waits(contract.StrandNoCapablePool, nil)}, contract.HoldQuota, nil,
			"waiting does not help N-no_capable_pool (no pool is large enough or allowed: change the pools)",
		},
		"helpless nodes are listed apart": {
			[]contract.Stranding{waits(contract.StrandQuotaPaused, in(5)), waits(contract.StrandEscalated, nil)}, contract.HoldQuota, in(5),
			"; waiting does not help N-escalated (limited again",
		},
		"escalated goes to triage":             {[]contract.Stranding{waits(contract.StrandEscalated, nil)}, contract.HoldQuestion, nil, "N-escalated"},
		"empty pool goes to triage":            {[]contract.Stranding{waits(contract.StrandEmptyPool, nil)}, contract.HoldQuestion, nil, "reopen one"},
		"held nodes have their hold":           {[]contract.Stranding{waits(contract.StrandHeld, nil)}, "", nil, ""},
		"nothing left needs none":              {nil, "", nil, ""},
		"a pause without instant waits for it": {[]contract.Stranding{waits(contract.StrandQuotaPaused, nil)}, contract.HoldQuota, nil, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold, ok := HoldFor(Fold(c.of))
			require.Equal(t, c.kind != "", ok)
			require.Equal(t, c.kind, hold.Kind)
			require.Equal(t, c.until, hold.Until)
			require.Contains(t, hold.Reason, c.says)
		})
	}
	var many []contract.Stranding
	for i := range 8 {
		many = append(many, contract.Stranding{Node: fmt.Sprintf("N-%d", i), Cause: contract.StrandEmptyPool})
	}
	hold, _ := HoldFor(Fold(many))
	require.Contains(t, hold.Reason, "N-4 and 3 more")
}

func TestAllRefusedIsNotAllDone(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b", "A")}, FrontierOptions{})
	require.Equal(t, TerminalBusy, f.Waiting().Kind)
	admitted(f, 1)
	require.Equal(t, TerminalBusy, f.Waiting().Kind)
	f.Strand(contract.Stranding{Node: "A", Opening: 1, Cause: contract.StrandEmptyPool, NextAttempt: 1}, epoch)
	require.Empty(t, admitted(f, 9))
	require.Equal(t, TerminalWaiting, f.Waiting().Kind)
	f.BlockStranded(contract.StrandEmptyPool)
	f.DeadEnds()
	asking := f.Waiting()
	require.Equal(t, TerminalAsking, asking.Kind)
	hold, ok := HoldFor(asking)
	require.True(t, ok)
	require.Equal(t, contract.HoldQuestion, hold.Kind)
	f.Abandon("over")
	require.Equal(t, TerminalDone, f.Waiting().Kind)
}
