package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"mendflow/activities"
	"mendflow/internal/contract"
)

// nobody is how an attempt ends that no host takes from its queue.
func nobody() attemptScript {
	return attemptScript{err: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)}
}

// Every host is drained or down: the run is held until one polls again, by itself,
// and nobody is charged.
func TestRunWithoutHostsIsHeldUntilOnePolls(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 1, "a"))
	w := newWorld(t, h)
	back := w.began.Add(6 * time.Hour)
	h.work = func(contract.NodeInput) attemptScript {
		if w.env.Now().Before(back) {
			return nobody()
		}
		return attemptScript{takes: time.Minute}
	}
	h.served = func() string {
		if w.env.Now().Before(back) {
			return ""
		}
		return "main"
	}
	var held contract.RunView
	w.at(3*time.Hour, func() { held = w.status(t) })

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, contract.RunPaused, held.Status)
	require.Len(t, held.Holds, 1)
	require.Equal(t, contract.HoldService, held.Holds[0].Kind)
	require.Equal(t, "worker --pools FILE", held.Holds[0].Lift)
	require.Less(t, w.env.Now().Sub(back), 10*time.Minute, "it noticed the host at once")
	for id, row := range h.rows() {
		require.Equal(t, contract.NodeLanded, row.State, id)
		require.LessOrEqual(t, len(row.Attempts), 2, "it did not try again and again")
		for _, a := range row.Attempts {
			require.Equal(t, a.Outcome == contract.OutcomeSuccess, a.Charged, "%+v", a)
		}
	}
}

// A pool without hosts does not stop a run that has another one.
func TestPoolWithoutHostsIsPassedOver(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"), unit("c", 2, "b"))
	lonely, served := testPool("lonely", 1), testPool("served", 1)
	served.Rank = 1
	w := newWorld(t, h, lonely, served)
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Pool == "lonely" {
			return nobody()
		}
		return attemptScript{takes: time.Minute}
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	for id, row := range h.rows() {
		require.Equal(t, "served", row.Attempts[len(row.Attempts)-1].Pool, id)
	}
	require.Less(t, w.env.Now().Sub(w.began), time.Hour)
	require.Zero(t, h.count("AwaitHosts"))
}

// A pause ends, and another pool's hosts are away: what ends first lets the node go on.
func TestHostsAwayBesideAWall(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	lonely, walled := testPool("lonely", 1), testPool("walled", 1)
	walled.Rank = 1
	w := newWorld(t, h, lonely, walled)
	reset := w.began.Add(2 * time.Hour)
	h.served = func() string { return "" }
	h.work = func(in contract.NodeInput) attemptScript {
		switch {
		case in.Pool == "lonely":
			return nobody()
		case w.env.Now().Before(reset):
			return attemptScript{end: contract.WorkerEnd{
				Outcome: contract.OutcomeRateLimited, Limit: &contract.Limit{ResetAt: &reset, ReopensAt: &reset, Scope: "account"},
			}}
		}
		return attemptScript{takes: time.Minute}
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Less(t, w.env.Now().Sub(reset), time.Hour)
}

// An operator's pause and the wait for hosts know nothing of each other.
func TestHostThatComesBackDuringAPauseStartsNothing(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	w := newWorld(t, h)
	back := w.began.Add(3 * time.Hour)
	h.work = func(contract.NodeInput) attemptScript {
		if w.env.Now().Before(back) {
			return nobody()
		}
		return attemptScript{}
	}
	h.served = func() string {
		if w.env.Now().Before(back) {
			return ""
		}
		return "main"
	}
	var both, paused contract.RunView
	w.at(time.Hour, func() { w.signal(t, contract.CommandPause, "maintenance") })
	w.at(2*time.Hour, func() { both = w.status(t) })
	w.at(4*time.Hour, func() { paused = w.status(t) })
	w.at(5*time.Hour, func() { w.signal(t, contract.CommandResume, nil) })

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, both.Holds, 2)
	require.Len(t, paused.Holds, 1)
	require.Equal(t, contract.HoldOperator, paused.Holds[0].Kind)
	require.Len(t, h.tried("a"), 2)
}

// The server is asked who polls: here somebody, there nobody.
func TestAwaitHostsAsksWhoPolls(t *testing.T) {
	t.Parallel()
	f, err := openFarm()
	require.NoError(t, err)
	asked := &activities.Service{Server: f.client}
	pool, err := asked.AwaitHosts(t.Context(), []string{"nobody", "main"})
	require.NoError(t, err)
	require.Equal(t, "main", pool)
	_, err = asked.AwaitHosts(t.Context(), []string{"nobody"})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, contract.ErrorServiceUnready, app.Type())
}

// serve starts a host that polls a pool's queue.
func (l *lab) serve(pool string) {
	l.t.Helper()
	w := worker.New(l.client, contract.PoolQueue(pool), worker.Options{DisableWorkflowWorker: true})
	l.register(w)
	require.NoError(l.t, w.Start())
	l.t.Cleanup(w.Stop)
}
