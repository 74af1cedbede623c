package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// Words of real providers. {epoch} stands for the reset in Unix seconds.
const (
	saysReset   = "Claude AI usage limit reached|{epoch}"
	saysLimit   = "API Error: Rate limit reached"
	saysCredit  = "Spending cap reached resets 8am"
	saysModel   = "You have exhausted your daily quota on this model."
	saysUnknown = "worker exit: usage quota policy violation (code Q-17)"
	saysOwn     = "error: the flux capacitor is empty"
	saysTooLong = "API Error: 413 Payload Too Large (previous attempt: 429 Too Many Requests, retry in 20s)"
)

// wallProgram stands between a pool and its scripted worker. The worker works;
// while the wall DIR stands it does not deliver and fails with the words of the
// wall: for good (text), for some nodes (nodes), or until a window that the
// first one opened is reset (resets_in), which may turn out wrong (stays). With
// counts the workers count how many of them are alive, under a lock.
const wallProgram = `#!/bin/sh
wall=$1
shift
count() {
	until mkdir "$wall/lock" 2>/dev/null; do sleep 0.02; done
	n=$(($(cat "$wall/alive" 2>/dev/null || echo 0) + $1))
	echo $n >"$wall/alive"
	[ $n -le "$(cat "$wall/most" 2>/dev/null || echo 0)" ] || echo $n >"$wall/most"
	rmdir "$wall/lock"
}
if [ -f "$wall/counts" ]; then
	count 1
	"$@"
	code=$?
	count -1
	exit $code
fi
"$@" || exit $?
[ -f "$wall/text" ] || exit 0
if [ -f "$wall/nodes" ]; then
	grep -qxF -- "$MENDFLOW_NODE" "$wall/nodes" || exit 0
fi
until=0
if [ -f "$wall/resets_in" ]; then
	now=$(date +%s)
	echo $((now + $(cat "$wall/resets_in"))) >"$wall/until.$$"
	ln "$wall/until.$$" "$wall/until" 2>/dev/null
	rm -f "$wall/until.$$"
	until=$(cat "$wall/until")
	[ "$now" -lt "$until" ] || [ -f "$wall/stays" ] || exit 0
fi
rm -f "$MENDFLOW_RESULT"
echo "$MENDFLOW_RUN $MENDFLOW_NODE $MENDFLOW_ATTEMPT" >>"$wall/hits"
sed "s/{epoch}/$until/" "$wall/text" >&2
exit 1
`

// quotaPool is a pool behind a wall of its own, which is open at first.
type quotaPool struct {
	ID      string
	Account string // empty: the id
	Model   string
	Tier    string
	Max     int // 0: 3
	HostMax int // what the host allows; 0: as Max
	Rank    int
	Metered bool    // the cost is unknown, not free
	Price   float64 // USD per million tokens
	Speaks  string
}

// quotaLab is a lab whose pools have walls.
type quotaLab struct {
	*testkit.Lab
	program string
	pools   []quotaPool
}

// newQuotaLab brings up a server and a host that serves the pools.
func newQuotaLab(t *testing.T, durable bool, pools ...quotaPool) *quotaLab {
	t.Helper()
	dir := t.TempDir()
	lab := &quotaLab{Lab: &testkit.Lab{Dir: dir, Pools: filepath.Join(dir, "pools.yaml")}, pools: pools}
	t.Cleanup(func() {
		if t.Failed() && lab.Host != nil {
			t.Logf("--- the worker's log\n%s", lab.Host.Output())
		}
		require.NoError(t, lab.Close())
	})
	var err error
	lab.Control, err = testkit.NewControl(filepath.Join(dir, "control"))
	require.NoError(t, err)
	lab.program = filepath.Join(dir, "wall.sh")
	require.NoError(t, os.WriteFile(lab.program, []byte(wallProgram), 0o755))
	lab.writePools(t, lab.Pools, true, pools...)
	lab.Server, err = testkit.StartServer(dir, durable)
	require.NoError(t, err)
	lab.Host, err = testkit.StartHost(testkit.HostOptions{Address: lab.Server.Address, State: filepath.Join(dir, "state", "mendflow"), Pools: lab.Pools})
	require.NoError(t, err)
	lab.Client, err = testkit.NewClient(lab.Server.Address, lab.Host.State)
	require.NoError(t, err)
	return lab
}

// writePools writes a pools file, the host's or a run's.
func (l *quotaLab) writePools(t *testing.T, path string, host bool, pools ...quotaPool) {
	t.Helper()
	var list []map[string]any
	for _, p := range pools {
		most := max(p.Max, 1)
		if p.Max == 0 {
			most = 3
		}
		if host {
			most = max(most, p.HostMax)
		}
		wall := l.wall(t, p.ID)
		pool := map[string]any{
			"id": p.ID, "provider": "command", "max_concurrent": most, "rank": p.Rank,
			"command":  append([]string{l.program, wall.dir}, l.Control.Command()...),
			"writable": []string{l.Control.Dir},
			"options":  map[string]string{"speaks": p.Speaks},
		}
		if p.Speaks == "" {
			pool["options"] = map[string]string{}
		}
		for key, value := range map[string]string{"account": p.Account, "model": p.Model, "tier": p.Tier} {
			if value != "" {
				pool[key] = value
			}
		}
		if !p.Metered {
			pool["cost"] = map[string]any{"input": p.Price, "output": p.Price}
		}
		list = append(list, pool)
	}
	doc := map[string]any{"version": 1, "pools": list, "limit_patterns": []map[string]any{
		{"match": "flux capacitor is empty", "outcome": "rate_limited", "reset": "15s"},
	}}
	data, err := json.MarshalIndent(doc, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o644))
}

