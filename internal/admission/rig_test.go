package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// rig is a scheduler with the runs that it started: each obeys its orders when
// the test lets it, and tells its state.
type rig struct {
	t    require.TestingT
	m    *Scheduler
	now  time.Time
	runs map[string]*fakeRun
	sent []contract.SlotOrder
	// begun are the runs that were started, in order.
	begun []string
}

// fakeRun is the side of a run, as the workflow plays it.
type fakeRun struct {
	name               string
	status             contract.RunStatus
	execution          string
	seq, orders, grant int
	slot               bool
	holds              []contract.HoldKind
	used, need, least  contract.Amount
	inbox              []contract.SlotOrder // sent and not taken yet
	cancelled          bool
}

func newRig(t require.TestingT) *rig {
	return &rig{t: t, m: New(noon), now: noon, runs: map[string]*fakeRun{}}
}

func (g *rig) limits(running, queued int) {
	g.m.SetLimits(contract.SchedulerOrder{MaxRunning: &running, MaxQueued: &queued}, g.now)
	g.carryOut()
}

func submission(repository string) contract.Submission {
	return contract.Submission{Plan: "p", Repository: repository, Base: "main", Input: contract.Artifact{URI: "input"}}
}

func (g *rig) submit(s contract.Submission) contract.Submitted {
	answer := g.m.Submit(s, g.now)
	g.carryOut()
	return answer
}

// started submits a run that starts at once and takes its slot.
func (g *rig) started(id string) *fakeRun {
	s := submission("/repo/" + id)
	s.ID = id
	require.Equal(g.t, contract.DecisionStarted, g.submit(s).Decision)
	g.take(id)
	g.tell(id, contract.RunStarting, contract.RunPreparing, contract.RunImplementing)
	return g.runs[id]
}

// queued submits a run that has to wait.
func (g *rig) queued(id string) contract.Submitted {
	s := submission("/repo/" + id)
	s.ID = id
	answer := g.submit(s)
	require.Equal(g.t, contract.DecisionQueued, answer.Decision, answer.Reason)
	return answer
}

// carryOut does what the scheduler wants done, and checks its invariants.
func (g *rig) carryOut() {
	for _, a := range g.m.Actions() {
		if a.Start != nil {
			require.NotContains(g.t, g.runs, a.Run, "started once")
			g.runs[a.Run] = &fakeRun{name: a.Run, status: contract.RunStarting, execution: "x1"}
			g.begun = append(g.begun, a.Run)
		}
		if a.Order != nil {
			g.runs[a.Run].inbox = append(g.runs[a.Run].inbox, *a.Order)
			g.sent = append(g.sent, *a.Order)
		}
	}
	require.NoError(g.t, g.m.Check())
}

// take lets a run read its orders.
func (g *rig) take(name string) {
	r := g.runs[name]
	for _, o := range r.inbox {
		r.orders = o.Seq
		r.drop(contract.HoldScheduler)
		if o.Hold != nil {
			r.place(contract.HoldScheduler)
		}
		if o.Grant > r.grant {
			r.grant, r.slot = o.Grant, true
		}
		for _, c := range o.Commands {
			switch c.Name {
			case contract.CommandPause:
				r.place(contract.HoldOperator)
			case contract.CommandResume:
				r.drop(contract.HoldOperator)
			case contract.CommandCancel:
				r.cancelled = true
			}
		}
	}
	r.inbox = nil
}

func (r *fakeRun) place(kind contract.HoldKind) {
	if !slices.Contains(r.holds, kind) {
		r.holds = append(r.holds, kind)
	}
}

func (r *fakeRun) drop(kind contract.HoldKind) {
	r.holds = slices.DeleteFunc(r.holds, func(k contract.HoldKind) bool { return k == kind })
}

// tell has a run say that it went through these statuses.
func (g *rig) tell(name string, path ...contract.RunStatus) {
	require.NoError(g.t, g.m.Report(g.runs[name].state(path...), g.now))
	g.carryOut()
}

func (r *fakeRun) state(path ...contract.RunStatus) contract.RunState {
	if len(path) == 0 {
		path = []contract.RunStatus{r.status}
	}
	r.status = path[len(path)-1]
	switch r.status {
	case contract.RunPaused, contract.RunQueued, contract.RunClosing, contract.RunPublishing:
		r.slot = false
	default:
		r.slot = r.slot && !r.status.Closed()
	}
	r.seq++
	s := contract.RunState{
		Run: r.name, Execution: r.execution, Seq: r.seq, Path: path, Orders: r.orders, Grant: r.grant, Slot: r.slot,
		Want: !r.slot && len(r.holds) == 0 && run.CanCancel(r.status), Used: r.used, Need: r.need, Least: r.least,
	}
	for _, k := range r.holds {
		s.Holds = append(s.Holds, contract.Hold{Kind: k})
	}
	return s
}

// pause has a working run pause by itself, for a hold of its own.
func (g *rig) pause(name string, kind contract.HoldKind) {
	g.runs[name].place(kind)
	g.tell(name, contract.RunPausing, contract.RunPaused)
}

// want has a paused run ask for a slot after its last hold was lifted.
func (g *rig) want(name string) {
	r := g.runs[name]
	r.holds = nil
	g.tell(name, contract.RunQueued)
	g.take(name)
	if r.slot {
		g.tell(name, contract.RunImplementing)
	}
}

// end has a run close.
func (g *rig) end(name string) {
	g.tell(name, contract.RunClosing, contract.RunCompleted)
}

// carry writes the scheduler and reads it back, as continue-as-new does.
func (g *rig) carry() {
	data, err := json.Marshal(g.m)
	require.NoError(g.t, err)
	g.m = &Scheduler{}
	require.NoError(g.t, json.Unmarshal(data, g.m))
	require.NoError(g.t, g.m.Check())
}

func (g *rig) status(name string) contract.RunStatus {
	row, found, _ := g.m.Run(name)
	require.True(g.t, found, name)
	return row.Status
}

func (g *rig) queueOrder() []string {
	var names []string
	for _, row := range g.m.Runs(0, 1000) {
		if row.Position > 0 {
			names = append(names, row.Run)
		}
	}
	return names
}

func order(run string) contract.SchedulerOrder {
	return contract.SchedulerOrder{Run: run, By: "ops", Reason: fmt.Sprintf("about %s", run)}
}
