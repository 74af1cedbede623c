package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/grpc"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/provider"
	"mendflow/internal/provider/command"
)

// flow is a host with a repository and a plan, whose activities are called in the
// order in which the workflows call them.
type flow struct {
	t      *testing.T
	hub    string
	host   *Host
	in     contract.OpenRunInput
	opened contract.OpenRunResult
}

const flowPlan = `version: 1
id: p
goal: Repair the words.
base: main
findings:
  - {id: F-1, title: one is broken, severity: high, files: [{path: one/word}], evidence: [seen]}
  - {id: F-2, title: two is broken, severity: low, files: [{path: two/word}], evidence: [seen]}
  - {id: F-3, title: three is gone, severity: low, files: [{path: three/word}], evidence: [seen]}
intent: {must_not_touch: ["three/**"]}
nodes:
  - {id: one, findings: [F-1], write: ["one/**"], verify: [["grep", "-q", "repaired", "one/word"]]}
  - {id: two, findings: [F-2, F-3], depends_on: [one], write: ["two/**"]}
gate: {commands: ["! grep -rq broken one"], baseline: accept}
`

// newFlow prepares a host whose pool runs the shell script for every node.
func newFlow(t *testing.T, script string) *flow {
	t.Helper()
	f := &flow{t: t, hub: filepath.Join(t.TempDir(), "hub ü")}
	for _, name := range []string{"one", "two", "three"} {
		require.NoError(t, os.MkdirAll(filepath.Join(f.hub, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(f.hub, name, "word"), []byte("broken\n"), 0o644))
	}
	f.git("init", "-q", "-b", "main")
	f.git("add", "-A")
	f.git("-c", "user.name=u", "-c", "user.email=u@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "Base")
	state := t.TempDir()
	git, err := gitrepo.NewStore(gitrepo.Settings{StateDir: state, HostID: "h"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, git.Close()) })
	store, err := artifacts.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var providers provider.Registry
	providers.Register(contract.ProviderCommand, command.Provider{})
	f.host = &Host{
		ID: "h", StateDir: state, Git: git, Artifacts: store, Providers: &providers, Environ: os.Environ, Log: slog.New(slog.DiscardHandler),
	}
	require.NoError(t, f.host.MakeFolders())

	p, faults := plan.Parse("plan.yaml", []byte(flowPlan))
	require.NoError(t, faults.Err())
	pools, faults := dispatch.ParsePools("pools.yaml", fmt.Appendf(nil, "version: 1\npools:\n  - {id: sh, provider: command, command: [sh, -c, %q], env: [FLOW_TOKEN]}\n", script))
	require.NoError(t, faults.Err())
	f.in = contract.OpenRunInput{Run: "r", Repository: f.hub}
	f.in.Plan, f.in.PoolsFile = f.put("plan.json", p), f.put("pools.json", pools)
	return f
}

func (f *flow) git(args ...string) string {
	f.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", f.hub}, args...)...).CombinedOutput()
	require.NoError(f.t, err, string(out))
	return strings.TrimSpace(string(out))
}

func (f *flow) put(name string, value any) contract.Artifact {
	f.t.Helper()
	data, err := json.Marshal(value)
	require.NoError(f.t, err)
	ref, err := f.host.Artifacts.Put(f.t.Context(), name, data)
	require.NoError(f.t, err)
	return reference(ref)
}

// call executes one activity as a worker does.
func call[T any](f *flow, activity any, in any) (T, error) {
	f.t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.RegisterActivity(activity)
	var result T
	value, err := env.ExecuteActivity(activity, in)
	if err == nil && value.HasValue() {
		err = value.Get(&result)
	}
	return result, err
}

func must[T any](f *flow, activity any, in any) T {
	f.t.Helper()
	result, err := call[T](f, activity, in)
	require.NoError(f.t, err)
	return result
}

// nothing is a server that knows no search attributes.
type nothing struct{}

func (nothing) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{}, nil
}

