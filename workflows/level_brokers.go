package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// Patience of a drive with a broker that says nothing while nodes wait: a broker
// that was terminated tells nobody, and one that another drive started anew does
// not know who waits.
const (
	brokerPatience     = 2 * time.Minute
	brokerPatienceMost = time.Hour // every question is some events of a history that never continues as new
)

// brokerLink is a drive's connection to the broker of an account.
type brokerLink struct {
	*outbox[contract.Tickets]
	account  string
	quiet    time.Time // since when nothing was heard and nothing asked
	patience time.Duration
}

// link finds or makes the connection to an account's broker.
func (l *level) link(ctx workflow.Context, account string) *brokerLink {
	for _, link := range l.brokers {
		if link.account == account {
			return link
		}
	}
	link := &brokerLink{account: account, quiet: workflow.Now(ctx), patience: brokerPatience}
	link.outbox = &outbox[contract.Tickets]{
		target: contract.BrokerID(account), signal: contract.SignalTickets, merge: mergeTickets,
		lost: func(ctx workflow.Context, _ contract.Tickets, _ error) { l.reviveBroker(ctx, link) },
	}
	l.brokers = append(l.brokers, link)
	return link
}

// heard notes that a broker answered. One that had forgotten the drive is asked again for everything.
func (l *level) heard(ctx workflow.Context, grants contract.Grants) {
	link := l.link(ctx, grants.Account)
	link.quiet, link.patience = workflow.Now(ctx), brokerPatience
	if grants.Forgot {
		workflow.GetLogger(ctx).Warn("the broker is a new one", "account", grants.Account)
		l.drive.Forgotten(grants.Account)
	}
}

// question asks a broker whether it knows the drive.
func (l *level) question() contract.Tickets {
	return contract.Tickets{Holder: contract.LevelID(l.in.Run, l.in.Drive), Run: l.in.Run}
}

// remind asks the brokers that have said nothing for long while nodes wait, and
// returns when the next is to be asked; zero when nothing waits.
func (l *level) remind(ctx workflow.Context, now time.Time) time.Time {
	var next time.Time
	if len(l.drive.Status().Waiting) == 0 {
		return next
	}
	for _, link := range l.brokers {
		if !now.Before(link.quiet.Add(link.patience)) {
			link.quiet, link.patience = now, min(2*link.patience, brokerPatienceMost)
			link.send(ctx, l.question())
		}
		if due := link.quiet.Add(link.patience); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next
}

// reviveBroker starts a broker that is not there and asks it whether it knows the
// drive. It does not, so that its answer has everything asked for again; what was
// still to be said to the old one is void.
func (l *level) reviveBroker(ctx workflow.Context, link *brokerLink) {
	link.queue = nil
	if l.drive.Drained() {
		return // it only wanted to give slots back
	}
	actx := withLightOptions(ctx, "start the broker of "+link.account)
	if err := workflow.ExecuteActivity(actx, service.EnsureBrokers, []string{link.account}).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("start broker", "account", link.account, "error", err)
	}
	link.queue = append([]contract.Tickets{l.question()}, link.queue...)
}

// mergeTickets joins messages unless the newer takes something back: it might be
// what the older asks for.
func mergeTickets(older, newer contract.Tickets) (contract.Tickets, bool) {
	if len(newer.Withdraw) > 0 || newer.Seq == 0 {
		return older, false
	}
	older.Seq = newer.Seq
	older.Reserve = append(slices.Clone(older.Reserve), newer.Reserve...)
	older.Settle = append(slices.Clone(older.Settle), newer.Settle...)
	return older, fits(older)
}
