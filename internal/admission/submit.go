package admission

import (
	"fmt"
	"strings"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Submit decides about a run: it starts, waits in the queue, is open already, or
// nothing of it is stored.
func (m *Scheduler) Submit(s contract.Submission, now time.Time) contract.Submitted {
	if err := check(s); err != nil {
		return contract.Submitted{Decision: contract.DecisionRejected, Cause: contract.RejectedInvalidPlan, Reason: clip(err.Error())}
	}
	run, generation, refusal := m.identify(s)
	if refusal != nil {
		return *refusal
	}
	if m.state.Mode != contract.ModeEnabled {
		return contract.Submitted{
			Decision: contract.DecisionDeferred, Cause: contract.DeferredNotAccepting,
			Reason: fmt.Sprintf("the scheduler is %s: submit again after `starter scheduler enable`", m.state.Mode),
		}
	}
	m.state.Arrivals++
	r := &record{
		Run: run, Plan: s.Plan, Repository: s.Repository, Base: s.Base, Generation: generation, Parallel: s.Parallel,
		Arrival: m.state.Arrivals, Priority: s.Priority, By: clip(s.By), Input: s.Input, SubmittedAt: now, Status: contract.RunQueued,
	}
	m.state.Records = append(m.state.Records, r)
	m.settle(now)
	if queued := len(m.names(waiting)); !r.Begun && queued > m.state.Limits.MaxQueued {
		m.state.Arrivals--
		m.state.Records = m.state.Records[:len(m.state.Records)-1]
		return contract.Submitted{
			Decision: contract.DecisionDeferred, Cause: contract.DeferredQueueCapacity,
			Reason: fmt.Sprintf("%d runs are queued, as many as may be: submit again when one has started, or raise max_queued with `starter scheduler limits`", queued-1),
		}
	}
	m.state.Used.add(key(run))
	if r.Begun {
		return contract.Submitted{Decision: contract.DecisionStarted, Run: run}
	}
	m.event(now, "%s is queued: %s", run, r.Reason)
	return contract.Submitted{Decision: contract.DecisionQueued, Run: run, Behind: r.Behind, Position: m.position(r), Reason: r.Reason}
}

// check says what is wrong with a submission.
func check(s contract.Submission) error {
	if err := plan.CheckPlanID(s.Plan); err != nil {
		return fmt.Errorf("read plan id: %w", err)
	}
	if s.ID != "" {
		if err := plan.CheckID(s.ID); err != nil {
			return fmt.Errorf("read run id: %w", err)
		}
	}
	switch {
	case strings.TrimSpace(s.Repository) == "":
		return fmt.Errorf("read submission: it names no repository")
	case s.Input.URI == "":
		return fmt.Errorf("read submission: it has no stored input; `starter start` makes one")
	case s.Generation < 0:
		return fmt.Errorf("read submission: generation %d is negative", s.Generation)
	}
	return nil
}

// identify finds the name of the run, or says why there is none for it.
func (m *Scheduler) identify(s contract.Submission) (run string, generation int, refusal *contract.Submitted) {
	if s.ID != "" {
		r := m.find(s.ID)
		switch {
		case r != nil && r.Plan == s.Plan && r.Repository == s.Repository && !s.Again:
			return "", 0, duplicate(r)
		case r != nil:
			return "", 0, rejected(contract.RejectedIDInUse, r.Run, "%s is open: choose another id", r.Run)
		case m.state.Used.has(key(s.ID)):
			return "", 0, rejected(contract.RejectedIDInUse, s.ID, "%s ran before: choose another id", s.ID)
		}
		return s.ID, 0, nil
	}
	for generation = max(s.Generation, 1); ; generation++ {
		run = RunID(s.Repository, s.Plan, generation)
		r := m.find(run)
		switch {
		case r == nil && !m.state.Used.has(key(run)):
			if s.Run != "" && s.Run != run {
				return "", 0, rejected(contract.RejectedGenerationUsed, run, "another generation was admitted meanwhile: the next one is %s", run)
			}
			return run, generation, nil
		case s.Again:
		case r != nil:
			return "", 0, duplicate(r)
		default:
			return "", 0, rejected(contract.RejectedGenerationUsed, run, "%s ran before: run the plan once more with --again", run)
		}
	}
}

func duplicate(r *record) *contract.Submitted {
	return &contract.Submitted{
		Decision: contract.DecisionDuplicate, Run: r.Run, Status: r.status(), Behind: r.Behind,
		Reason: fmt.Sprintf("%s is open and %s", r.Run, r.status()),
	}
}

func rejected(cause, run, format string, args ...any) *contract.Submitted {
	return &contract.Submitted{Decision: contract.DecisionRejected, Cause: cause, Run: run, Reason: fmt.Sprintf(format, args...)}
}

// position is a run's place among those that wait and are not held, from 1.
func (m *Scheduler) position(r *record) int {
	for i, other := range m.queue() {
		if other == r {
			return i + 1
		}
	}
	return 0
}
