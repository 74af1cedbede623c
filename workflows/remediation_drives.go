package workflows

import (
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// driveCheckEvery is how long a drive may be silent before the run asks the
// server whether it still exists: a terminated one tells nobody.
const driveCheckEvery = 5 * time.Minute

// changeSealedStart: a drive learns with its start that no node follows.
const changeSealedStart = "sealed-at-start"

// lostDriveAttempts is how many attempt numbers are skipped for the nodes of a
// drive that vanished: it may have launched that many without telling.
const lostDriveAttempts = 100

// drive is an open `Level` workflow as its run sees it.
type drive struct {
	Number  int                  `json:"number"`
	Depth   int                  `json:"depth"`
	Orders  int                  `json:"orders"`  // Seq of the last order sent
	Reports int                  `json:"reports"` // Seq of the last report taken
	Sealed  bool                 `json:"sealed,omitempty"`
	Stop    contract.StopMode    `json:"stop,omitempty"`
	Ended   bool                 `json:"ended,omitempty"` // it drained; an order may have crossed its last report
	Nodes   []contract.Admission `json:"nodes,omitempty"` // admitted, neither settled nor stranded
	Heard   time.Time            `json:"heard"`
	Lease   *contract.Lease      `json:"lease,omitempty"` // the last one told
	box     *outbox[contract.DriveOrder]
}

// outstanding counts the nodes that drives have.
func (r *remediation) outstanding() int {
	n := 0
	for _, d := range r.drives {
		n += len(d.Nodes)
	}
	return n
}

// quiet reports whether nothing of the run is alive: no drive, no job.
func (r *remediation) quiet() bool { return len(r.drives) == 0 && r.work == nil && r.baseline == nil }

// admit hands nodes to the drives of their levels, to new ones where none is open.
func (r *remediation) admit(ctx workflow.Context) {
	free := r.pools.slots() + 2 - r.outstanding()
	if free < 2 { // all slots have their node and one more waits: the next order brings two
		free = 0 // without a free place it still takes up what is due
	}
	var fresh []*drive
	for _, a := range r.front.Admissions(workflow.Now(ctx), free) {
		d := r.driveFor(a.Depth)
		if d == nil {
			d = r.newDrive(ctx, a.Depth)
			fresh = append(fresh, d)
		}
		d.Nodes = append(d.Nodes, a.Admission)
		if !slices.Contains(fresh, d) {
			r.order(ctx, d, contract.DriveOrder{Nodes: []contract.Admission{a.Admission}, Lease: r.leaseIfNew(d)})
		}
	}
	for _, d := range fresh {
		r.startDrive(ctx, d)
	}
}

func (r *remediation) driveFor(depth int) *drive {
	for _, d := range r.drives {
		if d.Depth == depth && !d.Sealed && d.Stop == "" {
			return d
		}
	}
	return nil
}

// newDrive makes room for a drive of a level.
func (r *remediation) newDrive(ctx workflow.Context, depth int) *drive {
	r.launched++
	d := &drive{Number: r.launched, Depth: depth, Heard: workflow.Now(ctx)}
	r.drives = append(r.drives, d)
	r.connect(d)
	d.box.sending = true // until the child has started there is nobody to send to
	return d
}

// startDrive starts the `Level` child of a new drive. Its nodes travel with it,
// as many as fit: an order would reach it two workflow tasks later.
func (r *remediation) startDrive(ctx workflow.Context, d *drive) {
	in := contract.LevelInput{
		Run: r.in.Run, Drive: d.Number, Depth: d.Depth, Nodes: slices.Clone(d.Nodes), Lease: r.leaseIfNew(d),
		Config: r.opened.Config, Pools: r.in.Pools, Recomposed: r.in.Recomposed,
		Policy: contract.LevelPolicy{
			Spill: r.opened.Policy.Spill, AttemptTokens: r.opened.Policy.AttemptTokens, Limits: r.opened.Policy.Limits,
		},
		Settled: r.pools.settled(), Used: r.pools.used(),
	}
	for !fits(in) && len(in.Nodes) > 0 {
		in.Nodes = in.Nodes[:len(in.Nodes)/2]
	}
	for _, a := range d.Nodes[len(in.Nodes):] {
		r.order(ctx, d, contract.DriveOrder{Nodes: []contract.Admission{a}})
	}
	// A drive that has all of its level is told so at once: the order would cost two workflow tasks.
	if len(in.Nodes) == len(d.Nodes) && r.front.OpenAt(d.Depth) == len(d.Nodes) &&
		workflow.GetVersion(ctx, changeSealedStart, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		in.Sealed, d.Sealed = true, true
	}
	child := workflow.ExecuteChildWorkflow(withLevelOptions(ctx, in), contract.WorkflowLevel, in)
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Error("start drive", "drive", d.Number, "error", err)
			r.driveLost(ctx, d, "could not be started: "+oneLine(err.Error()))
			return
		}
		d.box.flush(ctx)
	})
}

