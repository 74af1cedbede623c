package activities

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// attributed is a run whose nodes have landed, in their order, what the script of each leaves.
type attributed struct {
	*flow
	commits map[string]string
}

// landAll opens a run with a plan and lands its nodes. The gate is red where a
// file `broken` lies beside one called `armed`; it leaves a line in a log outside
// of the tree each time that it runs.
func landAll(t *testing.T, script string, nodes ...string) *attributed {
	t.Helper()
	f := newFlow(t, script)
	var b strings.Builder
	b.WriteString("version: 1\nid: p\nbase: main\nfindings:\n")
	for _, n := range nodes {
		id, _, _ := strings.Cut(n, "<")
		fmt.Fprintf(&b, "  - {id: F-%s, title: %s, severity: low, files: [{path: one/word}], evidence: [seen]}\n", id, id)
	}
	b.WriteString("nodes:\n")
	for _, n := range nodes {
		id, on, depends := strings.Cut(n, "<")
		if depends {
			on = ", depends_on: [" + on + "]"
		}
		fmt.Fprintf(&b, "  - {id: %s, findings: [F-%s], write: ['**', '%s/**']%s, verify: [['true']]}\n", id, id, id, on)
	}
	log := filepath.Join(f.host.StateDir, "gate.log")
	fmt.Fprintf(&b, "gate: {commands: [['true'], 'echo ran >> %s; ! test -e broken || ! test -e armed']}\n", log)
	p, faults := plan.Parse("plan.yaml", []byte(b.String()))
	require.NoError(t, faults.Err())
	f.in.Plan = f.put("plan.json", p)
	f.open()
	a := &attributed{flow: f, commits: map[string]string{}}
	for _, n := range nodes {
		id, _, _ := strings.Cut(n, "<")
		require.Equal(t, contract.OutcomeSuccess, f.work(f.node(id, 1)).Outcome)
		landed := f.land(f.node(id, 1))
		require.Equal(t, contract.NodeLanded, landed.State, landed.Reason)
		a.commits[id] = landed.Commit
	}
	return a
}

func (a *attributed) gates() *Gate { return &Gate{Host: a.host} }

// ran counts the runs of the gate's second command.
func (a *attributed) ran() int {
	data, _ := os.ReadFile(filepath.Join(a.host.StateDir, "gate.log"))
	return strings.Count(string(data), "ran")
}

func (a *attributed) red() contract.GateEnd {
	a.t.Helper()
	end := must[contract.GateEnd](a.flow, a.gates().RunGate, contract.GateInput{Run: "r", Config: a.opened.Config, Purpose: "final", Round: 1})
	require.Equal(a.t, "red", end.Verdict)
	return end
}

func (a *attributed) suspects(green, truth string) []string {
	a.t.Helper()
	result := must[contract.SuspectsResult](a.flow, a.gates().Suspects, contract.SuspectsInput{Run: "r", Config: a.opened.Config, Green: green, Truth: truth})
	require.Zero(a.t, result.Next)
	nodes := []string{}
	for _, s := range result.Commits {
		require.Equal(a.t, a.commits[s.Node], s.Commit)
		nodes = append(nodes, s.Node)
	}
	return nodes
}

func (a *attributed) trial(gate contract.GateEnd, green string, commits ...int) contract.TrialEnd {
	a.t.Helper()
	prefix := true
	for i, at := range commits {
		prefix = prefix && i == at
	}
	return must[contract.TrialEnd](a.flow, a.gates().RunTrial, contract.TrialInput{
		Run: "r", Config: a.opened.Config, Gate: *gate.Result, Green: green, Truth: gate.Commit, Commits: commits, Prefix: prefix, Round: 1, Number: 1,
	})
}

func (a *attributed) revert(truth, culprit string) contract.RevertEnd {
	a.t.Helper()
	return must[contract.RevertEnd](a.flow, a.gates().RevertCulprit, contract.RevertInput{
		Run: "r", Config: a.opened.Config, Truth: truth, Culprit: culprit, Why: "it\nbreaks the gate",
	})
}

const writesOwn = `mkdir -p "$MENDFLOW_NODE" && echo done > "$MENDFLOW_NODE/done"
[ "$MENDFLOW_NODE" != bad ] || touch broken
[ "$MENDFLOW_NODE" != armed ] || touch armed`

func TestTrialsRunTheFailingCommandOncePerTree(t *testing.T) {
	t.Parallel()
	a := landAll(t, writesOwn, "armed", "x", "bad", "y")
	gate := a.red()
	require.Equal(t, 2, a.ran(), "a first red is run again on the same tree")
	require.Equal(t, gate, a.red(), "the same gate of the same round is not run again")
	require.Equal(t, 2, a.ran())

	require.Equal(t, []string{"armed", "x", "bad", "y"}, a.suspects("", gate.Commit))
	require.Equal(t, []string{"bad", "y"}, a.suspects(a.commits["x"], gate.Commit))
	require.Equal(t, []string{"armed", "x"}, a.suspects("", a.commits["x"]), "of a truth of the past")

	require.Equal(t, "red", a.trial(gate, "", 0, 1, 2, 3).Result)
	require.Equal(t, "green", a.trial(gate, "").Result)
	require.Equal(t, "green", a.trial(gate, "", 0, 1).Result)
	require.Equal(t, "red", a.trial(gate, "", 0, 1, 2).Result)
	require.Equal(t, 6, a.ran(), "only the failing command, once each")
	alone := a.trial(gate, "", 2)
	require.Equal(t, "green", alone.Result, "bad alone does no harm")
	require.False(t, alone.Cached)
	require.Equal(t, "red", a.trial(gate, "", 0, 2).Result, "with what armed it it does")
	again := a.trial(gate, "", 2)
	require.True(t, again.Cached)
	require.Equal(t, alone.Result, again.Result)
	require.Equal(t, 8, a.ran())
	require.Equal(t, "red", a.trial(gate, a.commits["armed"], 1).Result, "on another green truth: the same tree as armed and bad")
	require.Equal(t, 8, a.ran())
	require.NoDirExists(t, filepath.Join(a.host.StateDir, "throwaway", "r"), "every tree is given up")
}

