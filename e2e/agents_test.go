package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
	"mendflow/internal/testkit/modelserver"
)

// agentsFolder names the folder in which `make test-agents` installed the real
// agent programs. Their model is scripted: what is tested is our plumbing and
// the programs' behaviour, not a model's skill.
const agentsFolder = "MENDFLOW_AGENTS"

// agentTour is the tour with agent programs at work on it.
type agentTour struct {
	*testkit.Lab
	dir    string
	server *modelserver.Server
	mended map[string]map[string]string // by node: files as they should be
	mu     sync.Mutex
	wall   func(modelserver.Ask) *modelserver.Turn // answers first; nil: nothing
}

// agentPool is a pool of a real program.
type agentPool struct {
	id, provider, env, path, options string
}

func newAgentTour(t *testing.T, pools ...agentPool) *agentTour {
	t.Helper()
	programs := os.Getenv(agentsFolder)
	if programs == "" {
		t.Skipf("the real programs are tried by `make test-agents` (%s is not set)", agentsFolder)
	}
	a := &agentTour{dir: t.TempDir()}
	out, err := exec.Command(filepath.Join(testkit.Root(), "examples/tour/prepare"), filepath.Join(a.dir, "tour")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	a.mend(t)
	a.server = modelserver.Start(a.answer)
	t.Cleanup(a.server.Close)

	var file strings.Builder
	file.WriteString("version: 1\npools:\n")
	for _, p := range pools {
		program := filepath.Join(programs, "node_modules", ".bin", p.provider)
		if p.provider != "openai" {
			if _, err := os.Stat(program); err != nil {
				t.Skipf("%s is not installed in %s", p.provider, programs)
			}
			p.options += fmt.Sprintf(", program: %q", program)
		}
		fmt.Fprintf(&file, "  - {id: %s, provider: %s, model: model-x, max_concurrent: 1, env: [%s], options: {base_url: %q%s}}\n",
			p.id, p.provider, p.env, a.server.URL+p.path, p.options)
	}
	a.Lab = &testkit.Lab{Dir: a.dir, Pools: filepath.Join(a.dir, "pools.yaml")}
	require.NoError(t, os.WriteFile(a.Lab.Pools, []byte(file.String()), 0o600))
	t.Cleanup(func() {
		if t.Failed() {
			a.tell(t)
		}
		require.NoError(t, a.Close())
	})
	a.Lab.Server, err = testkit.StartServer(a.dir, false)
	require.NoError(t, err)
	a.Host, err = testkit.StartHost(testkit.HostOptions{
		Address: a.Lab.Server.Address, State: filepath.Join(a.dir, "state"), Pools: a.Lab.Pools,
		Env: []string{"ANTHROPIC_API_KEY=sk-fake0000", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-fake0000", "OPENAI_API_KEY=sk-fake0000", "GEMINI_API_KEY=sk-fake0000"},
	})
	require.NoError(t, err)
	a.Client, err = testkit.NewClient(a.Lab.Server.Address, a.Host.State)
	require.NoError(t, err)
	return a
}

// mend lets the tour's own worker repair a copy, to know what is right.
func (a *agentTour) mend(t *testing.T) {
	t.Helper()
	tour, copied := filepath.Join(a.dir, "tour"), filepath.Join(a.dir, "mended")
	require.NoError(t, os.CopyFS(copied, os.DirFS(filepath.Join(tour, "repo"))))
	a.mended = map[string]map[string]string{}
	for _, node := range []string{"temp", "list", "text", "store", "format", "report"} {
		worker := exec.Command("sh", filepath.Join(tour, "worker.sh"))
		worker.Env = append(os.Environ(), "MENDFLOW_WORKTREE="+copied, "MENDFLOW_NODE="+node, "MENDFLOW_RESULT="+filepath.Join(a.dir, node+".json"))
		out, err := worker.CombinedOutput()
		require.NoError(t, err, "%s", out)
		a.mended[node] = map[string]string{}
		files := []string{node + "/" + node + ".go"}
		if node == "report" {
			files = append(files, "README.md")
		}
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(copied, name))
			require.NoError(t, err)
			a.mended[node][name] = string(data)
		}
	}
}