// connect gives a drive its outbox.
func (r *remediation) connect(d *drive) {
	d.box = &outbox[contract.DriveOrder]{
		target: contract.LevelID(r.in.Run, d.Number), signal: contract.SignalOrder, merge: mergeOrders,
		lost: func(ctx workflow.Context, _ contract.DriveOrder, _ error) { r.driveLost(ctx, d, "has closed") },
	}
}

func (r *remediation) order(ctx workflow.Context, d *drive, o contract.DriveOrder) {
	d.Orders++
	o.Seq = d.Orders
	d.box.send(ctx, o)
}

func mergeOrders(older, newer contract.DriveOrder) (contract.DriveOrder, bool) {
	older.Seq = newer.Seq
	older.Nodes = append(slices.Clone(older.Nodes), newer.Nodes...)
	older.Seal = older.Seal || newer.Seal
	if newer.Stop != "" {
		older.Stop = newer.Stop
	}
	if newer.Pools != nil {
		older.Pools = newer.Pools
	}
	if newer.Lease != nil {
		older.Lease = newer.Lease
	}
	older.Claims = append(slices.Clone(older.Claims), newer.Claims...)
	return older, fits(older)
}

// driveLost takes back the nodes of a drive that is gone without a word about
// them. A drained one never launched what was sent to it afterwards.
func (r *remediation) driveLost(ctx workflow.Context, d *drive, why string) {
	if !slices.Contains(r.drives, d) {
		return
	}
	workflow.GetLogger(ctx).Warn("drive lost", "drive", d.Number, "why", why)
	r.event(ctx, "drive L%02d %s; %d nodes come back", d.Number, why, len(d.Nodes))
	skip := lostDriveAttempts
	if d.Ended {
		skip = 0
	}
	for _, a := range d.Nodes {
		r.front.Strand(contract.Stranding{
			Node: a.Node, Opening: a.Opening, Cause: contract.StrandHeld, Reason: "drive " + why,
			NextAttempt: a.NextAttempt + skip, Kept: keptIf(d.Ended, a.Kept), Charged: a.Charged, Refused: a.Refused,
			FirstPool: a.FirstPool, Limited: a.Limited, Tail: a.Tail, Salvage: a.Salvage,
		}, workflow.Now(ctx))
	}
	r.dropDrive(d)
	r.front.Rearm(contract.StrandHeld)
	r.dropClaims(ctx, d)
	r.dirty = true
}

// keptIf is the tree of an admission that was never launched.
func keptIf(untouched bool, kept *contract.Kept) *contract.Kept {
	if untouched {
		return kept
	}
	return nil
}

func (r *remediation) dropDrive(d *drive) {
	r.drives = slices.DeleteFunc(r.drives, func(o *drive) bool { return o == d })
	r.budget.Close(d.Number)
}

// takeReport applies what a drive reported. Reports come in order; one that was taken already changes nothing.
func (r *remediation) takeReport(ctx workflow.Context, payload *commonpb.Payload) {
	report, err := decode[contract.DriveReport](payload)
	if err != nil {
		workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.SignalReport, "error", err)
		return
	}
	i := slices.IndexFunc(r.drives, func(d *drive) bool { return d.Number == report.Drive })
	if i < 0 || report.Seq <= r.drives[i].Reports {
		return
	}
	d := r.drives[i]
	d.Reports, d.Heard = report.Seq, workflow.Now(ctx)
	for _, s := range report.Settled {
		r.settle(ctx, d, s)
	}
	for _, s := range report.Stranded {
		r.strand(ctx, d, s)
	}
	for _, f := range report.Friction {
		r.friction.Add(f)
	}
	r.pools.update(report.Pools)
	r.tryReopened(ctx)
	r.takeClaims(ctx, d, report.Claims)
	switch {
	case !report.Drained:
		r.topUp(ctx, d)
	case report.Orders < d.Orders: // an order is under way that it has not seen
		d.Ended = true
	case len(d.Nodes) > 0:
		r.driveLost(ctx, d, "ended without a word about some")
	default:
		r.dropDrive(d)
	}
	r.dirty = true
}

