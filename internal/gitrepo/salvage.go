package gitrepo

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"
)

// A Salvage is what was kept of a tree; both fields are empty when there was nothing to keep.
type Salvage struct {
	Ref    string
	Commit string
}

// Salvage keeps what is in the tree and not in its base: tracked and untracked files, ignored ones
// inside the scope, the worker's own commits. The tree does not change. The ref lives in the mirror
// until PushSalvage, or goes to the hub at once (Settings.ShareSalvage). Salvaging again replaces it.
func (w *Worktree) Salvage(ctx context.Context, scope Scope, when time.Time) (Salvage, error) {
	s, err := w.salvage(ctx, scope, when)
	if err == nil && s.Ref != "" && w.mirror.store.settings.ShareSalvage {
		err = w.mirror.pushSalvage(ctx, w.slot.run, map[string]string{s.Ref: s.Commit})
	}
	if err != nil {
		return Salvage{}, fmt.Errorf("salvage %s: %w", w.rec.Tree, err)
	}
	return s, nil
}

func (w *Worktree) salvage(ctx context.Context, scope Scope, when time.Time) (Salvage, error) {
	if w.slot.throwaway != "" || !w.rec.Ready {
		return Salvage{}, nil // no worker was in it
	}
	if w.rec.Handed != nil {
		if kept, err := w.keptSalvage(); err != nil || kept.Ref != "" {
			return kept, err
		}
	}
	tree, parents, err := w.salvageTree(ctx, scope)
	if err != nil || tree == "" {
		return Salvage{}, err
	}
	message := fmt.Sprintf("Salvage what %s attempt %d left\n\n%s: %s\n%s: %s\n%s: %d\n",
		w.slot.node, w.slot.number, trailerRun, w.slot.run, trailerNode, w.slot.node, trailerAttempt, w.slot.number)
	commit, err := w.mirror.writeCommit(ctx, tree, parents, message, when)
	if err != nil {
		return Salvage{}, err
	}
	w.mirror.store.hook(PointSalvaging)
	ref := SalvageRef(w.slot.run, w.slot.node, w.slot.number)
	if err := w.mirror.setMirrorRef(ctx, ref, commit); err != nil {
		return Salvage{}, err
	}
	return Salvage{Ref: ref, Commit: commit}, nil
}

// salvageTree writes the tree to keep and names its parents; empty when there is nothing to keep.
func (w *Worktree) salvageTree(ctx context.Context, scope Scope) (tree string, parents []string, err error) {
	parents = []string{w.rec.Base}
	if w.rec.Handed != nil {
		if tree, err = w.salvageHanded(ctx, scope); err != nil {
			return "", nil, err
		}
		base, err := w.run(ctx, w.command("rev-parse", "--verify", "--end-of-options", w.rec.Base+"^{tree}"))
		if err != nil || base.text() == tree {
			return "", nil, err
		}
		return tree, parents, nil
	}
	work, err := w.collect(ctx, salvageScope(scope), true)
	if err != nil || work.Empty() && work.Head == work.Base {
		return "", nil, err
	}
	if work.Head != w.rec.Base {
		parents = append(parents, work.Head)
	}
	tree, err = w.writeTree(ctx, work.Changes)
	return tree, parents, err
}

// salvageScope takes everything that is not ignored, and of the ignored files those inside the write
// scope; a scope without bounds does not reach into what tools generate.
func salvageScope(s Scope) Scope {
	wide := Scope{Literal: s.Literal, Ignored: func(string) bool { return true }}
	if s.Has != nil && s.Ignored != nil {
		wide.Literal = func(p string) bool { return s.has(p) || s.literal(p) }
		wide.Ignored = nil
	}
	return wide
}

// FindSalvage returns the commit of a salvage ref: this host's, else the hub's. ErrBaseUnknown says that
// neither has it: it lies on the host that made it until a run that is not green takes it to the hub.
func (m *Mirror) FindSalvage(ctx context.Context, ref string) (string, error) {
	if oid, err := readRef(m.dir, ref); err != nil || oid != "" {
		return oid, err
	}
	return m.ResolveBase(ctx, ref)
}

// setMirrorRef points a ref of the mirror to a commit, whatever it held.
func (m *Mirror) setMirrorRef(ctx context.Context, ref, oid string) error {
	now, err := readRef(m.dir, ref)
	if err != nil || now == oid {
		return err
	}
	_, err = m.writeMeta(ctx, command{args: []string{"update-ref", ref, oid}})
	return err
}

// PushSalvage copies the salvage refs of a run from the mirror to the hub, and returns the names of all
// that the hub has then: other hosts may have pushed theirs.
func (m *Mirror) PushSalvage(ctx context.Context, run string) ([]string, error) {
	if err := checkName("run", run); err != nil {
		return nil, err
	}
	prefix := salvagePrefix + run + "/"
	ours, err := listRefs(m.dir, func(name string) bool { return strings.HasPrefix(name, prefix) })
	if err != nil {
		return nil, err
	}
	if err := m.pushSalvage(ctx, run, ours); err != nil {
		return nil, fmt.Errorf("push salvage of %s: %w", run, err)
	}
	return m.HubSalvage(ctx, run)
}

// HubSalvage returns the names of the run's salvage refs that the hub has.
func (m *Mirror) HubSalvage(ctx context.Context, run string) ([]string, error) {
	theirs, err := m.hubRefsMatching(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("list salvage of %s: %w", run, err)
	}
	maps.DeleteFunc(theirs, func(name, _ string) bool { return !strings.HasPrefix(name, salvagePrefix) })
	return sortedKeys(theirs), nil
}

// pushSalvage makes refs of the mirror refs of the hub.
func (m *Mirror) pushSalvage(ctx context.Context, run string, ours map[string]string) error {
	names := sortedKeys(ours)
	if len(names) == 0 {
		return nil
	}
	theirs, err := m.hubRefs(ctx, names...)
	if err != nil {
		return err
	}
	var objects transfer
	var updates []refUpdate
	for _, name := range names {
		if theirs[name] != ours[name] {
			updates = append(updates, refUpdate{name, theirs[name], ours[name]})
			objects.tips = append(objects.tips, ours[name])
		}
	}
	if len(updates) == 0 {
		return nil
	}
	if m.hub.URL == "" {
		objects.known = m.hubTips()
		if truth, err := readRef(m.hub.GitDir, TruthRef(run)); err == nil && truth != "" {
			if present, err := m.has(ctx, truth); err == nil && present {
				objects.known = append(objects.known, truth)
			}
		}
	}
	_, err = m.update(ctx, objects, updates, nil)
	return err
}
