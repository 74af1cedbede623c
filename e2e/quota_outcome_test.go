package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestQuotaOutcomes is about whom to believe: a delivered result beats whatever
// was printed, and an exit code of 0 does not beat an error in the stream.
func TestQuotaOutcomes(t *testing.T) {
	t.Parallel()
	lab := newQuotaLab(t, false, quotaPool{ID: "plain"}, quotaPool{ID: "claude", Speaks: "claude"},
		quotaPool{ID: "own"}, quotaPool{ID: "odd"}, quotaPool{ID: "spare", Rank: 1})
	for _, pool := range []string{"plain", "claude"} {
		t.Run(pool+" text does not take back a result", func(t *testing.T) { lab.testChatter(t, pool) })
	}
	t.Run("a pattern of the user's own decides", lab.testOwnPattern)
	t.Run("an unknown text is kept for a pattern", lab.testUnknownText)
	t.Run("exit 0 is no success with an error event", lab.testErrorEvent)
	t.Run("an error event that is no limit is charged", lab.testOddEvent)
}

func (l *quotaLab) testChatter(t *testing.T, pool string) {
	t.Parallel()
	run := testkit.RunID(t)
	l.Control.Script(t, run, "default",
		"mark {node}/work.txt",
		`say {"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1999999999","session_id":"s"}`,
		"say 429 Too Many Requests", "cry API Error: Rate limit reached", "cry Credit balance is too low",
		"result resolved", "cry Claude AI usage limit reached|1999999999", "exit 1")
	c := l.start(t, nodesOf("alpha"), pool)

	rows := l.requireGreen(t, c)
	require.Len(t, rows["alpha"].Attempts, 1)
	require.Empty(t, l.account(t, pool).States)
}

func (l *quotaLab) testOwnPattern(t *testing.T) {
	t.Parallel()
	own := l.wall(t, "own")
	own.says(t, saysOwn)
	c := l.start(t, nodesOf("alpha"), "own")

	hold := l.awaitHold(t, c.Run, contract.HoldQuota)
	row := l.Client.Nodes(t, c.Run)["alpha"]
	require.Equal(t, []contract.Outcome{contract.OutcomeRateLimited}, outcomes(row, false))
	// The pattern's own 15 s from when the text was read, somewhen during the attempt, a margin of one and a jitter of up to another.
	began := row.Attempts[0].StartedAt
	ended := began.Add(time.Duration(row.Attempts[0].Seconds+1) * time.Second)
	require.WithinRange(t, *hold.Until, began.Add(16*time.Second), ended.Add(17*time.Second))
	own.opens(t)
	l.requireGreen(t, c)
}

func (l *quotaLab) testUnknownText(t *testing.T) {
	t.Parallel()
	l.wall(t, "odd").says(t, saysUnknown)
	c := l.start(t, nodesOf("alpha"), "odd", "spare")

	row := l.requireGreen(t, c)["alpha"]
	require.Equal(t, []contract.Outcome{contract.OutcomeQuotaUnclassified}, outcomes(row, false))
	friction := frictionOf(l.Client.Report(t, c.Run).Friction, contract.FrictionQuotaUnclassified)
	require.Len(t, friction, 1)
	require.Contains(t, friction[0].Note, saysUnknown, "the text is kept, so that a pattern can be written")
}

func (l *quotaLab) testErrorEvent(t *testing.T) {
	t.Parallel()
	run := testkit.RunID(t)
	// The stated reset has passed already: the pool is probed at once.
	l.Control.Script(t, run, "alpha.a1", "mark {node}/work.txt",
		`say {"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1760000400","session_id":"s"}`, "exit 0")
	c := l.start(t, nodesOf("alpha"), "claude")

	row := l.requireGreen(t, c)["alpha"]
	require.Equal(t, []contract.Outcome{contract.OutcomeRateLimited}, outcomes(row, false))
	landed := c.Repo.Git(t, "show", contract.TruthRef(run)+":alpha/work.txt")
	require.Contains(t, landed, "/alpha/a1/")
	require.Contains(t, landed, "/alpha/a2/")
}

func (l *quotaLab) testOddEvent(t *testing.T) {
	t.Parallel()
	run := testkit.RunID(t)
	l.Control.Script(t, run, "alpha.a1", "mark {node}/work.txt",
		`say {"type":"result","subtype":"error_during_execution","is_error":true,"result":"something odd","session_id":"s"}`, "exit 0")
	c := l.start(t, nodesOf("alpha"), "claude")

	v := l.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, l.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	attempts := l.Client.Nodes(t, run)["alpha"].Attempts
	require.Equal(t, contract.OutcomeError, attempts[0].Outcome)
	require.Equal(t, contract.CauseWork, attempts[0].Cause)
	require.True(t, attempts[0].Charged)
}

// TestQuotaCapOverTwoRuns lets two runs share an account. The host would allow
// more workers: only the account's broker can keep them to the cap.
func TestQuotaCapOverTwoRuns(t *testing.T) {
	t.Parallel()
	lab := newQuotaLab(t, false,
		quotaPool{ID: "three", Account: "account-three", Max: 3, HostMax: 8},
		quotaPool{ID: "four", Account: "account-four", Max: 4, HostMax: 8},
	)
	for pool, slots := range map[string]int{"three": 3, "four": 4} {
		t.Run(pool, func(t *testing.T) { lab.testCap(t, pool, slots) })
	}
}

func (l *quotaLab) testCap(t *testing.T, pool string, slots int) {
	t.Parallel()
	counts := l.wall(t, pool)
	counts.put(t, "counts", "")
	plan := nodesOf("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
	policy := map[string]any{"resume_margin": "1s", "resume_jitter": "1s"}
	plan.Policy = policy
	var cases []*testkit.Case
	for _, suffix := range []string{"-x", "-y"} {
		run := testkit.RunID(t) + suffix
		l.Control.Script(t, run, "default", "mark {node}/work.txt", "work 1500ms", "result resolved")
		cases = append(cases, testkit.NewCase(t, run, plan))
	}
	pools := l.runPools(t, pool)
	for _, c := range cases {
		l.Client.Start(t, c.Run, c.Repo.URL, c.Path, pools)
	}
	for _, c := range cases {
		rows := l.requireGreen(t, c)
		for id, row := range rows {
			require.Len(t, row.Attempts, 1, id)
		}
	}
	require.Equal(t, slots, counts.most(t), "workers alive at once over both runs")
	var both [2][2]time.Time
	for i, c := range cases {
		events := l.Control.Events(t, c.Run)
		both[i] = [2]time.Time{events[0].At, events[len(events)-1].At}
	}
	require.True(t, both[0][0].Before(both[1][1]) && both[1][0].Before(both[0][1]), "the runs did work at the same time")
}
