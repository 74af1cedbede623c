package testkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mendflow/internal/contract"
)

// Scene is what the invariants are about: a run that has closed or stands
// still, as its server, its hub, its hosts and the process table show it.
type Scene struct {
	Run     string
	Client  *Client
	Control Control
	Repo    *Repo    // the hub
	Before  Checkout // of the hub, before the run
	States  []string // state folders of the hosts
}

// CheckInvariants fails the test for everything that must hold whatever was
// killed and does not:
//
//   - each node reported landed has exactly one unreverted commit of its current
//     opening, and each commit of the run belongs to an attempt that is reported
//     to have landed as that commit;
//   - what was taken back landed before, once, and nothing of it is on the truth;
//   - what is on the truth is complete in the hub;
//   - every edit of a worker is landed, in a salvage ref, or in a kept tree;
//   - no process of an attempt is alive, and no two workers of a node ever were at once;
//   - the user's repository is as it was, but for Mendflow's own refs, and holds
//     no lock of ours.
func CheckInvariants(t testing.TB, s Scene) {
	t.Helper()
	rows := s.Client.Nodes(t, s.Run)
	broken := s.broken(t, rows)
	for _, b := range broken {
		t.Errorf("invariant of run %s: %s", s.Run, b)
	}
	if len(broken) > 0 {
		Tell(t, s)
	}
}

// Tell logs what the run says about itself and what its workers did.
func Tell(t testing.TB, s Scene) {
	t.Helper()
	rows := s.Client.Nodes(t, s.Run)
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		line, _ := json.Marshal(rows[id]) // plain values
		t.Logf("%s", line)
	}
	for _, e := range s.Control.Events(t, s.Run) {
		line, _ := json.Marshal(e)
		t.Logf("%s", line)
	}
}

func (s Scene) broken(t testing.TB, rows map[string]contract.NodeRow) []string {
	t.Helper()
	events := s.Control.Events(t, s.Run)
	history, err := s.history()
	if err != nil {
		return []string{err.Error()}
	}
	broken := history.against(s.Run, rows)
	if _, err := s.Repo.TryGit("rev-list", "--objects", "--quiet", history.truth); err != nil {
		broken = append(broken, "the truth is not complete in the hub: "+err.Error())
	}
	broken = append(broken, s.takenBack(history)...)
	broken = append(broken, s.lost(events, history)...)
	broken = append(broken, s.living(events)...)
	for _, difference := range s.Before.differences(s.Repo.Checkout(t)) {
		broken = append(broken, "the user's repository changed: "+difference)
	}
	return append(broken, s.locks()...)
}

// Commit is a commit of a run as git has it.
type Commit struct {
	Hash    string
	Run     string
	Node    string
	Opening string
	Attempt string
	Reverts []string
	Gone    bool // a later commit reverts it
}

// History is what a run has put on its truth, oldest first.
type History struct {
	truth   string
	Commits []Commit
}

// ReadHistory reads the commits of a run from its hub.
func ReadHistory(repo *Repo, run, base string) (History, error) {
	var h History
	truth, err := repo.TryGit("rev-parse", "--verify", contract.TruthRef(run))
	if err != nil {
		return h, err
	}
	h.truth = truth
	const field = "%%x00%%(trailers:key=Mendflow-%s,valueonly,separator=%%x20)"
	format := "%H"
	for _, key := range []string{"Run", "Node", "Opening", "Attempt", "Reverts"} {
		format += fmt.Sprintf(field, key)
	}
	out, err := repo.TryGit("log", "--reverse", "--topo-order", "--format="+format, base+".."+truth)
	if err != nil {
		return h, err
	}
	gone := map[string]bool{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		c := Commit{Hash: f[0], Run: f[1], Node: f[2], Opening: f[3], Attempt: f[4], Reverts: strings.Fields(f[5])}
		h.Commits = append(h.Commits, c)
		for _, oid := range c.Reverts {
			gone[oid] = true
		}
	}
	for i := range h.Commits {
		h.Commits[i].Gone = gone[h.Commits[i].Hash]
	}
	return h, nil
}

// history reads the run's commits since its base, which the run itself names.
func (s Scene) history() (History, error) {
	v, err := s.Client.Status(s.Run)
	if err != nil {
		return History{}, err
	}
	return ReadHistory(s.Repo, s.Run, v.BaseCommit)
}

