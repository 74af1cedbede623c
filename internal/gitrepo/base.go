package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// ResolveBase turns a revision of the hub into a commit and brings it into the mirror. The empty
// revision is the hub's default branch, or its commit where HEAD is detached.
func (m *Mirror) ResolveBase(ctx context.Context, rev string) (string, error) {
	if strings.ContainsAny(rev, "\x00\n") || strings.HasPrefix(rev, "-") {
		return "", fmt.Errorf("resolve base %q: %w", rev, ErrBaseUnknown)
	}
	resolve := m.resolveByURL
	if m.hub.URL == "" {
		resolve = m.resolveByPath
	}
	commit, err := resolve(ctx, rev)
	if err != nil {
		return "", fmt.Errorf("resolve base %q of %s: %w", rev, m.hub.Canonical, err)
	}
	return commit, nil
}

func (m *Mirror) resolveByPath(ctx context.Context, rev string) (string, error) {
	if rev == "" {
		rev = "HEAD"
	}
	res, err := m.store.git.run(ctx, command{
		args: []string{"rev-parse", "--quiet", "--verify", "--end-of-options", rev + "^{commit}"},
		dir:  m.hub.GitDir, gitDir: m.hub.TreeDir, ok: []int{1, 128},
	})
	if err != nil {
		return "", err
	}
	if res.code != 0 {
		return "", m.unknownBase(rev)
	}
	oid := lastLine(res.text())
	return oid, m.ensure(ctx, oid, rev)
}

// unknownBase tells a hub without any commit from one that lacks this revision.
func (m *Mirror) unknownBase(rev string) error {
	if rev == "HEAD" && m.hub.GitDir != "" {
		if refs, err := listRefs(m.hub.GitDir, func(string) bool { return true }); err == nil && len(refs) == 0 {
			return ErrEmptyRepository
		}
	}
	return ErrBaseUnknown
}

// lastLine drops what rev-parse echoes for --end-of-options.
func lastLine(text string) string {
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// resolveByURL brings the hub's branches and tags under refs/mendflow/hub and resolves there.
func (m *Mirror) resolveByURL(ctx context.Context, rev string) (string, error) {
	if rev == "" {
		res, err := m.run(ctx, command{args: []string{"ls-remote", "--quiet", "--end-of-options", m.hub.URL, "HEAD"}, network: true})
		if err != nil {
			return "", err
		}
		oid, _, ok := strings.Cut(res.text(), "\t")
		if !ok {
			return "", ErrEmptyRepository
		}
		return oid, m.ensure(ctx, oid, "HEAD")
	}
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return "", err
	}
	_, err = m.run(ctx, m.fetchCommand("+refs/heads/*:"+hubPrefix+"heads/*", "+refs/tags/*:"+hubPrefix+"tags/*"))
	unlock()
	if err != nil {
		return "", err
	}
	candidates := []string{hubPrefix + "heads/" + rev, hubPrefix + "tags/" + rev}
	if rest, ok := strings.CutPrefix(rev, "refs/"); ok {
		candidates = []string{hubPrefix + rest}
	} else if hexPrefix(rev) {
		candidates = append(candidates, rev)
	}
	for _, c := range candidates {
		res, err := m.run(ctx, command{args: []string{"rev-parse", "--quiet", "--verify", "--end-of-options", c + "^{commit}"}, ok: []int{1, 128}})
		if err != nil {
			return "", err
		}
		if res.code == 0 {
			oid := lastLine(res.text())
			m.markKnown(oid)
			return oid, nil
		}
	}
	if isOID(rev) {
		if err := m.ensure(ctx, rev, rev); err == nil {
			return rev, nil
		} else if interrupted(err) {
			return "", err
		}
	}
	return "", ErrBaseUnknown
}

// hexPrefix says that the revision starts with a (perhaps shortened) object id.
func hexPrefix(rev string) bool {
	head := strings.TrimLeft(rev, "0123456789abcdef")
	n := len(rev) - len(head)
	return n >= 4 && (head == "" || head[0] == '~' || head[0] == '^' || head[0] == '@')
}

// hubRefs reads refs of the hub; absent ones are missing in the map.
func (m *Mirror) hubRefs(ctx context.Context, names ...string) (map[string]string, error) {
	refs := make(map[string]string, len(names))
	if m.hub.URL == "" {
		for _, name := range names {
			oid, err := readRef(m.hub.GitDir, name)
			if err != nil {
				return nil, fmt.Errorf("read refs of %s: %w", m.hub.Canonical, err)
			}
			if oid != "" {
				refs[name] = oid
			}
		}
		return refs, nil
	}
	args := append([]string{"ls-remote", "--quiet", "--refs", "--end-of-options", m.hub.URL}, names...)
	res, err := m.run(ctx, command{args: args, network: true})
	if err != nil {
		if !interrupted(err) && !errors.Is(err, ErrNotRepository) {
			err = kindOr(err, ErrUnreachable)
		}
		return nil, fmt.Errorf("read refs of %s: %w", m.hub.Canonical, err)
	}
	parseRemote(res.stdout, refs)
	return refs, nil
}

// parseRemote reads the output of ls-remote: "<oid>\t<name>\n" per ref.
func parseRemote(out []byte, into map[string]string) {
	for line := range bytes.Lines(out) {
		oid, name, ok := strings.Cut(strings.TrimRight(string(line), "\n"), "\t")
		if ok && isOID(oid) {
			into[name] = oid
		}
	}
}
