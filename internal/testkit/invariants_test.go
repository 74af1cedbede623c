package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func TestMain(m *testing.M) {
	AsScriptedWorker()
	os.Exit(m.Run())
}

// stage is a hub with a truth of its own, as a run would have left it.
type stage struct {
	Scene
	base string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	control, err := NewControl(filepath.Join(t.TempDir(), "control"))
	require.NoError(t, err)
	s := &stage{Scene: Scene{Run: RunID(t), Control: control, Repo: NewRepo(t, filepath.Join(t.TempDir(), "hub"), nil)}}
	s.base = s.Repo.Git(t, "rev-parse", "HEAD")
	s.Repo.Git(t, "checkout", "-q", "--detach")
	s.point(t)
	return s
}

func (s *stage) point(t *testing.T) {
	t.Helper()
	s.Repo.Git(t, "update-ref", contract.TruthRef(s.Run), "HEAD")
}

// land commits a file with a mark on the truth and returns the commit.
func (s *stage) land(t *testing.T, node string, opening, attempt int, more ...string) string {
	t.Helper()
	file := filepath.Join(s.Repo.Dir, fmt.Sprintf("%s-%d-%d.txt", node, opening, attempt))
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf("mark %s/%s/a%d/1\n", s.Run, node, attempt)), 0o644))
	s.Repo.Git(t, "add", "-A")
	trailers := []string{"Mendflow-Run: " + s.Run, "Mendflow-Node: " + node, fmt.Sprintf("Mendflow-Opening: %d", opening), fmt.Sprintf("Mendflow-Attempt: %d", attempt)}
	s.Repo.Git(t, "commit", "-q", "-m", node+"\n\n"+strings.Join(append(trailers, more...), "\n"))
	s.point(t)
	return s.Repo.Git(t, "rev-parse", "HEAD")
}

func (s *stage) history(t *testing.T) History {
	t.Helper()
	h, err := ReadHistory(s.Repo, s.Run, s.base)
	require.NoError(t, err)
	return h
}

func landed(opening int, commit string) contract.NodeRow {
	return contract.NodeRow{State: contract.NodeLanded, Opening: opening, Attempts: []contract.AttemptRow{
		{K: 1, Outcome: contract.OutcomeSuccess, Commit: commit},
	}}
}

func TestHistoryThatAgreesWithTheReportIsSound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.land(t, "a", 1, 1)
	require.Empty(t, s.history(t).against(s.Run, map[string]contract.NodeRow{
		"a": landed(1, a), "b": {State: contract.NodeBlocked, Opening: 1},
	}))
}

func TestWhatIsReportedAndNotInGitIsFound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	found := s.history(t).against(s.Run, map[string]contract.NodeRow{"a": landed(1, strings.Repeat("1", 40))})
	require.Len(t, found, 2)
	require.Contains(t, found[0], "has no commit of it")
	require.Contains(t, found[1], "is not on the truth")
}

func TestWhatIsInGitAndNotReportedIsFound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.land(t, "a", 1, 1)
	rows := map[string]contract.NodeRow{"a": {State: contract.NodeBlocked, Opening: 1}}
	require.Contains(t, s.history(t).against(s.Run, rows)[0], "which is reported blocked")
	rows["a"] = landed(1, "")
	require.Contains(t, s.history(t).against(s.Run, rows)[0], "no attempt is reported to have landed it")
	require.Contains(t, s.history(t).against(s.Run, nil)[0], "in no report")
}

func TestTwoLandingsOfOneOpeningAreFound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.land(t, "a", 1, 1)
	second := s.land(t, "a", 1, 2)
	row := landed(1, first)
	row.Attempts = append(row.Attempts, contract.AttemptRow{K: 2, Outcome: contract.OutcomeSuccess, Commit: second})
	require.Contains(t, strings.Join(s.history(t).against(s.Run, map[string]contract.NodeRow{"a": row}), "\n"), "landed 2 times")
}

func TestARevertedLandingCountsForNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.land(t, "a", 1, 1)
	s.Repo.Git(t, "commit", "-q", "--allow-empty", "-m", "Revert\n\nMendflow-Run: "+s.Run+"\nMendflow-Reverts: "+first)
	s.point(t)
	second := s.land(t, "a", 2, 2)
	row := landed(2, first)
	require.NotEmpty(t, s.history(t).against(s.Run, map[string]contract.NodeRow{"a": row}), "the second is reported by nobody")
	row.Attempts = append(row.Attempts, contract.AttemptRow{K: 2, Outcome: contract.OutcomeSuccess, Commit: second})
	require.Empty(t, s.history(t).against(s.Run, map[string]contract.NodeRow{"a": row}))
}

