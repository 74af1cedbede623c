package activities

import (
	"context"
	"fmt"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
)

// places are what a worker has no business with, as they were before it ran.
type places struct {
	hub    gitrepo.Fingerprint // zero where the sandbox keeps the worker out
	mirror gitrepo.Fingerprint
}

// lookAround fingerprints the user's checkout, where no sandbox protects it,
// and the mirror. What cannot be read, perhaps since the user is at work there,
// is nobody's fault: it is left out.
func (l *launch) lookAround(ctx context.Context) places {
	var p places
	var err error
	if l.bare {
		if p.hub, err = l.Host.Git.HubFingerprint(ctx, l.opened.mirror.Hub()); err != nil {
			l.Host.Log.Warn("look at the user's checkout", "run", l.in.Run, "error", err)
		}
	}
	if p.mirror, err = l.opened.mirror.MirrorFingerprint(); err != nil {
		l.Host.Log.Warn("look at the mirror", "run", l.in.Run, "error", err)
	}
	return p
}

// compare records what differs after the worker. The user, or another attempt,
// may have done it: it is said, and decides nothing.
func (l *launch) compare(ctx context.Context, before places) {
	after := l.lookAround(context.WithoutCancel(ctx))
	var where []string
	if parts := differs(before.hub, after.hub); len(parts) > 0 {
		where = append(where, "the user's checkout ("+strings.Join(parts, ", ")+")")
	}
	if parts := differs(before.mirror, after.mirror); len(parts) > 0 {
		where = append(where, "the mirror ("+strings.Join(parts, ", ")+")")
	}
	if len(where) == 0 {
		return
	}
	l.rec.Escaped = strings.Join(where, " and ")
	l.end.Friction = append(l.end.Friction, contract.Friction{
		Type: contract.FrictionEscaped, Discriminator: l.in.Node, Severity: "warning",
		Note: fmt.Sprintf("while attempt %d ran, something changed outside of its worktree: %s; it was the worker or somebody at the repository", l.in.Attempt, l.rec.Escaped),
	})
}

// differs compares two fingerprints that could both be taken.
func differs(before, after gitrepo.Fingerprint) []string {
	if before == (gitrepo.Fingerprint{}) || after == (gitrepo.Fingerprint{}) {
		return nil
	}
	return before.Differs(after)
}

// whereabouts adds to the reason of an attempt that left nothing in its tree
// that something changed elsewhere: that is not the same as nothing done.
func (l *lander) whereabouts(reason string) string {
	if l.rec.Escaped == "" || !l.work.Empty() || reason == "" {
		return reason
	}
	return reason + "; but something changed elsewhere meanwhile: " + l.rec.Escaped
}
