package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Commit is a commit of ours with its tree.
type Commit struct {
	OID  string `json:"oid"`
	Tree string `json:"tree"`
}

// A CommitRequest is what Commit makes a commit of. The same request gives the same commit.
type CommitRequest struct {
	Attempt Attempt
	Work    Work
	Message string    // subject and body; trailers are added
	When    time.Time // of author and committer
}

// ErrNothingToCommit: the work is empty.
var ErrNothingToCommit = errors.New("nothing to commit")

// Commit makes one commit of the work on the tree's base, through an index of its own: neither the
// tree nor HEAD changes.
func (w *Worktree) Commit(ctx context.Context, req CommitRequest) (Commit, error) {
	if err := req.Attempt.check(); err != nil {
		return Commit{}, err
	}
	if req.Work.Empty() {
		return Commit{}, fmt.Errorf("commit work of %s: %w", req.Attempt, ErrNothingToCommit)
	}
	if w.rec.Handed != nil && w.rec.Handed.Commit.Tree != "" {
		return w.rec.Handed.Commit, nil
	}
	tree, err := w.writeTree(ctx, req.Work.Changes)
	if err != nil {
		return Commit{}, fmt.Errorf("commit work of %s: %w", req.Attempt, err)
	}
	message := fullMessage(req.Message, req.Attempt.landing().trailers(req.Attempt.Run))
	oid, err := w.mirror.writeCommit(ctx, tree, []string{w.rec.Base}, message, req.When)
	if err != nil {
		return Commit{}, fmt.Errorf("commit work of %s: %w", req.Attempt, err)
	}
	w.mirror.markKnown(oid)
	w.mirror.store.hook(PointCommitted)
	return Commit{OID: oid, Tree: tree}, nil
}

func (a Attempt) landing() Landing {
	return Landing{Node: a.Node, Opening: a.Opening, Attempt: a.Number, Findings: a.Findings}
}

// writeTree writes the tree of the base with the changes applied.
func (w *Worktree) writeTree(ctx context.Context, changes []Change) (string, error) {
	index, done, err := w.temporaryIndex()
	if err != nil {
		return "", err
	}
	defer done()
	return w.stage(ctx, index, changes)
}

// stage puts the changes into an index and writes its tree.
func (w *Worktree) stage(ctx context.Context, index string, changes []Change) (string, error) {
	for _, c := range stageCommands(changes) {
		cmd := w.command(c.args...)
		cmd.index, cmd.stdin = index, c.stdin
		if _, err := w.run(ctx, cmd); err != nil {
			return "", err
		}
	}
	cmd := w.command("write-tree")
	cmd.index = index
	res, err := w.run(ctx, cmd)
	if err != nil {
		return "", err
	}
	return res.text(), nil
}

// stageCommands puts the changes into an index: listed paths only, no folder, no gitlink.
func stageCommands(changes []Change) []command {
	var files, entries strings.Builder
	for _, c := range changes {
		switch {
		case c.blob != "":
			fmt.Fprintf(&entries, "%s %s\t%s\x00", c.newMode, c.blob, c.Path)
		case c.Kind == Deleted:
			// By name, not by what lies at the path now: a pipe or a folder may have taken its place.
			fmt.Fprintf(&entries, "0 %s\t%s\x00", strings.Repeat("0", len(c.oldBlob)), c.Path)
		default:
			files.WriteString(c.Path + "\x00")
		}
	}
	var commands []command
	if entries.Len() > 0 {
		commands = append(commands, command{args: []string{"update-index", "-z", "--index-info"}, stdin: strings.NewReader(entries.String())})
	}
	if files.Len() > 0 {
		commands = append(commands, command{args: []string{"update-index", "-z", "--add", "--remove", "--replace", "--stdin"},
			stdin: strings.NewReader(files.String())})
	}
	return commands
}

// temporaryIndex is a copy of our index that a command may change.
func (w *Worktree) temporaryIndex() (path string, done func(), err error) {
	dir, err := os.MkdirTemp(w.rec.Admin, "mendflow-tmp-")
	if err != nil {
		return "", nil, fmt.Errorf("make index: %w", err)
	}
	done = func() { _ = os.RemoveAll(dir) } // it goes with the metadata folder at the latest
	path = filepath.Join(dir, "index")
	// git replaces an index by a rename, so that a hard link is as good as a copy.
	if err := os.Link(w.index(), path); err != nil {
		if err := copyIndex(w.index(), path); err != nil {
			done()
			return "", nil, err
		}
	}
	return path, done, nil
}

// writeCommit writes a commit into the mirror: directly, or by commit-tree when it has to be signed.
func (m *Mirror) writeCommit(ctx context.Context, tree string, parents []string, message string, when time.Time) (string, error) {
	sig := m.options.signature(when.UTC().Truncate(time.Second))
	if !m.options.Sign {
		return writeObject(m.dir, m.format, "commit", commitBody(tree, parents, sig, message))
	}
	date := fmt.Sprintf("@%d +0000", sig.When.Unix())
	args := []string{"commit-tree", "-S", "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	res, err := m.run(ctx, command{
		args: append(args, tree), stdin: strings.NewReader(strings.TrimRight(message, "\n") + "\n"),
		env: []string{
			"GIT_AUTHOR_NAME=" + sig.Name, "GIT_AUTHOR_EMAIL=" + sig.Mail, "GIT_AUTHOR_DATE=" + date,
			"GIT_COMMITTER_NAME=" + sig.Name, "GIT_COMMITTER_EMAIL=" + sig.Mail, "GIT_COMMITTER_DATE=" + date,
		},
	})
	if err != nil {
		return "", fmt.Errorf("sign commit: %w", err)
	}
	return res.text(), nil
}
