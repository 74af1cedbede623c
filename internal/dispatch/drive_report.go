package dispatch

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"mendflow/internal/contract"
)

// Bounds of what a drive tells.
const (
	reportBytes  = 40 << 10 // bytes of one report, below the payload limit with room to spare
	noteBytes    = 2000
	reasonBytes  = 500
	fullTails    = 2  // attempts of a node that keep their tail and evidence
	toldAttempts = 20 // attempts of a node that are told at all
)

// strand returns a node to the run with all that a later drive must know.
func (d *Drive) strand(n *driveNode, s contract.Stranding) {
	if n.claim != nil {
		d.unbind(n, "the node left the drive: "+s.Reason)
	}
	d.leave(n)
	if d.stop == contract.StopCancel {
		n.Kept = nil
	}
	s.Node, s.Opening, s.NextAttempt, s.Charged = n.Node, n.Opening, n.NextAttempt, n.Charged
	s.Refused, s.FirstPool, s.Limited = n.Refused, n.FirstPool, n.limited()
	s.Kept, s.Tail, s.Salvage, s.Attempts = n.Kept, n.Tail, n.Salvage, n.told()
	s.Reason = clip(s.Reason, reasonBytes)
	d.report.Stranded = append(d.report.Stranded, s)
	d.returned = true
}

// settle ends a node.
func (d *Drive) settle(n *driveNode, state contract.NodeState, reason string) {
	d.leave(n)
	d.report.Settled = append(d.report.Settled, contract.Settlement{
		Node: n.Node, Opening: n.Opening, State: state, Reason: clip(reason, reasonBytes),
		NextAttempt: n.NextAttempt, Charged: n.Charged, Attempts: n.told(),
	})
}

// limited are the node's limits in a row per pool.
func (n *driveNode) limited() []contract.Streak {
	var all []contract.Streak
	for _, s := range n.streaks {
		if s.Count > 0 {
			all = append(all, s.Streak)
		}
	}
	return all
}

// told is the node's attempts in this drive as they are reported: bounded, and
// with the long texts of the last ones only.
func (n *driveNode) told() []contract.AttemptResult {
	told := slices.Clone(n.attempts[max(0, len(n.attempts)-toldAttempts):])
	for i := range max(0, len(told)-fullTails) {
		a := &told[i]
		a.Tail = ""
		if a.Log != nil {
			log := *a.Log
			log.Tail = ""
			a.Log = &log
		}
		if a.Limit != nil {
			limit := *a.Limit
			limit.Evidence = evidence(&limit)
			a.Limit = &limit
		}
	}
	return told
}

// messages gives out what the brokers must be told.
func (d *Drive) messages() []Message {
	var all []Message
	for _, m := range d.accounts {
		if m.empty() {
			continue
		}
		m.sent++
		m.next.Holder, m.next.Run, m.next.Seq = contract.LevelID(d.in.Run, d.in.Drive), d.in.Run, m.sent
		all = append(all, Message{Account: m.account, Tickets: m.next})
		m.next = contract.Tickets{}
	}
	return all
}

// flush gives out what the run must be told, in reports that fit a payload.
func (d *Drive) flush(drained bool) []contract.DriveReport {
	d.report.Pools = d.changedPools()
	r := d.report
	d.report = contract.DriveReport{}
	if len(r.Settled)+len(r.Stranded)+len(r.Friction)+len(r.Pools)+len(r.Claims) == 0 && !drained {
		return nil
	}
	reports := split(r)
	for i := range reports {
		d.reports++
		reports[i].Drive, reports[i].Seq = d.in.Drive, d.reports
	}
	reports[len(reports)-1].Drained = drained
	return reports
}

// split cuts a report where it would become too large.
func split(r contract.DriveReport) []contract.DriveReport {
	reports := []contract.DriveReport{{Pools: r.Pools, Claims: r.Claims}}
	size := 0
	room := func(part any) *contract.DriveReport {
		text, err := json.Marshal(part)
		if err != nil {
			panic(err) // plain values always marshal
		}
		if size > 0 && size+len(text) > reportBytes {
			reports, size = append(reports, contract.DriveReport{}), 0
		}
		size += len(text)
		return &reports[len(reports)-1]
	}
	for _, s := range r.Settled {
		to := room(s)
		to.Settled = append(to.Settled, s)
	}
	for _, s := range r.Stranded {
		to := room(s)
		to.Stranded = append(to.Stranded, s)
	}
	for _, f := range r.Friction {
		to := room(f)
		to.Friction = append(to.Friction, f)
	}
	return reports
}

// changedPools are those whose state changed since they were last told.
func (d *Drive) changedPools() []contract.PoolState {
	var changed []contract.PoolState
	for _, p := range d.pools {
		now := d.poolState(p)
		same := now.State == p.told.State && now.Reason == p.told.Reason && now.Used == p.told.Used && equalInstants(now.Until, p.told.Until)
		if same {
			continue
		}
		p.told = now
		changed = append(changed, now)
	}
	return changed
}

// clip cuts a text to at most n bytes of valid UTF-8.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

func itoa(n int) string { return strconv.Itoa(n) }
