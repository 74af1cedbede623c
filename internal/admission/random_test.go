package admission

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
)

// sequences is how many random sequences of commands a run of the tests plays.
const sequences = "10000"

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", sequences); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestInvariantsHoldAfterEveryCommand plays random commands of operators and
// words of runs, in any order that the messages between them may come in; the
// scheduler is written and read back now and then.
func TestInvariantsHoldAfterEveryCommand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &player{rig: newRig(t), held: map[string]bool{}}
		for range rapid.IntRange(1, 30).Draw(t, "commands") {
			rapid.SampledFrom(p.moves()).Draw(t, "move")(t)
			p.carryOut()
			p.check(t)
		}
		p.finish(t)
	})
}

// player plays a story; held are the runs on which an operator placed a hold in the queue.
type player struct {
	*rig
	names []string
	held  map[string]bool
}

func (p *player) moves() []func(*rapid.T) {
	moves := []func(*rapid.T){p.submitSome, p.submitSome, p.mode, p.limit, p.spend}
	if len(p.names) > 0 {
		moves = append(moves, p.command, p.command)
	}
	if len(p.begun) > 0 {
		moves = append(moves, p.listen, p.listen, p.live, p.live, p.live, p.lose)
	}
	return append(moves, func(*rapid.T) { p.carry() })
}

func (p *player) submitSome(t *rapid.T) {
	s := submission(fmt.Sprintf("/repo/%d", rapid.IntRange(0, 3).Draw(t, "repository")))
	s.Again, s.Parallel = rapid.Bool().Draw(t, "again"), rapid.IntRange(0, 4).Draw(t, "parallel") == 0
	s.Priority = rapid.IntRange(-1, 1).Draw(t, "priority")
	if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
		s.ID = fmt.Sprintf("id-%d", rapid.IntRange(0, 5).Draw(t, "id"))
	}
	before := p.m.Status()
	answer := p.m.Submit(s, p.now)
	switch answer.Decision {
	case contract.DecisionStarted, contract.DecisionQueued:
		require.NotContains(t, p.names, answer.Run, "a name is given once")
		p.names = append(p.names, answer.Run)
	default:
		require.Equal(t, before, p.m.Status(), "nothing is stored")
		require.NotEmpty(t, answer.Reason)
	}
}

func (p *player) mode(t *rapid.T) {
	flagged := rapid.Bool().Draw(t, "flag")
	before := p.m.Status()
	var answer contract.SchedulerAnswer
	switch rapid.IntRange(0, 3).Draw(t, "mode") {
	case 0, 1:
		answer = p.m.Enable(contract.SchedulerOrder{}, p.now)
	case 2:
		answer = p.m.Drain(contract.SchedulerOrder{Finish: flagged}, p.now)
	case 3:
		answer = p.m.Disable(contract.SchedulerOrder{OnlyIfIdle: flagged}, p.now)
	}
	if answer.Refused != "" {
		require.NotEmpty(t, answer.InTheWay)
		require.Equal(t, before, p.m.Status())
	}
}

func (p *player) limit(t *rapid.T) {
	running, queued := rapid.IntRange(1, 4).Draw(t, "running"), rapid.IntRange(0, 4).Draw(t, "queued")
	p.m.SetLimits(contract.SchedulerOrder{MaxRunning: &running, MaxQueued: &queued}, p.now)
}

func (p *player) spend(t *rapid.T) {
	tokens := rapid.SampledFrom([]int64{0, 10, 1000, 100_000}).Draw(t, "tokens")
	p.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, p.now)
}

func (p *player) command(t *rapid.T) {
	name := rapid.SampledFrom(p.names).Draw(t, "run")
	row, found, known := p.m.Run(name)
	require.True(t, known)
	o := order(name)
	switch rapid.IntRange(0, 3).Draw(t, "command") {
	case 0:
		if answer := p.m.Hold(o, p.now); answer.Refused == "" && !row.Begun {
			p.held[name] = true
		}
	case 1:
		if answer := p.m.Release(o, p.now); answer.Refused == "" && !row.Begun {
			delete(p.held, name)
		}
	case 2:
		if answer := p.m.Cancel(o, p.now); answer.Refused == "" && found && !row.Begun {
			delete(p.held, name)
		}
	case 3:
		priority := rapid.IntRange(-2, 2).Draw(t, "priority")
		o.Priority = &priority
		p.m.Prioritize(o, p.now)
	}
}

// open picks a run that lives.
func (p *player) open(t *rapid.T) *fakeRun {
	r := p.runs[rapid.SampledFrom(p.begun).Draw(t, "begun")]
	if r.status.Closed() || r.status == "" {
		return nil
	}
	return r
}

func (p *player) listen(t *rapid.T) {
	if r := p.open(t); r != nil {
		p.take(r.name)
	}
}