func TestRevertTakesPlanDependantsAlong(t *testing.T) {
	t.Parallel()
	a := landAll(t, writesOwn, "armed", "bad", "on<bad", "x", "y", "z")
	gate := a.red()
	end := a.revert(gate.Commit, "bad")
	require.Equal(t, []string{"bad", "on"}, end.Nodes)
	require.Equal(t, end.Commit, a.git("rev-parse", contract.TruthRef("r")))
	require.Equal(t, gate.Commit, a.git("rev-parse", end.Commit+"^"))
	message := a.git("log", "-1", "--format=%B", end.Commit)
	require.Contains(t, message, "Take back bad\n\nit breaks the gate\n")
	require.Contains(t, message, "- bad "+a.commits["bad"])
	require.Contains(t, message, "Mendflow-Reverts: "+a.commits["on"])
	require.Equal(t, "armed/done x/done y/done z/done", strings.Join(strings.Fields(a.git("ls-tree", "-r", "--name-only", end.Commit, "armed/", "bad/", "on/", "x/", "y/", "z/")), " "))
	require.Equal(t, end, a.revert(gate.Commit, "bad"), "an execution after a kill finds what was done")
	require.Equal(t, end.Commit, a.git("rev-parse", contract.TruthRef("r")))

	// The decision was made on a truth: the same suspects, whatever happened since.
	require.Equal(t, []string{"armed", "bad", "on", "x", "y", "z"}, a.suspects("", gate.Commit))
	require.Equal(t, []string{"armed", "x", "y", "z"}, a.suspects("", end.Commit))
	green := must[contract.GateEnd](a.flow, a.gates().RunGate, contract.GateInput{Run: "r", Config: a.opened.Config, Purpose: "final", Round: 2})
	require.Equal(t, "green", green.Verdict)
}

func TestRevertThatConflictsTakesTheSharersAlong(t *testing.T) {
	t.Parallel()
	script := writesOwn + `
case "$MENDFLOW_NODE" in bad|sharer) echo "$MENDFLOW_NODE" >> shared ;; esac`
	a := landAll(t, script, "armed", "bad", "sharer", "x", "y", "z")
	gate := a.red()
	require.Equal(t, "unmerged", a.trial(gate, "", 2).Result, "its line stands on another's")
	end := a.revert(gate.Commit, "bad")
	require.Equal(t, []string{"bad", "sharer"}, end.Nodes)
	require.Equal(t, end, a.revert(gate.Commit, "bad"))
}

func TestRevertThatTakesTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	a := landAll(t, writesOwn, "armed", "bad", "on<bad", "x")
	gate := a.red()
	end := a.revert(gate.Commit, "bad")
	require.Equal(t, "taking bad back takes 2 of 4 landed commits with it", end.Refused)
	require.Empty(t, end.Commit)
	require.Equal(t, gate.Commit, a.git("rev-parse", contract.TruthRef("r")))
}

func TestReverifyProvesWhatOthersRepaired(t *testing.T) {
	t.Parallel()
	f := newFlow(t, `echo repaired > one/word`)
	p, faults := plan.Parse("plan.yaml", []byte(`version: 1
id: p
base: main
findings:
  - {id: F-1, title: one, severity: high, files: [{path: one/word}], evidence: [seen]}
  - {id: F-2, title: gone, severity: high, files: [{path: two/word}], evidence: [seen]}
nodes:
  - {id: repairs, findings: [F-1], write: ["one/**"], verify: [["true"]]}
  - {id: tries, findings: [F-2], write: ["two/**"], verify: [["true"], ["grep", "-q", "repaired", "one/word"]]}
gate: {commands: [["true"]]}
`))
	require.NoError(t, faults.Err())
	f.in.Plan = f.put("plan.json", p)
	f.open()
	again := func(node string, findings ...string) contract.ReverifyEnd {
		return must[contract.ReverifyEnd](f, (&Gate{Host: f.host}).Reverify, contract.ReverifyInput{Run: "r", Config: f.opened.Config, Node: node, Findings: findings})
	}
	require.Contains(t, again("tries", "F-2").Reason, "`grep -q repaired one/word` still fails")
	require.Equal(t, contract.OutcomeSuccess, f.work(f.node("repairs", 1)).Outcome)
	landed := f.land(f.node("repairs", 1))
	require.Equal(t, contract.NodeLanded, landed.State)

	end := again("tries", "F-2")
	require.Equal(t, []string{"F-2"}, end.Resolved)
	require.Equal(t, landed.Commit, end.Truth)
	require.Contains(t, end.Reason, "`grep -q repaired one/word` was red on the base")
	require.Contains(t, again("repairs", "F-1").Reason, "they prove nothing")
	require.NoDirExists(t, filepath.Join(f.host.StateDir, "throwaway", "r"))
}