func (f *flow) repository() *Repository {
	return &Repository{Host: f.host, Server: nothing{}, Namespace: "default", Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
}

func (f *flow) open() *flow {
	f.t.Helper()
	f.opened = must[contract.OpenRunResult](f, f.repository().OpenRun, f.in)
	return f
}

func (f *flow) node(id string, attempt int) contract.NodeInput {
	return contract.NodeInput{Run: "r", Drive: 1, Config: f.opened.Config, Node: id, Opening: 1, Attempt: attempt, Pool: "sh"}
}

func (f *flow) work(in contract.NodeInput) contract.WorkerEnd {
	f.t.Helper()
	a := &Attempt{Host: f.host, Now: time.Now, Jitter: func() float64 { return 0 }, Local: time.UTC}
	return must[contract.WorkerEnd](f, a.RunWorker, in)
}

func (f *flow) land(in contract.NodeInput) contract.LandEnd {
	f.t.Helper()
	return must[contract.LandEnd](f, (&Landing{Host: f.host}).LandWork, contract.LandInput{NodeInput: in})
}

func (f *flow) gate(purpose, commit string, base *contract.GateEnd) contract.GateEnd {
	f.t.Helper()
	return must[contract.GateEnd](f, (&Gate{Host: f.host}).RunGate, contract.GateInput{
		Run: "r", Config: f.opened.Config, Commit: commit, Purpose: purpose, Round: 1, Baseline: "accept", Base: base,
	})
}

// From the repository to the report, with real git and real programs.
func TestRunThroughItsActivities(t *testing.T) {
	t.Parallel()
	f := newFlow(t, `echo repaired > "$MENDFLOW_NODE/word"`).open()
	base := f.git("rev-parse", "main")
	require.Equal(t, base, f.opened.BaseCommit)
	require.Equal(t, 2, f.opened.Units)
	require.Equal(t, 1, f.opened.Gate)
	again := must[contract.OpenRunResult](f, f.repository().OpenRun, f.in)
	require.Equal(t, f.opened, again, "opening twice opens once")

	page := must[contract.LoadUnitsResult](f, f.repository().LoadUnits, contract.LoadUnitsInput{Config: f.opened.Config})
	require.Len(t, page.Units, 2)
	require.Zero(t, page.Next)
	require.Equal(t, []string{"F-2"}, page.Units[1].Findings, "the other finding is not ours to touch")

	red := f.gate("baseline", base, nil)
	require.Equal(t, "red", red.Verdict)
	require.NotEmpty(t, red.Failing)

	nodes := []contract.NodeRow{}
	items := []contract.ItemRow{}
	for _, id := range []string{"one", "two"} {
		end := f.work(f.node(id, 1))
		require.Equal(t, contract.OutcomeSuccess, end.Outcome, end.Reason)
		require.Equal(t, "h", end.Host)
		landed := f.land(f.node(id, 1))
		require.Equal(t, contract.OutcomeSuccess, landed.Outcome, landed.Reason)
		require.Equal(t, contract.NodeLanded, landed.State)
		require.Equal(t, landed.Commit, f.git("rev-parse", contract.TruthRef("r")))
		require.Equal(t, landed, f.land(f.node(id, 1)), "landing twice lands once")
		nodes = append(nodes, contract.NodeRow{ID: id, State: contract.NodeLanded, Opening: 1, Attempts: []contract.AttemptRow{{K: 1, Outcome: contract.OutcomeSuccess, Commit: landed.Commit}}})
		for _, item := range landed.Items {
			items = append(items, contract.ItemRow{Finding: item.Finding, Node: id, Status: item.Status})
		}
	}
	require.Equal(t, "repaired", f.git("show", contract.TruthRef("r")+":one/word"))
	require.Equal(t, "main", f.git("rev-parse", "--abbrev-ref", "HEAD"))
	require.Empty(t, f.git("status", "--porcelain"), "the user's checkout is as it was")

	green := f.gate("final", "", &red)
	require.Equal(t, "green", green.Verdict, green.Detail)

	// A second worker finds that the opening is on the truth and does nothing.
	late := f.work(f.node("one", 2))
	require.NotEmpty(t, late.Landed)

	record := contract.RunRecord{
		View:  contract.RunView{Run: "r", Repository: f.hub, Status: contract.RunCompleted, BaseCommit: base},
		Nodes: nodes, Items: items, Baseline: &red, Gate: &green,
	}
	data, err := json.Marshal(record)
	require.NoError(t, err)
	store := &Artifacts{Host: f.host}
	half := len(data) / 2
	var parts []contract.Artifact
	for i, part := range [][]byte{data[:half], data[half:]} {
		parts = append(parts, must[contract.Artifact](f, store.SaveState, contract.StateInput{Run: "r", Name: fmt.Sprintf("record-%d", i), Data: part}))
	}
	require.Equal(t, data[:half], must[[]byte](f, store.LoadState, parts[0]))
	written := must[contract.ReportEnd](f, (&Publication{Host: f.host}).WriteReport, contract.ReportInput{Run: "r", Config: f.opened.Config, State: parts})
	require.Equal(t, f.git("rev-parse", contract.TruthRef("r")), written.Head)
	require.Equal(t, written.Head, f.git("rev-parse", "mendflow/r"), "the branch follows")
	report, err := f.host.Artifacts.Get(t.Context(), written.JSON.URI)
	require.NoError(t, err)
	require.Contains(t, string(report), "dropped_by_intent", "every finding of the plan is accounted for")
	require.Contains(t, string(report), "F-3")
}

func TestWorkerThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFlow(t, `echo broken worse > one/word; echo "no way" >&2; exit 3`).open()
	end := f.work(f.node("one", 1))
	require.Equal(t, contract.OutcomeError, end.Outcome)
	require.Equal(t, contract.CauseWork, end.Cause)
	require.Contains(t, end.Tail, "no way")
	released := must[contract.ReleaseEnd](f, (&Landing{Host: f.host}).ReleaseWorktree, contract.ReleaseInput{NodeInput: f.node("one", 1)})
	require.NotEmpty(t, released.Salvage)
	require.Nil(t, released.Kept)
	require.Equal(t, f.opened.BaseCommit, f.git("rev-parse", contract.TruthRef("r")))
}

