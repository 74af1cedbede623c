package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// secretValue is what a worker is given and must not be able to publish.
const secretValue = "correct-horse-battery-staple-4711"

// TestHostileWorkers runs one node per misdeed of the hostile worker beside an
// honest one, in one run, and expects of each exactly what the design says: its
// attempts, what landed, what was salvaged, what the run says about it. The
// user's repository stays as it was, and no process and no tree is left.
func TestHostileWorkers(t *testing.T) {
	t.Parallel()
	endings := hostileEndings()
	lab, c := startHostileLab(t, endings)
	v := awaitClosed(t, lab.Client, c.Run, 15*time.Minute)
	require.Equal(t, contract.RunBlocked, v.Status, v.Reason)
	testkit.CheckInvariants(t, lab.Scene(c))
	h := hostileRun{lab: lab, c: c, view: v, rows: lab.Client.Nodes(t, c.Run), base: v.BaseCommit}
	h.friction = lab.Client.Report(t, c.Run).Friction
	for _, name := range slices.Sorted(maps.Keys(endings)) {
		t.Run(name, func(t *testing.T) { h.check(t, name, endings[name]) })
	}
	require.Empty(t, h.unexpectedFriction(endings), "what the run says beyond what was expected")
	proofs, err := os.ReadDir(filepath.Join(lab.Control.Dir, "proofs"))
	require.NoError(t, err)
	require.Empty(t, proofs, "somebody ran a command that a worker planted")
	requireNothingLeft(t, lab, c)
}

// hostilePlan has a node per misdeed, a victim that others attack, and what is
// to be protected.
func hostilePlan(endings map[string]ending) testkit.Plan {
	p := testkit.Plan{
		More: map[string]any{
			"gate":   map[string]any{"baseline": "require"}, // discovered: make test
			"intent": map[string]any{"must_not_touch": []string{"docs/**"}},
		},
		Policy: map[string]any{"idle_minutes": 1, "attempt_minutes": 2, "unattended": true},
	}
	for _, name := range slices.Sorted(maps.Keys(endings)) {
		node := testkit.Node{ID: name}
		switch name {
		case "victim": // not before its attacker is through, so that its files are always somebody's
			node.After = []string{"edits-other-node"}
		case "edits-verification":
			node.Verify = []string{"sh script/verify.sh"}
		}
		p.Nodes = append(p.Nodes, node)
	}
	return p
}

// hostileFiles are what the repository holds beside the plan's own files.
func hostileFiles() map[string]string {
	return map[string]string{
		"Makefile":                 "test:\n\t@true\n",
		".gitignore":               "build/\n",
		".github/workflows/ci.yml": "on: push\n",
		"docs/rules.md":            "Do not change this.\n",
		"nobody/owns.txt":          "free\n",
		"script/verify.sh":         "grep -q '^mark ' edits-verification/work.txt\n",
		"text/plain.txt":           "one\ntwo\n",
	}
}

func startHostileLab(t *testing.T, endings map[string]ending) (*testkit.Lab, *testkit.Case) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "hostile")
	build := exec.Command("go", "build", "-o", program, "./internal/testkit/hostile")
	build.Dir = testkit.Root()
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	p := hostilePlan(endings)
	c := &testkit.Case{Run: testkit.RunID(t), Dir: dir, Plan: p}
	files := p.Files()
	maps.Copy(files, hostileFiles())
	c.Repo = testkit.NewRepo(t, filepath.Join(dir, "repo"), files)
	c.Path = p.Write(t, filepath.Join(dir, "plan.yaml"))
	c.Before = c.Repo.Checkout(t)

	lab := &testkit.Lab{Dir: dir, Pools: filepath.Join(dir, "pools.yaml")}
	t.Cleanup(func() {
		if t.Failed() && lab.Host != nil {
			t.Logf("--- the worker's log\n%s", tail(lab.Host.Output(), 16<<10))
		}
		require.NoError(t, lab.Close())
	})
	lab.Control, err = testkit.NewControl(filepath.Join(dir, "control"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(lab.Control.Dir, "proofs"), 0o755))
	state := filepath.Join(dir, "state", "mendflow")
	writeHostilePools(t, lab, []string{
		program, "-control", lab.Control.Dir, "-hub", c.Repo.Dir, "-state", state, "-starter", testkit.Program("starter"), "-{node}",
	})
	lab.Server, err = testkit.StartServer(dir, false)
	require.NoError(t, err)
	lab.Host, err = testkit.StartHost(testkit.HostOptions{
		Address: lab.Server.Address, State: state, Pools: lab.Pools, Env: []string{"HOSTILE_SECRET=" + secretValue},
	})
	require.NoError(t, err)
	lab.Client, err = testkit.NewClient(lab.Server.Address, state)
	require.NoError(t, err)
	requireEveryMisdeed(t, program, endings)
	lab.Start(t, c)
	return lab, c
}

func writeHostilePools(t *testing.T, lab *testkit.Lab, command []string) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"version": 1, "pools": []map[string]any{{
		"id": "hostile", "provider": "command", "command": command, "max_concurrent": 6, "writable": []string{lab.Control.Dir},
		"env": []string{"HOSTILE_SECRET"}, "cost": map[string]any{"input": 0, "output": 0},
	}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(lab.Pools, data, 0o644))
}

// requireEveryMisdeed keeps program and expectations the same list.
func requireEveryMisdeed(t *testing.T, program string, endings map[string]ending) {
	t.Helper()
	out, err := exec.Command(program, "-list").Output()
	require.NoError(t, err)
	require.ElementsMatch(t, strings.Fields(string(out)), slices.Collect(maps.Keys(endings)))
}