func (r *remediation) settle(ctx workflow.Context, d *drive, s contract.Settlement) {
	d.remove(s.Node, s.Opening)
	r.account(ctx, d, s.Attempts)
	r.reopened.awaited = false
	changes := r.front.Settle(s, workflow.Now(ctx))
	if changes.Ignored != "" {
		workflow.GetLogger(ctx).Warn("ignore settlement", "node", s.Node, "why", changes.Ignored)
		return
	}
	countNode(ctx, s.State, "")
	text := string(s.State)
	if n := len(s.Attempts); n > 0 {
		last := s.Attempts[n-1]
		text += " on " + last.Pool
		if last.Commit != "" {
			text += " as " + shortCommit(last.Commit)
			r.opened.Truth = last.Commit
		}
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	r.event(ctx, "%s %s", s.Node, text)
}

func (r *remediation) strand(ctx workflow.Context, d *drive, s contract.Stranding) {
	d.remove(s.Node, s.Opening)
	r.account(ctx, d, s.Attempts)
	r.reopened.strand(s)
	if s.Cause == contract.StrandHeld && d.Stop == "" {
		d.Sealed = true // it took as many attempts as a drive may
	}
	if changes := r.front.Strand(s, workflow.Now(ctx)); changes.Ignored != "" {
		workflow.GetLogger(ctx).Warn("ignore stranding", "node", s.Node, "why", changes.Ignored)
		return
	}
	countNode(ctx, contract.NodeStranded, s.Cause)
	r.unserved(s)
	if s.Cause == contract.StrandBudgetExhausted && r.budget.Fits(r.reservation(s.Node, "")) {
		r.front.Rearm(contract.StrandBudgetExhausted) // it was only beyond what the drive had been leased
	}
	until := ""
	if s.NotBefore != nil {
		until = " until " + s.NotBefore.UTC().Format(time.RFC3339)
	}
	r.event(ctx, "%s waits (%s)%s: %s", s.Node, s.Cause, until, s.Reason)
}

func (d *drive) remove(node string, opening int) {
	d.Nodes = slices.DeleteFunc(d.Nodes, func(a contract.Admission) bool { return a.Node == node && a.Opening == opening })
}

// account adds up usage and friction of attempts.
func (r *remediation) account(ctx workflow.Context, d *drive, attempts []contract.AttemptResult) {
	for _, a := range attempts {
		r.charge(d, a)
		r.unprove(ctx, a.Unproven)
		if a.Recovery != "" {
			r.recovery(ctx, a.Recovery, a.Reason)
		}
		for _, f := range a.Friction {
			r.friction.Add(f)
		}
	}
}

// checkDrives asks the server about drives that have been silent for long.
func (r *remediation) checkDrives(ctx workflow.Context) {
	now := workflow.Now(ctx)
	for _, d := range r.drives {
		if now.Before(d.Heard.Add(driveCheckEvery)) {
			continue
		}
		d.Heard = now
		workflow.Go(ctx, func(ctx workflow.Context) {
			id := contract.LevelID(r.in.Run, d.Number)
			var closed []string
			actx := withLightOptions(ctx, "look whether "+id+" still runs")
			if err := workflow.ExecuteActivity(actx, service.ClosedWorkflows, []string{id}).Get(ctx, &closed); err != nil {
				workflow.GetLogger(ctx).Warn("check drive", "drive", d.Number, "error", err)
				return
			}
			// A closed drive's last report arrived before this answer did, so it is truly lost.
			if len(closed) > 0 && !r.inbox.pending() {
				r.driveLost(ctx, d, "vanished")
			}
		})
	}
}
