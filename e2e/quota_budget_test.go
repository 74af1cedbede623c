package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestQuotaBudgets spends what runs may spend: nothing fails because of a
// budget, and raising or reconciling it lets the run go on.
func TestQuotaBudgets(t *testing.T) {
	t.Parallel()
	lab := newQuotaLab(t, false, quotaPool{ID: "metered", Metered: true}, quotaPool{ID: "priced", Price: 10}, quotaPool{ID: "lifted", Metered: true})
	t.Run("tokens", lab.testTokenBudget)
	t.Run("dollars", lab.testDollarBudget)
	t.Run("a cap that is removed", lab.testRemovedCap)
}

// budgetPlan has nodes of a thousand tokens each.
func budgetPlan(budget map[string]any, nodes ...string) testkit.Plan {
	p := nodesOf(nodes...)
	p.Policy = map[string]any{"attempt_tokens": 1000}
	p.More = map[string]any{"budget": budget}
	return p
}

func (l *quotaLab) budget(t *testing.T, run string) contract.BudgetView {
	t.Helper()
	var v contract.BudgetView
	require.NoError(t, json.Unmarshal([]byte(l.Client.OK(t, "budget", "show", run, "--json")), &v))
	return v
}

func (l *quotaLab) testTokenBudget(t *testing.T) {
	t.Parallel()
	c := l.start(t, budgetPlan(map[string]any{"tokens": 2500}, "alpha", "beta", "gamma", "delta"), "metered")

	hold := l.awaitHold(t, c.Run, contract.HoldBudget)
	require.Equal(t, "starter resume "+c.Run+" --budget N", hold.Lift)
	require.Nil(t, hold.Until)
	v := l.status(t, c.Run)
	require.Equal(t, 2, v.Nodes["landed"])
	require.Equal(t, 2, v.Nodes["stranded"])
	require.EqualValues(t, 2000, v.Usage.Uncertain)
	b := l.budget(t, c.Run)
	require.Equal(t, contract.Amount{Tokens: 2500}, b.Cap)
	require.Equal(t, contract.Amount{Tokens: 2000}, b.Uncertain, "who tells no usage is charged the reservation")
	require.Equal(t, contract.Amount{}, b.Reserved)
	require.Len(t, b.Attempts, 2)
	require.Contains(t, l.Client.OK(t, "budget", "show", c.Run), "cap        2500 tokens\nused       nothing\n")
	require.Contains(t, l.Client.OK(t, "status", c.Run), "budget   2000 tokens of 2500 tokens used; 2 attempts told no usage")
	var waiting string
	for id, row := range l.Client.Nodes(t, c.Run) {
		if row.State == contract.NodeStranded {
			require.Equal(t, contract.StrandBudgetExhausted, row.Cause)
			require.Empty(t, row.Attempts, "nothing starts that does not fit")
			waiting = id
		}
	}
	require.NotEmpty(t, l.explain(t, c.Run, waiting).Waits)

	// The operator knows better what one of them used: one more fits.
	l.Client.OK(t, "budget", "reconcile", c.Run, b.Attempts[0].Attempt, "--tokens", "100")
	l.Client.Await(t, c.Run, "one more landed and the run is held again", func(v contract.RunView) bool {
		return v.Nodes["landed"] == 3 && v.Status == contract.RunPaused
	})
	require.Equal(t, contract.Amount{Tokens: 100}, l.budget(t, c.Run).Settled)

	// A raise that is no raise lets nothing start and breaks nothing.
	l.Client.OK(t, "resume", c.Run, "--budget", "2600")
	l.Client.Await(t, c.Run, "held again", func(v contract.RunView) bool { return v.Status == contract.RunPaused && len(v.Holds) == 1 })
	require.Equal(t, 2, l.Client.Starter(t, "resume", c.Run, "--budget", "0").Code)

	l.Client.OK(t, "resume", c.Run, "--budget", "10000")
	rows := l.requireGreen(t, c)
	for id, row := range rows {
		require.Len(t, row.Attempts, 1, "%s failed because of a budget", id)
	}
	report := l.Client.Report(t, c.Run)
	require.NotEmpty(t, frictionOf(report.Friction, contract.FrictionUsageUncertain))
	require.Equal(t, 4, report.Usage.Uncertain)
	require.Equal(t, 4, report.Pools[0].Uncertain, "usage per pool")
	require.Equal(t, 1, report.Nodes[0].Usage.Uncertain, "usage per node")
}

func (l *quotaLab) testDollarBudget(t *testing.T) {
	t.Parallel()
	// A thousand tokens for 10 USD the million: a cent an attempt.
	c := l.start(t, budgetPlan(map[string]any{"usd": 0.025}, "alpha", "beta", "gamma"), "priced")

	l.awaitHold(t, c.Run, contract.HoldBudget)
	b := l.budget(t, c.Run)
	require.Equal(t, contract.Amount{USDMicros: 25_000}, b.Cap)
	require.Equal(t, contract.Amount{Tokens: 2000, USDMicros: 20_000}, b.Uncertain)

	l.Client.OK(t, "budget", "set", c.Run, "--usd", "0.50")
	l.requireGreen(t, c)
	require.EqualValues(t, 500_000, l.budget(t, c.Run).Cap.USDMicros)
}

func (l *quotaLab) testRemovedCap(t *testing.T) {
	t.Parallel()
	run := testkit.RunID(t)
	l.Control.Script(t, run, "default", "mark {node}/work.txt", "tell {node}", "wait go", "result resolved")
	c := l.start(t, budgetPlan(map[string]any{"tokens": 1000}, "alpha", "beta"), "lifted")
	l.Client.Await(t, run, "one works", func(contract.RunView) bool { return l.Control.Told(run, "alpha") || l.Control.Told(run, "beta") })
	require.False(t, l.Control.Told(run, "alpha") && l.Control.Told(run, "beta"), "the second does not fit")

	// While the first works its drive hears that the cap is gone.
	l.Client.OK(t, "budget", "set", run, "--tokens", "0")
	l.Control.Await(t, run, "alpha")
	l.Control.Await(t, run, "beta")
	require.NoError(t, l.Control.Tell(run, "go"))
	l.requireGreen(t, c)
}