// live moves a run on as the workflow would, and has it say so.
func (p *player) live(t *rapid.T) {
	r := p.open(t)
	if r == nil {
		return
	}
	r.used.Tokens += int64(rapid.IntRange(0, 200).Draw(t, "used"))
	r.need.Tokens, r.least.Tokens = int64(rapid.IntRange(0, 300).Draw(t, "need")), int64(rapid.IntRange(0, 100).Draw(t, "least"))
	switch rapid.IntRange(0, 3).Draw(t, "hold") {
	case 0:
		r.place(rapid.SampledFrom([]contract.HoldKind{contract.HoldQuota, contract.HoldBudget, contract.HoldOperator}).Draw(t, "kind"))
	case 1:
		for _, k := range []contract.HoldKind{contract.HoldQuota, contract.HoldBudget, contract.HoldOperator} {
			r.drop(k)
		}
	}
	p.tell(r.name, r.next(rapid.Bool().Draw(t, "fast"))...)
}

// next is where a run goes from where it is.
func (r *fakeRun) next(fast bool) []contract.RunStatus {
	type path = []contract.RunStatus
	held := len(r.holds) > 0
	switch r.status {
	case contract.RunClosing:
		return path{contract.RunCompleted}
	case contract.RunPausing:
		return path{contract.RunPaused}
	case contract.RunPaused, contract.RunQueued:
		switch {
		case r.cancelled:
			return path{contract.RunClosing}
		case held:
			return path{contract.RunPaused}
		case r.slot:
			return path{contract.RunImplementing}
		}
		return path{contract.RunQueued}
	}
	switch {
	case !r.slot && held:
		return path{contract.RunPaused}
	case !r.slot:
		return nil // it has not heard of its first slot
	case held && fast:
		return path{contract.RunPausing, contract.RunPaused}
	case held:
		return path{contract.RunPausing}
	case r.cancelled:
		return path{contract.RunClosing, contract.RunCancelled}
	case r.status == contract.RunStarting:
		return path{contract.RunPreparing, contract.RunImplementing}
	case r.status == contract.RunImplementing && !fast:
		return path{contract.RunGating}
	case r.status == contract.RunGating && fast:
		return path{contract.RunClosing, contract.RunCompleted}
	}
	return nil
}

// lose has a run vanish, or come back as another execution of itself.
func (p *player) lose(t *rapid.T) {
	r := p.open(t)
	if r == nil {
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "fate") {
	case 0:
		p.m.Vanished(r.name, p.now)
		r.inbox = nil
	case 1:
		r.execution += "'"
		p.tell(r.name)
	}
}

// check compares with what the story says.
func (p *player) check(t *rapid.T) {
	for _, row := range p.m.Runs(0, 1000) {
		if row.ClosedAt == nil && !row.Begun {
			require.Equal(t, p.held[row.Run], len(row.Holds) > 0, "%s: an operator's hold is there when an operator placed it", row.Run)
		}
	}
	status := p.m.Status()
	require.Equal(t, len(p.names), status.Running+status.Queued+status.Held+status.Closed)
	if status.Budget != nil {
		var used int64
		for _, r := range p.runs {
			used += p.told(r)
		}
		require.Equal(t, used, status.Budget.Settled.Tokens, "the deployment's sum is the sum over its runs")
	}
}

// told is what a run said that it used.
func (p *player) told(r *fakeRun) int64 {
	row, found, _ := p.m.Run(r.name)
	if !found || row.Used == nil {
		return 0
	}
	return row.Used.Tokens
}

// finish lets everything go: no run is forgotten, and the queue empties.
func (p *player) finish(t *rapid.T) {
	none, many := int64(0), 100
	p.m.SetBudget(contract.SchedulerOrder{Tokens: &none}, p.now)
	p.m.SetLimits(contract.SchedulerOrder{MaxQueued: &many}, p.now)
	p.carryOut()
	for range 400 {
		if p.m.Status().Mode != contract.ModeEnabled {
			p.m.Enable(contract.SchedulerOrder{}, p.now)
			p.carryOut()
		}
		for _, row := range p.m.Runs(0, 1000) {
			switch {
			case row.ClosedAt != nil:
			case row.Status == contract.RunRecovery:
				p.m.Cancel(order(row.Run), p.now)
			case !row.Begun:
				p.m.Release(order(row.Run), p.now)
			default:
				p.take(row.Run)
				r := p.runs[row.Run]
				for _, k := range []contract.HoldKind{contract.HoldQuota, contract.HoldBudget, contract.HoldOperator} {
					r.drop(k)
				}
				p.tell(row.Run, r.next(r.status != contract.RunImplementing)...)
			}
			p.carryOut()
		}
		if p.m.Status().Closed == len(p.names) {
			return
		}
	}
	t.Fatalf("not all of %d runs came to their end: %+v", len(p.names), p.m.Runs(0, 1000))
}