// awaitClosed waits longer than other tests do: limits of minutes are part of the run.
func awaitClosed(t *testing.T, c *testkit.Client, run string, most time.Duration) contract.RunView {
	t.Helper()
	for deadline := time.Now().Add(most); ; time.Sleep(200 * time.Millisecond) {
		v, err := c.Status(run)
		if err == nil && v.Status.Closed() && v.ClosedAt != nil {
			return v
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s did not close in %v (%v): %+v", run, most, err, v)
		}
	}
}

// ending is how a node of a misdeed ends.
type ending struct {
	state    contract.NodeState
	tries    []try
	lands    []string                // paths of its commit; nil: its work.txt, where a try is a success
	keeps    []string                // paths that the salvage of its first attempt holds beside or instead of what is landed
	friction []contract.FrictionType // about the node or its finding
	says     []string                // texts in the log of its first attempt
	hides    []string                // texts that are not in it
	most     int                     // bytes of it; 0: it is not looked at
}

// try is how an attempt ends.
type try struct {
	outcome contract.Outcome
	cause   contract.Cause
	reason  string // a part of it
}

type hostileRun struct {
	lab      *testkit.Lab
	c        *testkit.Case
	view     contract.RunView
	rows     map[string]contract.NodeRow
	base     string
	friction []contract.Friction
}

func (h hostileRun) check(t *testing.T, name string, want ending) {
	row, ok := h.rows[name]
	require.True(t, ok)
	told := told(row)
	require.Equal(t, want.state, row.State, told)
	require.Len(t, row.Attempts, len(want.tries), told)
	for i, try := range want.tries {
		got := row.Attempts[i]
		require.Equal(t, try.outcome, got.Outcome, told)
		require.Equal(t, try.cause, got.Cause, told)
		require.Contains(t, got.Reason, try.reason, told)
	}
	h.checkLanded(t, name, want, row)
	h.checkKept(t, want, row)
	require.ElementsMatch(t, want.friction, h.frictionAbout(name), told)
	log := ""
	if len(want.says)+len(want.hides)+want.most > 0 {
		log = h.lab.Client.OK(t, "logs", h.c.Run, name, "--attempt", "1")
	}
	for _, text := range want.says {
		require.True(t, strings.Contains(log, text), "%q is not in its log: %s", text, tail(log, 4<<10))
	}
	for _, text := range want.hides {
		require.False(t, strings.Contains(log, text), "%q is in its log", text)
	}
	if want.most > 0 {
		require.LessOrEqual(t, len(log), want.most)
	}
}

// told is a node as the run tells it.
func told(row contract.NodeRow) string {
	data, _ := json.MarshalIndent(row, "", " ")
	return string(data)
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }

func (h hostileRun) checkLanded(t *testing.T, name string, want ending, row contract.NodeRow) {
	t.Helper()
	last := contract.AttemptRow{}
	if n := len(row.Attempts); n > 0 {
		last = row.Attempts[n-1]
	}
	if row.State != contract.NodeLanded {
		require.Empty(t, want.lands)
		require.Empty(t, last.Commit)
		return
	}
	lands := want.lands
	if lands == nil {
		lands = []string{name + "/work.txt"}
	}
	require.ElementsMatch(t, lands, h.paths(t, last.Commit+"^", last.Commit))
}

func (h hostileRun) checkKept(t *testing.T, want ending, row contract.NodeRow) {
	t.Helper()
	if len(row.Attempts) == 0 {
		return
	}
	first := row.Attempts[0]
	if want.keeps == nil {
		require.Empty(t, first.Salvage, told(row))
		return
	}
	require.NotEmpty(t, first.Salvage, told(row))
	// The salvage hangs off the base of its attempt.
	kept := h.paths(t, first.Salvage+"^", first.Salvage)
	if slices.Contains(want.keeps, everything) {
		require.Empty(t, h.c.Repo.Git(t, "ls-tree", first.Salvage))
		return
	}
	require.ElementsMatch(t, want.keeps, folded(kept, want.keeps))
}

// everything, as what is kept, says that every file is gone.
const everything = "*"

// folded replaces the paths below a folder by FOLDER/** where that is expected.
func folded(paths, want []string) []string {
	var out []string
	for _, p := range paths {
		for _, w := range want {
			if dir, ok := strings.CutSuffix(w, "**"); ok && strings.HasPrefix(p, dir) {
				p = w
			}
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// paths lists what differs between two revisions of the hub, which has salvage
// too, since the run did not end green.
func (h hostileRun) paths(t *testing.T, from, to string) []string {
	t.Helper()
	out := h.c.Repo.Git(t, "diff", "--name-only", "--no-renames", "-z", from, to)
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// about reports whether friction is about a node or its finding.
func about(f contract.Friction, name string) bool {
	return f.Discriminator == name || f.Discriminator == "F-"+name
}

func (h hostileRun) frictionAbout(name string) []contract.FrictionType {
	var types []contract.FrictionType
	for _, f := range h.friction {
		if about(f, name) {
			types = append(types, f.Type)
		}
	}
	return types
}

// unexpectedFriction is about none of the nodes.
func (h hostileRun) unexpectedFriction(endings map[string]ending) []string {
	var found []string
	for _, f := range h.friction {
		known := false
		for name := range endings {
			known = known || about(f, name)
		}
		if !known && f.Discriminator != "F-unheard-of" {
			found = append(found, fmt.Sprintf("%+v", f))
		}
	}
	return found
}