// runPools writes a pools file of some of the lab's pools and returns its path.
func (l *quotaLab) runPools(t *testing.T, ids ...string) string {
	t.Helper()
	var some []quotaPool
	for _, id := range ids {
		at := slices.IndexFunc(l.pools, func(p quotaPool) bool { return p.ID == id })
		require.GreaterOrEqual(t, at, 0, id)
		some = append(some, l.pools[at])
	}
	path := filepath.Join(t.TempDir(), "pools.yaml")
	l.writePools(t, path, false, some...)
	return path
}

// start starts a run of the plan on some of the lab's pools.
func (l *quotaLab) start(t *testing.T, p testkit.Plan, pools ...string) *testkit.Case {
	t.Helper()
	policy := map[string]any{"resume_margin": "1s", "resume_jitter": "1s"}
	for key, value := range p.Policy {
		policy[key] = value
	}
	p.Policy = policy
	c := testkit.NewCase(t, testkit.RunID(t), p)
	l.Client.Start(t, c.Run, c.Repo.URL, c.Path, l.runPools(t, pools...))
	return c
}

// wall is what keeps the workers of a pool from delivering.
type wall struct{ dir string }

func (l *quotaLab) wall(t *testing.T, pool string) wall {
	t.Helper()
	w := wall{filepath.Join(l.Control.Dir, "walls", pool)}
	require.NoError(t, os.MkdirAll(w.dir, 0o755))
	return w
}

// says makes the pool's workers fail with a text until the wall opens.
func (w wall) says(t *testing.T, text string) {
	t.Helper()
	w.put(t, "text", text)
}

// resets makes them fail until a while after the first of them did.
func (w wall) resets(t *testing.T, text string, in time.Duration) {
	t.Helper()
	w.put(t, "resets_in", strconv.Itoa(int(in/time.Second)))
	w.says(t, text)
}

// only keeps the wall to some nodes.
func (w wall) only(t *testing.T, nodes ...string) {
	t.Helper()
	w.put(t, "nodes", strings.Join(nodes, "\n"))
}

func (w wall) opens(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(w.dir, "text")))
}

// put writes a file in one step: workers read it at any moment.
func (w wall) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(t, os.WriteFile(path+".new", []byte(text+"\n"), 0o644))
	require.NoError(t, os.Rename(path+".new", path))
}

// reset is the instant that the wall stated.
func (w wall) reset(t *testing.T) time.Time {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "until"))
	require.NoError(t, err)
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	require.NoError(t, err)
	return time.Unix(seconds, 0)
}

// hits counts the workers that ran into the wall.
func (w wall) hits() int {
	data, err := os.ReadFile(filepath.Join(w.dir, "hits"))
	if err != nil {
		return 0 // nobody did
	}
	return strings.Count(string(data), "\n")
}

// most is the largest number of workers that were alive at once.
func (w wall) most(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "most"))
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	return n
}

// nodesOf are nodes without dependencies.
func nodesOf(ids ...string) testkit.Plan {
	var p testkit.Plan
	for _, id := range ids {
		p.Nodes = append(p.Nodes, testkit.Node{ID: id})
	}
	return p
}

// awaitHold waits until a run is paused by a hold of the kind and returns it.
func (l *quotaLab) awaitHold(t *testing.T, run string, kind contract.HoldKind) contract.Hold {
	t.Helper()
	var hold contract.Hold
	l.Client.Await(t, run, "run "+run+" is held by "+string(kind), func(v contract.RunView) bool {
		at := slices.IndexFunc(v.Holds, func(h contract.Hold) bool { return h.Kind == kind })
		if v.Status != contract.RunPaused || at < 0 {
			return false
		}
		hold = v.Holds[at]
		return true
	})
	return hold
}

// status is what the command line says about a run.
func (l *quotaLab) status(t *testing.T, run string) contract.RunView {
	t.Helper()
	var v contract.RunView
	require.NoError(t, json.Unmarshal([]byte(l.Client.OK(t, "status", run, "--json")), &v))
	return v
}

// explain is what the command line says about a node.
func (l *quotaLab) explain(t *testing.T, run, node string) contract.NodeView {
	t.Helper()
	var v contract.NodeView
	require.NoError(t, json.Unmarshal([]byte(l.Client.OK(t, "explain", run, node, "--json")), &v))
	return v
}

// account is what the command line says about an account.
func (l *quotaLab) account(t *testing.T, account string) contract.BrokerStatus {
	t.Helper()
	var s contract.BrokerStatus
	require.NoError(t, json.Unmarshal([]byte(l.Client.OK(t, "pools", "status", account, "--json")), &s))
	return s
}

// requireGreen waits for a green end in which every node has one charged attempt.
func (l *quotaLab) requireGreen(t *testing.T, c *testkit.Case) map[string]contract.NodeRow {
	t.Helper()
	v := l.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, l.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	requireAllLanded(t, l.Lab, c)
	rows := l.Client.Nodes(t, c.Run)
	for id, row := range rows {
		require.Len(t, outcomes(row, true), 1, "%s: a limit is nobody's fault: %+v", id, row.Attempts)
	}
	return rows
}

// outcomes of a node's attempts, the charged or the others.
func outcomes(row contract.NodeRow, charged bool) []contract.Outcome {
	var all []contract.Outcome
	for _, a := range row.Attempts {
		if a.Charged == charged {
			all = append(all, a.Outcome)
		}
	}
	return all
}

// firstStart is when a run's first worker at or after an instant recorded that it began.
func (l *quotaLab) firstStart(t *testing.T, run string, from time.Time) time.Time {
	t.Helper()
	for _, e := range l.Control.Events(t, run) {
		if e.Kind == "start" && !e.At.Before(from) {
			return e.At
		}
	}
	t.Fatalf("no worker of %s began after %v", run, from)
	return time.Time{}
}
