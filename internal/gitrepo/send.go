package gitrepo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// errRefused: the hub kept its refs because one of them did not have its expected value, or because
// of a lock. The caller looks at the refs to learn which.
var errRefused = errors.New("the hub refused the update")

// transfer says which objects have to reach the hub: what tips reach and known does not.
type transfer struct {
	tips  []string
	known []string
}

// update changes refs of the hub in one transaction, after the objects that they need were sent.
// follow is a second, best-effort transaction; followed says whether it happened.
func (m *Mirror) update(ctx context.Context, objects transfer, refs []refUpdate, follow []refUpdate) (followed bool, err error) {
	byURL := m.hub.URL != "" // its objects travel with the refs
	if !byURL {
		if err := m.sendObjects(ctx, objects); err != nil {
			return false, err
		}
	}
	if len(objects.tips) > 0 {
		m.store.hook(PointObjectsSent)
	}
	if byURL {
		return m.push(ctx, refs, follow)
	}
	transactions := [][]refUpdate{refs}
	if len(follow) > 0 {
		transactions = append(transactions, follow)
	}
	done, err := m.store.updateRefs(ctx, m.hub.GitDir, m.format, transactions...)
	if err != nil {
		if exitCode(err) > 0 {
			err = fmt.Errorf("%w: %w", errRefused, err)
		}
		return false, err
	}
	return len(follow) > 0 && done == 2, nil
}

// unpackLimit is git's transfer.unpackLimit: below it objects become loose, above a pack.
const unpackLimit = 100

// packHead is the length of a pack's header: "PACK", version, number of objects.
const packHead = 12

// sendObjects puts a thin pack of the objects into the hub; fetch costs several times more on large
// repositories. It never fails half: objects that nothing names do no harm.
func (m *Mirror) sendObjects(ctx context.Context, objects transfer) error {
	if len(objects.tips) == 0 {
		return nil
	}
	err := m.store.git.pipe(ctx, m.packCommand(objects), func(head []byte) (command, bool) {
		count := binary.BigEndian.Uint32(head[8:])
		return unpackCommand(m.hub.GitDir, int(count)), count > 0
	}, packHead)
	if err != nil {
		return fmt.Errorf("send objects to %s: %w", m.hub.Canonical, err)
	}
	return nil
}

func (m *Mirror) packCommand(objects transfer) command {
	var revs strings.Builder
	for _, tip := range objects.tips {
		fmt.Fprintf(&revs, "%s\n", tip)
	}
	for _, oid := range objects.known {
		fmt.Fprintf(&revs, "^%s\n", oid)
	}
	return command{
		args:   []string{"pack-objects", "--thin", "--revs", "--stdout", "--quiet", "--delta-base-offset", "--sparse"},
		dir:    m.dir,
		gitDir: m.dir,
		stdin:  strings.NewReader(revs.String()),
	}
}

func unpackCommand(gitDir string, count int) command {
	args := []string{"unpack-objects", "-q"}
	if count >= unpackLimit {
		args = []string{"index-pack", "--stdin", "--fix-thin"}
	}
	return command{args: args, dir: gitDir, gitDir: gitDir}
}

// push updates refs of a hub by URL: atomic, each ref with its expected old value. The branch that
// follows is pushed on its own, since its refusal must not undo the rest.
func (m *Mirror) push(ctx context.Context, refs, follow []refUpdate) (followed bool, err error) {
	if err := m.pushOnce(ctx, refs); err != nil {
		return false, err
	}
	if len(follow) == 0 {
		return false, nil
	}
	return m.pushOnce(ctx, follow) == nil, nil
}

func (m *Mirror) pushOnce(ctx context.Context, refs []refUpdate) error {
	res, err := m.run(ctx, m.pushCommand(refs))
	if err == nil {
		return nil
	}
	if exitCode(err) == 1 && bytes.Contains(res.stdout, []byte("\n!\t")) {
		err = fmt.Errorf("%w: %w", errRefused, err)
	}
	return fmt.Errorf("push to %s: %w", m.hub.Canonical, err)
}

func (m *Mirror) pushCommand(refs []refUpdate) command {
	args := []string{"push", "--atomic", "--porcelain", "--quiet", "--no-verify", "--no-follow-tags"}
	var specs []string
	for _, u := range refs {
		// An empty expectation means that the ref must not exist.
		args = append(args, "--force-with-lease="+u.name+":"+u.old)
		specs = append(specs, u.new+":"+u.name)
	}
	args = append(args, "--end-of-options", m.hub.URL)
	return command{args: append(args, specs...), network: true}
}