var taskOf = regexp.MustCompile(`# Task ([a-z]+)`)

// answer is the model: a program with a shell runs the tour's worker there, one
// without writes the files and hands in its result.
func (a *agentTour) answer(ask modelserver.Ask) modelserver.Turn {
	a.mu.Lock()
	wall := a.wall
	a.mu.Unlock()
	if wall != nil {
		if turn := wall(ask); turn != nil {
			return *turn
		}
	}
	switch {
	case slices.Contains(ask.Tools, "finish"):
		return a.byTools(ask)
	case ask.Shell == "":
		return modelserver.Turn{Text: "A title"}
	case ask.Results == 0:
		return modelserver.Turn{Shell: "sh '" + filepath.Join(a.dir, "tour", "worker.sh") + "'"}
	}
	return modelserver.Turn{Text: "The repair is done."}
}

func (a *agentTour) byTools(ask modelserver.Ask) modelserver.Turn {
	m := taskOf.FindStringSubmatch(ask.Prompt)
	if m == nil {
		return modelserver.Turn{Text: "What task?"}
	}
	names := make([]string, 0, 2)
	for name := range a.mended[m[1]] {
		names = append(names, name)
	}
	slices.Sort(names)
	if ask.Results < len(names) {
		name := names[ask.Results]
		return modelserver.Turn{Tool: "write_file", Input: map[string]any{"path": name, "content": a.mended[m[1]][name]}}
	}
	data, err := os.ReadFile(filepath.Join(a.dir, m[1]+".json"))
	var result map[string]any
	if err == nil {
		err = json.Unmarshal(data, &result)
	}
	if err != nil {
		return modelserver.Turn{Text: err.Error()}
	}
	return modelserver.Turn{Tool: "finish", Input: result}
}

func (a *agentTour) start(t *testing.T, run string) {
	t.Helper()
	tour := filepath.Join(a.dir, "tour")
	a.Client.Start(t, run, filepath.Join(tour, "repo"), filepath.Join(tour, "plan.yaml"), a.Lab.Pools)
}

// green waits for the run's end and returns how many nodes each pool landed.
func (a *agentTour) green(t *testing.T, run string) map[string]int {
	t.Helper()
	v := a.Client.AwaitClosed(t, run)
	require.Equal(t, contract.RunCompleted, v.Status, "%+v", v)
	landed := map[string]int{}
	for _, row := range a.Client.Nodes(t, run) {
		require.Equal(t, contract.NodeLanded, row.State, row.ID)
		landed[row.Attempts[len(row.Attempts)-1].Pool]++
	}
	return landed
}

// tell shows what a failed test needs.
func (a *agentTour) tell(t *testing.T) {
	for i, ask := range a.server.Asked() {
		t.Logf("request %d: %s results=%d shell=%q task=%v", i, ask.Wire, ask.Results, ask.Shell, taskOf.FindString(ask.Prompt))
	}
	if a.Host != nil {
		t.Logf("--- the worker's log\n%s", a.Host.Output())
	}
	logs, _ := filepath.Glob(filepath.Join(a.dir, "state", "artifacts", "runs", "*", "nodes", "*", "*", "worker.log"))
	for _, name := range logs {
		data, _ := os.ReadFile(name)
		t.Logf("--- %s\n%.3000s", name, data)
	}
}

func TestRealAgentsRepairTheTourSideBySide(t *testing.T) {
	a := newAgentTour(t,
		agentPool{"claude", "claude", "ANTHROPIC_API_KEY", "", ""},
		agentPool{"codex", "codex", "OPENAI_API_KEY", "/v1", ""},
		agentPool{"openai", "openai", "OPENAI_API_KEY", "/v1", ""},
	)
	run := testkit.RunID(t)
	a.start(t, run)
	landed := a.green(t, run)
	t.Logf("landed by pool: %v", landed)
	for _, pool := range []string{"claude", "codex", "openai"} {
		require.NotZero(t, landed[pool], "%s had a part in it: %v", pool, landed)
	}
}

