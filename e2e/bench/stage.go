package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// stage is where one measurement runs: a folder and, once up, a server with its
// database in a file there and one host worker.
type stage struct {
	options
	dir    string
	server *testkit.Server
	host   *testkit.Host
	client *testkit.Client
	pools  string
	hubs   int
}

// pool is how the attempts of a measurement run.
type pool struct {
	slots  int
	script string // for sh -c, in the worktree; $i is the node's number and $f its file
}

// editing is the worker of most figures: the yardstick's edit.
func editing(slots int) pool { return pool{slots, `echo "edited $i" >> "$f"`} }

// sleeping edits after some time.
func sleeping(slots int, seconds string) pool {
	return pool{slots, "sleep " + seconds + `; echo "edited $i" >> "$f"`}
}

// up starts server and host; down ends them.
func (s *stage) up(p pool, env ...string) error {
	s.pools = filepath.Join(s.dir, "pools.yaml")
	if err := os.Mkdir(s.marks(), 0o700); err != nil {
		return err
	}
	script := `i=${MENDFLOW_NODE#n}; f=$(printf 'src/d%03d/f%06d.txt' $((i/100)) "$i"); ` + p.script
	data, err := json.Marshal(map[string]any{"version": 1, "pools": []any{map[string]any{
		"id": "shell", "provider": "command", "command": []string{"sh", "-c", script}, "max_concurrent": p.slots,
		"cost": map[string]any{"input": 0, "output": 0}, "writable": []string{s.marks()},
	}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.pools, data, 0o600); err != nil {
		return err
	}
	if s.server, err = testkit.StartServer(s.dir, true); err != nil {
		return err
	}
	s.host, err = testkit.StartHost(testkit.HostOptions{Address: s.server.Address, State: filepath.Join(s.dir, "state"), Pools: s.pools, Env: env})
	if err != nil {
		return err
	}
	s.client, err = testkit.NewClient(s.server.Address, s.host.State)
	return err
}

func (s *stage) down() {
	if s.client != nil {
		s.client.Close()
	}
	for _, p := range []interface {
		Alive() bool
		Kill()
	}{s.host, s.server} {
		if p.Alive() {
			p.Kill()
		}
	}
}

// starter is a command of the starter program.
func (s *stage) starter(args ...string) program {
	return command(testkit.Program("starter"), append(args, "--address", s.server.Address, "--state-dir", s.host.State)...)
}

// hub makes a fresh copy of a seed repository, so that no run has seen it.
func (s *stage) hub(seed string) (string, error) {
	s.hubs++
	dir := filepath.Join(s.dir, "hub-"+strconv.Itoa(s.hubs))
	return dir, command("cp", "-a", seed, dir).run()
}

// start starts a run of a plan on a fresh copy of the seed and returns its id.
func (s *stage) start(seed string, p plan, more ...string) (string, error) {
	hub, err := s.hub(seed)
	if err != nil {
		return "", err
	}
	run := "r" + strconv.Itoa(s.hubs)
	path := filepath.Join(s.dir, run+".json")
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", err
	}
	args := append([]string{"start", "--id", run, "--repo", hub, "--plan", path, "--pools", s.pools, "--json"}, more...)
	return run, s.starter(args...).run()
}

// span is when a run was under way.
type span struct{ started, closed time.Time }

func (s span) elapsed() time.Duration { return s.closed.Sub(s.started) }

// green runs a plan to its green end and returns how long it was under way, by
// the server's clock: everything from opening the repository to the report.
func (s *stage) green(ctx context.Context, seed string, p plan) (string, span, error) {
	run, err := s.start(seed, p, "--wait")
	if err != nil {
		return run, span{}, err
	}
	described, err := s.client.Server().DescribeWorkflowExecution(ctx, contract.RemediationID(run), "")
	if err != nil {
		return run, span{}, fmt.Errorf("describe run: %w", err)
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetCloseTime() == nil {
		return run, span{}, errors.New("describe run: it has not closed")
	}
	out, err := command("git", "-C", filepath.Join(s.dir, "hub-"+strconv.Itoa(s.hubs)), "rev-list", "--count", "main.."+contract.TruthRef(run)).output()
	if err == nil && out != strconv.Itoa(len(p.Nodes))+"\n" {
		err = fmt.Errorf("count landings: %q of %d", out, len(p.Nodes))
	}
	return run, span{info.GetStartTime().AsTime(), info.GetCloseTime().AsTime()}, err
}

// plan is a plan file of nodes n0, n1, …, each editing its own file.
type plan struct {
	Version  int            `json:"version"`
	ID       string         `json:"id"`
	Findings []finding      `json:"findings"`
	Nodes    []node         `json:"nodes"`
	Gate     map[string]any `json:"gate"`
}

type finding struct {
	ID       string              `json:"id"`
	Title    string              `json:"title"`
	Severity string              `json:"severity"`
	Lens     string              `json:"lens"`
	Files    []map[string]string `json:"files"`
}

type node struct {
	ID        string   `json:"id"`
	Findings  []string `json:"findings"`
	DependsOn []string `json:"depends_on,omitempty"`
	Write     []string `json:"write"`
}

// independent is a plan of nodes that wait for nothing.
func independent(nodes int) plan { return chained(slicesOf(1, nodes)...) }

func slicesOf(value, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = value
	}
	return all
}

// chained is a plan of chains of the given lengths.
func chained(lengths ...int) plan {
	p := plan{Version: 1, ID: "bench", Gate: map[string]any{"commands": "none"}}
	for _, length := range lengths {
		for k := range length {
			i := len(p.Nodes)
			n := node{ID: "n" + strconv.Itoa(i), Findings: []string{"F" + strconv.Itoa(i)}, Write: []string{sourceFile(i)}}
			if k > 0 {
				n.DependsOn = []string{p.Nodes[i-1].ID}
			}
			p.Nodes = append(p.Nodes, n)
			p.Findings = append(p.Findings, finding{
				ID: n.Findings[0], Title: "Edit file " + strconv.Itoa(i), Severity: "medium", Lens: "correctness",
				Files: []map[string]string{{"path": sourceFile(i)}},
			})
		}
	}
	return p
}
