package testkit

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Node is a node of a test's plan.
type Node struct {
	ID       string
	After    []string // dependencies
	Write    []string // empty: the node's own folder, ID/**
	Findings []string // empty: F-ID
	Verify   []string // shell lines; empty: the node's work.txt holds a mark
	Shared   bool     // shared_append
}

// Plan is a test's plan. The zero value of each field but Nodes is usable.
type Plan struct {
	ID     string // empty: t
	Nodes  []Node
	Gate   []string       // shell lines; empty: `true`
	Policy map[string]any // policy section
	More   map[string]any // further sections
}

// Files are the files that the plan's repository needs: a todo per node.
func (p Plan) Files() map[string]string {
	files := map[string]string{"README.md": "A repository with work to do.\n"}
	for _, n := range p.Nodes {
		files[n.ID+"/work.txt"] = "todo\n"
	}
	return files
}

// Write writes the plan to a file (JSON, which is YAML too).
func (p Plan) Write(t testing.TB, path string) string {
	t.Helper()
	var nodes, findings []map[string]any
	for _, n := range p.Nodes {
		node, found := n.sections()
		nodes, findings = append(nodes, node), append(findings, found...)
	}
	gate := p.Gate
	if len(gate) == 0 {
		gate = []string{"true"}
	}
	doc := map[string]any{
		"version": 1, "id": p.ID, "goal": "Do the work.", "findings": findings, "nodes": nodes,
		"gate": map[string]any{"commands": gate},
	}
	if p.ID == "" {
		doc["id"] = "t"
	}
	if p.Policy != nil {
		doc["policy"] = p.Policy
	}
	for key, value := range p.More {
		doc[key] = value
	}
	require.NoError(t, writeJSON(path, doc))
	return path
}

func (n Node) sections() (node map[string]any, findings []map[string]any) {
	ids := n.Findings
	if len(ids) == 0 {
		ids = []string{"F-" + n.ID}
	}
	for _, id := range ids {
		findings = append(findings, map[string]any{
			"id": id, "title": "Work to do in " + n.ID, "severity": "medium", "lens": "correctness", "confidence": "high",
			"files": []map[string]any{{"path": n.ID + "/work.txt"}}, "evidence": []string{"it says todo"},
		})
	}
	write, verify := n.Write, n.Verify
	if len(write) == 0 {
		write = []string{n.ID + "/**"}
	}
	if len(verify) == 0 {
		verify = []string{"grep -q '^mark ' " + n.ID + "/work.txt"}
	}
	node = map[string]any{"id": n.ID, "findings": ids, "write": write, "verify": verify, "depends_on": n.After, "shared_append": n.Shared}
	if n.After == nil {
		node["depends_on"] = []string{}
	}
	return node, findings
}

// Pool is a pool whose worker is the scripted one, or a host pool.
type Pool struct {
	ID      string
	Account string // empty: the id
	Max     int    // 0: 3
	Rank    int
	Quiet   string // set: a host pool whose claims may be quiet for so long
}

// WritePools writes a pools file.
func WritePools(path string, control Control, pools ...Pool) error {
	var list []map[string]any
	for _, p := range pools {
		pool := map[string]any{
			"id": p.ID, "provider": "command", "command": control.Command(), "max_concurrent": max(p.Max, 1), "rank": p.Rank,
			"cost": map[string]any{"input": 0, "output": 0}, "writable": []string{control.Dir},
		}
		if p.Max == 0 {
			pool["max_concurrent"] = 3
		}
		if p.Account != "" {
			pool["account"] = p.Account
		}
		if p.Quiet != "" {
			pool["provider"], pool["options"] = "host", map[string]string{"quiet": p.Quiet}
			delete(pool, "command")
			delete(pool, "writable")
		}
		list = append(list, pool)
	}
	return writeJSON(path, map[string]any{"version": 1, "pools": list})
}

func writeJSON(path string, doc any) error {
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