func TestEachRealAgentRepairsTheTourAlone(t *testing.T) {
	for _, p := range []agentPool{
		{"claude", "claude", "ANTHROPIC_API_KEY", "", ""},
		{"codex", "codex", "OPENAI_API_KEY", "/v1", ""},
		{"opencode", "opencode", "OPENAI_API_KEY", "/v1", ""},
		{"gemini", "gemini", "GEMINI_API_KEY", "", ""},
		{"qwen", "qwen", "OPENAI_API_KEY", "/v1", ""},
		{"openai", "openai", "OPENAI_API_KEY", "/v1", ""},
	} {
		t.Run(p.id, func(t *testing.T) {
			a := newAgentTour(t, p)
			run := testkit.RunID(t)
			a.start(t, run)
			require.Equal(t, map[string]int{p.id: 6}, a.green(t, run))
		})
	}
}

// A subscriber's limit in the middle of claude's work: codex takes over, and
// claude's kept tree is continued in the same session after the reset.
func TestRealClaudeComesBackAfterItsLimit(t *testing.T) {
	a := newAgentTour(t,
		agentPool{"claude", "claude", "CLAUDE_CODE_OAUTH_TOKEN", "", ""},
		agentPool{"codex", "codex", "OPENAI_API_KEY", "/v1", ""},
	)
	plan := filepath.Join(a.dir, "tour", "plan.yaml")
	f, err := os.OpenFile(plan, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("policy: {resume_margin: 0s, resume_jitter: 0s}\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())

	var reset time.Time
	refused := 0
	a.wall = func(ask modelserver.Ask) *modelserver.Turn {
		if ask.Wire != modelserver.Anthropic || ask.Shell == "" {
			return nil
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		switch {
		case reset.IsZero() && ask.Results == 0:
			return &modelserver.Turn{Shell: "ls"} // some work before the limit
		case reset.IsZero():
			reset = time.Now().Add(20 * time.Second).Truncate(time.Second)
		case time.Now().After(reset):
			return nil
		}
		refused++
		return &modelserver.Turn{Refuse: subscriberLimit(reset)}
	}
	run := testkit.RunID(t)
	a.start(t, run)
	landed := a.green(t, run)
	t.Logf("landed by pool: %v, refused %d times", landed, refused)
	require.NotZero(t, landed["codex"])
	require.NotZero(t, landed["claude"])
	require.Equal(t, 1, refused, "nobody asks again before the reset")
	for _, row := range a.Client.Nodes(t, run) {
		first := row.Attempts[0]
		if first.Outcome != contract.OutcomeRateLimited {
			continue
		}
		require.Len(t, row.Attempts, 2)
		require.Equal(t, "claude", row.Attempts[1].Pool)
	}
	require.Equal(t, 1, a.continued(t), "the session went on with its history")
}

// continued counts the sessions of claude that have two tasks in their history.
func (a *agentTour) continued(t *testing.T) int {
	t.Helper()
	n := 0
	for _, ask := range a.server.Asked() {
		if ask.Wire == modelserver.Anthropic && ask.Results == 1 && strings.Count(string(ask.Body), "# Task ") == 2 {
			n++
		}
	}
	return n
}

// subscriberLimit is how the API tells a subscriber of a limit that is reached.
func subscriberLimit(reset time.Time) *modelserver.Refusal {
	epoch := strconv.FormatInt(reset.Unix(), 10)
	return &modelserver.Refusal{
		Status: http.StatusTooManyRequests,
		Headers: map[string]string{
			"anthropic-ratelimit-unified-status":                  "rejected",
			"anthropic-ratelimit-unified-reset":                   epoch,
			"anthropic-ratelimit-unified-representative-claim":    "five_hour",
			"anthropic-ratelimit-unified-5h-status":               "rejected",
			"anthropic-ratelimit-unified-5h-reset":                epoch,
			"anthropic-ratelimit-unified-5h-utilization":          "1.0",
			"anthropic-ratelimit-unified-overage-status":          "rejected",
			"anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
		},
		Body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`,
	}
}