// against compares git with what the run reports.
func (h History) against(run string, rows map[string]contract.NodeRow) []string {
	var broken []string
	known := map[string]bool{}
	standing := map[string][]string{} // node and opening to unreverted commits
	for _, c := range h.Commits {
		known[c.Hash] = true
		switch {
		case c.Run != run:
			broken = append(broken, fmt.Sprintf("commit %s on the truth is of run %q", c.Hash, c.Run))
		case len(c.Reverts) > 0 && c.Node == "":
		case c.Gone:
		default:
			key := c.Node + "/" + c.Opening
			standing[key] = append(standing[key], c.Hash)
			broken = append(broken, c.claimedBy(rows)...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(standing)) {
		if n := len(standing[key]); n > 1 {
			broken = append(broken, fmt.Sprintf("%s landed %d times: %v", key, n, standing[key]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		row := rows[id]
		if row.State == contract.NodeLanded && len(standing[fmt.Sprintf("%s/%d", id, row.Opening)]) != 1 {
			broken = append(broken, fmt.Sprintf("%s is reported landed in opening %d and has no commit of it", id, row.Opening))
		}
		for _, a := range row.Attempts {
			if a.Commit != "" && !known[a.Commit] {
				broken = append(broken, fmt.Sprintf("%s attempt %d is reported as commit %s, which is not on the truth", id, a.K, a.Commit))
			}
		}
	}
	return broken
}

// claimedBy finds the report of an unreverted commit.
func (c Commit) claimedBy(rows map[string]contract.NodeRow) []string {
	row, ok := rows[c.Node]
	if !ok {
		return []string{fmt.Sprintf("commit %s is of node %q, which is in no report", c.Hash, c.Node)}
	}
	current := c.Opening == fmt.Sprint(row.Opening)
	if current && row.State != contract.NodeLanded && row.State != contract.NodePartial {
		return []string{fmt.Sprintf("commit %s landed %s in its current opening, which is reported %s", c.Hash, c.Node, row.State)}
	}
	for _, a := range row.Attempts {
		if a.Commit == c.Hash && a.Outcome == contract.OutcomeSuccess {
			return nil
		}
	}
	return []string{fmt.Sprintf("commit %s landed %s, and no attempt is reported to have landed it", c.Hash, c.Node)}
}

// lost finds the workers' edits that are nowhere.
func (s Scene) lost(events []Event, h History) []string {
	var broken []string
	found := map[string]bool{}
	collect := func(repo *Repo, commits ...string) {
		if len(commits) == 0 {
			return
		}
		args := append([]string{"grep", "-h", "-o", "-a", "-e", "^mark [^ ]*"}, commits...)
		out, err := repo.TryGit(args...)
		if err != nil && !strings.Contains(err.Error(), "exit status 1:") { // 1: nothing matches
			broken = append(broken, err.Error())
		}
		for line := range strings.Lines(out) {
			found[strings.TrimSpace(line)] = true
		}
	}
	var landed []string
	for _, c := range h.Commits {
		landed = append(landed, c.Hash)
	}
	collect(s.Repo, landed...)
	for _, repo := range append(s.mirrors(), s.Repo) {
		out, err := repo.TryGit("for-each-ref", "--format=%(objectname)", "refs/mendflow/salvage/"+s.Run+"/")
		if err != nil {
			broken = append(broken, err.Error())
		}
		collect(repo, strings.Fields(out)...)
	}
	for _, state := range s.States {
		for _, kept := range []string{"worktrees", "quarantine"} {
			marksBelow(filepath.Join(state, kept, s.Run), found)
		}
	}
	for _, e := range events {
		if e.Kind == "mark" && !found[e.Mark] {
			broken = append(broken, fmt.Sprintf("the edit %q of %s attempt %s is lost", e.Mark, e.Node, e.Attempt))
		}
	}
	return broken
}

func (s Scene) mirrors() []*Repo {
	var repos []*Repo
	for _, state := range s.States {
		dirs, _ := filepath.Glob(filepath.Join(state, "mirrors", "*.git")) // the pattern is valid
		for _, dir := range dirs {
			repos = append(repos, &Repo{Dir: dir})
		}
	}
	return repos
}

var markLine = regexp.MustCompile(`(?m)^mark \S+`)

// marksBelow adds the marks in the files of a folder, if it exists. What is
// being removed meanwhile holds none.
func marksBelow(dir string, found map[string]bool) {
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			data, _ := os.ReadFile(path)
			for _, mark := range markLine.FindAll(data, -1) {
				found[string(mark)] = true
			}
		}
		return nil
	})
}

// living finds processes that should be gone, and workers that should never have met.
func (s Scene) living(events []Event) []string {
	var broken []string
	for _, e := range events {
		if e.Kind == "start" && e.Twins > 0 {
			broken = append(broken, fmt.Sprintf("attempt %s of %s started while %d other workers of it were alive", e.Attempt, e.Node, e.Twins))
		}
		if (e.Kind == "start" || e.Kind == "orphan") && alive(e.Process) {
			broken = append(broken, fmt.Sprintf("process %d (%s of attempt %s of %s) is alive", e.Process.PID, e.Kind, e.Attempt, e.Node))
		}
	}
	var trees []string
	for _, state := range s.States {
		trees = append(trees, filepath.Join(state, "worktrees", s.Run))
	}
	for _, p := range Marked(s.Run, trees...) {
		broken = append(broken, "a process of the run is alive: "+p)
	}
	return broken
}

// locks finds lock files on our refs in the hub.
func (s Scene) locks() []string {
	var broken []string
	for _, below := range []string{"refs/mendflow", "refs/heads/mendflow"} {
		_ = filepath.WalkDir(filepath.Join(s.Repo.gitDir(), below), func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".lock") {
				broken = append(broken, "a lock file was left: "+path)
			}
			return nil
		})
	}
	return broken
}
