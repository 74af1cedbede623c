package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/admission"
	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// runCheckEvery is how often a scheduler looks whether the runs that it started
// still exist. A terminated run tells nobody; its slot comes back by this.
const runCheckEvery = 2 * time.Minute

// Scheduler admits the runs of a deployment. It is an entity: started when
// somebody needs it, continued as new, never finished.
func Scheduler(ctx workflow.Context, in contract.SchedulerInput) error {
	s := &scheduler{
		id: workflow.GetInfo(ctx).WorkflowExecution.ID, machine: admission.New(workflow.Now(ctx)),
		friction: &run.FrictionBook{}, boxes: map[string]*outbox[contract.SlotOrder]{},
	}
	if err := s.register(ctx); err != nil {
		return err
	}
	if err := s.restore(ctx, in.Carried); err != nil {
		return err
	}
	return s.run(ctx)
}

// scheduler is the state of the workflow. Rules are the machine's; this carries
// out what it decides, and tells it what happened.
type scheduler struct {
	id       string
	machine  *admission.Scheduler
	requests run.Requests[schedulerReply]
	friction *run.FrictionBook
	inbox    inbox

	boxes    map[string]*outbox[contract.SlotOrder] // by run
	order    []string                               // runs that have an outbox, oldest first
	starting []string                               // runs whose start is under way
	gone     []string                               // runs whose workflow does not run any more
	paging   bool
	alarm    alarm
	checked  time.Time
	dirty    bool

	restored bool // what the execution before this one carried is in
}

// schedulerReply is what a request was answered; one of the two is set.
type schedulerReply struct {
	Submitted *contract.Submitted       `json:"s,omitempty"`
	Answer    *contract.SchedulerAnswer `json:"a,omitempty"`
}

func (s *scheduler) run(ctx workflow.Context) error {
	for {
		s.dirty = false
		s.inbox.drain()
		s.takeGone(ctx)
		if s.alarm.ring() {
			s.checkRuns(ctx)
		}
		s.act(ctx)
		s.page(ctx)
		s.describe(ctx)
		changed := func() bool { return s.dirty || len(s.gone) > 0 }
		renew := s.mayContinue(ctx)
		ready := func() bool { return changed() || s.inbox.pending() || s.mayContinue(ctx) }
		if renew {
			// Nothing is taken in any more: a steady stream of messages must not keep the history growing.
			ready = func() bool { return changed() || s.quiet(ctx) }
		}
		s.alarm.set(ctx, s.wake(workflow.Now(ctx)), "look for vanished runs")
		if err := wait(ctx, &s.alarm, ready); err != nil {
			return err
		}
		if renew && !changed() && s.quiet(ctx) {
			if err := s.continueAsNew(ctx, changed); err != nil {
				return err
			}
		}
	}
}

// wake is the next instant at which something is looked after; zero while no run is open.
func (s *scheduler) wake(now time.Time) time.Time {
	if len(s.machine.Begun()) == 0 {
		s.checked = time.Time{}
		return time.Time{}
	}
	if s.checked.IsZero() {
		s.checked = now
	}
	return s.checked.Add(runCheckEvery)
}

// act carries out what the machine decided: starts, and orders to runs, one
// message in flight for each.
func (s *scheduler) act(ctx workflow.Context) {
	for _, a := range s.machine.Actions() {
		if a.Start != nil {
			s.start(ctx, a.Run, *a.Start)
		}
		if a.Order != nil {
			s.box(a.Run).send(ctx, *a.Order)
		}
	}
	s.order = slices.DeleteFunc(s.order, func(name string) bool {
		row, _, _ := s.machine.Run(name)
		over := row.ClosedAt != nil && s.boxes[name].idle()
		if over {
			delete(s.boxes, name)
		}
		return over
	})
}