func TestWorkOutsideOfTheScopeDoesNotLand(t *testing.T) {
	t.Parallel()
	f := newFlow(t, `echo repaired > one/word; echo mine > three/word`).open()
	require.Equal(t, contract.OutcomeSuccess, f.work(f.node("one", 1)).Outcome)
	landed := f.land(f.node("one", 1))
	require.Equal(t, contract.OutcomeError, landed.Outcome)
	require.Equal(t, contract.CauseWork, landed.Cause)
	require.Contains(t, landed.Reason+landed.Tail, "three/word")
	require.NotEmpty(t, landed.Salvage)
	require.Equal(t, f.opened.BaseCommit, f.git("rev-parse", contract.TruthRef("r")))
}

func TestRedVerificationDoesNotLand(t *testing.T) {
	t.Parallel()
	f := newFlow(t, `echo nothing > one/word`).open()
	require.Equal(t, contract.OutcomeSuccess, f.work(f.node("one", 1)).Outcome)
	landed := f.land(f.node("one", 1))
	require.Equal(t, contract.OutcomeError, landed.Outcome)
	require.Contains(t, landed.Tail, "grep -q repaired")
	require.NotNil(t, landed.Verify, "its log is kept")
}

// The worker process is asked to stop while an attempt runs: it is interrupted
// and kept, and goes on in the same tree.
func TestStoppingHostKeepsWhatItsWorkersDid(t *testing.T) {
	t.Parallel()
	f := newFlow(t, `test -e one/half && echo repaired > one/word && exit 0; echo half > one/half; sleep 600`).open()
	interruptWhen(t, f.host, f.half)
	end := f.work(f.node("one", 1))
	require.Equal(t, contract.OutcomeInterrupted, end.Outcome, end.Reason)
	require.NotNil(t, end.Kept)
	released := must[contract.ReleaseEnd](f, (&Landing{Host: f.host}).ReleaseWorktree,
		contract.ReleaseInput{NodeInput: f.node("one", 1), Keep: true, Step: "worker"})
	require.NotNil(t, released.Kept)
	require.NotEmpty(t, released.Salvage, "kept work is salvaged as well")

	f.host.drain = drain{}
	next := f.node("one", 2)
	next.Kept = released.Kept
	end = f.work(next)
	require.Equal(t, contract.OutcomeSuccess, end.Outcome, end.Reason)
	require.Equal(t, contract.NodeLanded, f.land(next).State)
}