func TestWhatWasTakenBackAndIsStillThereIsFound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first, second := s.land(t, "a", 1, 1), s.land(t, "b", 1, 1)
	require.Empty(t, s.takenBack(s.history(t)))
	revert := func(commits ...string) {
		s.Repo.Git(t, "commit", "-q", "--allow-empty", "-m", "Revert\n\nMendflow-Run: "+s.Run+"\nMendflow-Reverts: "+strings.Join(commits, "\nMendflow-Reverts: "))
		s.point(t)
	}
	s.Repo.Git(t, "rm", "-q", "a-1-1.txt")
	revert(first)
	require.Empty(t, s.takenBack(s.history(t)))
	revert(second)
	require.Contains(t, s.takenBack(s.history(t))[0], "is on the truth, and its commit "+second+" was taken back")
	s.Repo.Git(t, "rm", "-q", "b-1-1.txt")
	revert(first, s.base)
	found := strings.Join(s.takenBack(s.history(t)), "\n")
	require.Contains(t, found, "which was taken back before")
	require.Contains(t, found, "which did not land before it")
}

func TestAnEditThatIsNowhereIsFound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.land(t, "a", 1, 1)
	state := t.TempDir()
	s.States = []string{state}
	mark := func(node string, attempt int) Event {
		return Event{Kind: "mark", Node: node, Attempt: fmt.Sprint(attempt), Mark: fmt.Sprintf("mark %s/%s/a%d/1", s.Run, node, attempt)}
	}
	events := []Event{mark("a", 1), mark("a", 2), mark("b", 1), mark("c", 1)}
	require.Len(t, s.lost(events, s.history(t)), 3)

	// One in a kept tree, one in a salvage ref: still one that is nowhere.
	kept := filepath.Join(state, "worktrees", s.Run, "b", "a1")
	require.NoError(t, os.MkdirAll(kept, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(kept, "work.txt"), []byte("todo\n"+events[2].Mark+"\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.Repo.Dir, "work.txt"), []byte(events[3].Mark+"\n"), 0o644))
	s.Repo.Git(t, "add", "-A")
	tree := s.Repo.Git(t, "write-tree")
	salvage := s.Repo.Git(t, "commit-tree", tree, "-p", s.base, "-m", "Salvage")
	s.Repo.Git(t, "update-ref", "refs/mendflow/salvage/"+s.Run+"/c/1", salvage)
	require.Equal(t, []string{fmt.Sprintf("the edit %q of a attempt 2 is lost", events[1].Mark)}, s.lost(events, s.history(t)))
}

func TestALivingProcessAndATwinAreFound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	self := identify(os.Getpid())
	found := s.living([]Event{
		{Kind: "start", Node: "a", Attempt: "1", Process: self},
		{Kind: "start", Node: "b", Attempt: "2", Process: Identity{PID: self.PID, Start: "of another process"}, Twins: 1},
	})
	require.Len(t, found, 2)
	require.Contains(t, found[0], "is alive")
	require.Contains(t, found[1], "were alive")
}

func TestACheckoutThatWasTouchedIsFound(t *testing.T) {
	t.Parallel()
	repo := NewRepo(t, filepath.Join(t.TempDir(), "repo"), map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n"})
	before := repo.Checkout(t)
	repo.Git(t, "update-ref", "refs/mendflow/run/x", "HEAD")
	repo.Git(t, "update-ref", "refs/heads/mendflow/x", "HEAD")
	require.Empty(t, before.differences(repo.Checkout(t)), "these are ours to make")

	for what, touch := range map[string]func(*Repo){
		"tree/a.txt":     func(r *Repo) { write(t, r, "a.txt", "changed\n") },
		"tree/new.txt":   func(r *Repo) { write(t, r, "new.txt", "") },
		"git/config":     func(r *Repo) { r.Git(t, "config", "x.y", "z") },
		"git/index":      func(r *Repo) { r.Git(t, "rm", "-q", "--cached", "a.txt") },
		"git/HEAD":       func(r *Repo) { r.Git(t, "symbolic-ref", "HEAD", "refs/heads/other") },
		"git/hooks/x":    func(r *Repo) { write(t, r, ".git/hooks/x", "#!/bin/sh\n") },
		"ref/refs/heads": func(r *Repo) { r.Git(t, "branch", "other") },
	} {
		repo := NewRepo(t, filepath.Join(t.TempDir(), "repo"), map[string]string{"a.txt": "a\n"})
		before := repo.Checkout(t)
		touch(repo)
		require.Contains(t, strings.Join(before.differences(repo.Checkout(t)), "\n"), what)
	}
}

func write(t *testing.T, r *Repo, name, text string) {
	t.Helper()
	path := filepath.Join(r.Dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}