// start starts a run at once. Its orders wait until it is there.
func (s *scheduler) start(ctx workflow.Context, name string, input contract.Artifact) {
	box := s.box(name)
	box.sending = true
	s.starting = append(s.starting, name)
	workflow.Go(ctx, func(ctx workflow.Context) {
		in := contract.StartRunInput{Run: name, Scheduler: s.id, Input: input}
		err := workflow.ExecuteActivity(withStartOptions(ctx, "start "+name), service.StartRun, in).Get(ctx, nil)
		s.starting = slices.DeleteFunc(s.starting, func(n string) bool { return n == name })
		s.dirty = true
		if err != nil {
			workflow.GetLogger(ctx).Error("start run", "run", name, "error", err)
			s.machine.StartFailed(name, oneLine(err.Error()), workflow.Now(ctx))
			box.queue, box.sending = nil, false
			return
		}
		box.flush(ctx)
	})
}

// box is the outbox to a run. A run that is not there to take an order has
// closed without a word, since its last word is acknowledged before it closes.
func (s *scheduler) box(name string) *outbox[contract.SlotOrder] {
	box, ok := s.boxes[name]
	if !ok {
		box = &outbox[contract.SlotOrder]{
			target: contract.RemediationID(name), signal: contract.SignalSlot, merge: mergeSlotOrders,
			lost: func(workflow.Context, contract.SlotOrder, error) { s.gone = append(s.gone, name) },
		}
		s.boxes[name] = box
		s.order = append(s.order, name)
	}
	return box
}

// mergeSlotOrders joins two orders: they are the whole state but for commands.
func mergeSlotOrders(older, newer contract.SlotOrder) (contract.SlotOrder, bool) {
	newer.Commands = append(slices.Clone(older.Commands), newer.Commands...)
	return newer, fits(newer)
}

// takeGone takes the word that runs are gone, after everything that they said.
func (s *scheduler) takeGone(ctx workflow.Context) {
	for _, name := range s.gone {
		if s.machine.Vanished(name, workflow.Now(ctx)) {
			workflow.GetLogger(ctx).Warn("run vanished", "run", name)
		}
	}
	s.gone = nil
}

// checkBatch bounds how many runs one look at the server is about.
const checkBatch = 100

// checkRuns asks the server about every run that should have a workflow.
func (s *scheduler) checkRuns(ctx workflow.Context) {
	s.checked = workflow.Now(ctx)
	for names := range slices.Chunk(s.machine.Begun(), checkBatch) {
		var ids []string
		for _, name := range names {
			if !slices.Contains(s.starting, name) {
				ids = append(ids, contract.RemediationID(name))
			}
		}
		if len(ids) == 0 {
			continue
		}
		workflow.Go(ctx, func(ctx workflow.Context) {
			var closed []string
			if err := workflow.ExecuteActivity(withLightOptions(ctx, "look for vanished runs"), service.ClosedWorkflows, ids).Get(ctx, &closed); err != nil {
				workflow.GetLogger(ctx).Warn("check runs", "error", err)
				return
			}
			for _, id := range closed {
				if name, ok := contract.ParseRemediationID(id); ok {
					s.gone = append(s.gone, name)
				}
			}
		})
	}
}

// page stores the oldest closed runs away when many are listed.
func (s *scheduler) page(ctx workflow.Context) {
	rows := s.machine.Page()
	if rows == nil || s.paging {
		return
	}
	s.paging = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		defer func() { s.paging, s.dirty = false, true }()
		data, err := json.Marshal(rows)
		if err != nil { // plain values always marshal
			panic(fmt.Sprintf("marshal closed runs: %v", err))
		}
		var stored contract.Artifact
		in := contract.StateInput{Run: s.id, Name: fmt.Sprintf("closed-%06d", s.machine.Status().Closed-len(rows)), Data: data}
		if err := workflow.ExecuteActivity(withLightOptions(ctx, "store closed runs"), artifact.SaveState, in).Get(ctx, &stored); err != nil {
			workflow.GetLogger(ctx).Warn("store closed runs", "error", err) // they stay listed; the next close tries again
			return
		}
		s.machine.Paged(stored)
	})
}