// interruptWhen interrupts a host beside the test, once a condition holds.
func interruptWhen(t *testing.T, host *Host, holds func() bool) {
	go func() {
		for t.Context().Err() == nil {
			if holds() {
				host.Interrupt()
				return
			}
			select {
			case <-t.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
}

// half reports whether the worker has begun to write, wherever its tree is.
func (f *flow) half() bool {
	found := false
	_ = filepath.WalkDir(f.host.StateDir, func(path string, _ os.DirEntry, _ error) error {
		found = found || strings.HasSuffix(path, "one/half")
		return nil
	})
	return found
}

func TestSecretsOfAPoolAreMaskedInWhatIsKept(t *testing.T) {
	t.Parallel()
	f := newFlow(t, `echo "token is $FLOW_TOKEN"; echo repaired > one/word`)
	f.host.Environ = func() []string { return append(os.Environ(), "FLOW_TOKEN=hush-hush-4711", "TEMPORAL_API_KEY=no") }
	f.open()
	end := f.work(f.node("one", 1))
	require.Equal(t, contract.OutcomeSuccess, end.Outcome, end.Reason)
	log, err := f.host.Artifacts.Get(t.Context(), end.Log.URI)
	require.NoError(t, err)
	require.Contains(t, string(log), "token is ")
	require.NotContains(t, string(log), "hush-hush-4711")
	require.NotContains(t, end.Log.Tail+end.Tail, "hush-hush-4711")
}

func TestUnusableInputsAreTypedErrors(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "true")
	for name, c := range map[string]struct {
		change func(*contract.OpenRunInput)
		want   string
	}{
		"no plan":       {func(in *contract.OpenRunInput) { in.Plan.URI = "nowhere.json" }, contract.ErrorArtifactMissing},
		"no base":       {func(in *contract.OpenRunInput) { in.Base = "no-such-revision" }, contract.ErrorBaseUnknown},
		"no repository": {func(in *contract.OpenRunInput) { in.Repository = filepath.Join(f.host.StateDir, "nothing") }, contract.ErrorRepositoryUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			in := f.in
			c.change(&in)
			_, err := call[contract.OpenRunResult](f, f.repository().OpenRun, in)
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.want, app.Type())
			require.NotContains(t, app.Message(), "\n")
		})
	}
}

func TestManyLongAnswersFitIntoAPayload(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü\x1b", 400)
	var items []contract.ItemResult
	for i := range 150 {
		items = append(items, contract.ItemResult{Finding: fmt.Sprintf("F-%d", i), Status: contract.ItemBlocked, Reason: long, Question: long})
	}
	bounded := boundItems(items)
	data, err := json.Marshal(bounded)
	require.NoError(t, err)
	require.LessOrEqual(t, len(data), itemBytes)
	require.Len(t, bounded, 150)
	require.Equal(t, "F-149", bounded[149].Finding)
	require.Equal(t, long, items[0].Reason, "the input is left alone")

	few := items[:2]
	require.Equal(t, few, boundItems(few), "what fits is not cut")
}
