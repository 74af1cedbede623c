package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// object is a JSON object as scripts of users see it.
type object map[string]any

func parse(t *testing.T, text string) object {
	t.Helper()
	var o object
	require.NoError(t, json.Unmarshal([]byte(text), &o), text)
	return o
}

func lines(t *testing.T, text string) []object {
	t.Helper()
	var list []object
	for line := range strings.Lines(text) {
		list = append(list, parse(t, line))
	}
	return list
}

func requireKeys(t *testing.T, what string, o object, keys ...string) {
	t.Helper()
	for _, key := range keys {
		require.Contains(t, o, key, "%s lacks %s", what, key)
	}
}

// TestJSONOutputHasTheFieldsOfTheInterface compares what the commands print
// with the names that are a contract with users' scripts.
func TestJSONOutputHasTheFieldsOfTheInterface(t *testing.T) {
	t.Parallel()
	lab := theLab(t)
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta", After: []string{"alpha"}}}})
	lab.Control.Script(t, c.Run, "alpha", "tell working", "wait go", "mark alpha/work.txt", "result resolved")
	lab.Start(t, c)
	lab.Control.Await(t, c.Run, "working")

	open := parse(t, lab.Client.OK(t, "status", c.Run, "--json"))
	requireStatus(t, open)
	require.Equal(t, "implementing", open["status"])
	require.Empty(t, open["holds"])
	require.Equal(t, c.Repo.Dir, open["repository"])
	require.Equal(t, "mendflow/"+c.Run, open["branch"])
	require.EqualValues(t, 2, object(open["nodes"].(map[string]any))["total"])
	rows := lines(t, lab.Client.OK(t, "nodes", c.Run, "--json"))
	require.Len(t, rows, 2)
	for _, row := range rows {
		requireKeys(t, "a node", row, "id", "level", "state", "opening", "attempts")
	}
	require.Equal(t, []any{}, rows[1]["attempts"], "no attempts are an empty list")

	require.NoError(t, lab.Control.Tell(c.Run, "go"))
	lab.Client.AwaitClosed(t, c.Run)
	closed := parse(t, lab.Client.OK(t, "status", c.Run, "--json"))
	requireStatus(t, closed)
	requireKeys(t, "a closed run", closed, "closed_at", "report")
	require.Equal(t, "completed", closed["status"])
	require.Equal(t, object{"kind": "executed", "verdict": "green"}, only(closed["gate"], "kind", "verdict"))
	require.Equal(t, c.Repo.Git(t, "rev-parse", "refs/mendflow/run/"+c.Run), closed["head_commit"])
	require.Equal(t, c.Repo.Git(t, "rev-parse", "main"), closed["base_commit"])
	rows = lines(t, lab.Client.OK(t, "nodes", c.Run, "--json"))
	attempts, ok := rows[0]["attempts"].([]any)
	require.True(t, ok)
	require.Len(t, attempts, 1)
	attempt := object(attempts[0].(map[string]any))
	requireKeys(t, "an attempt", attempt, "k", "charged", "pool", "outcome", "started_at", "seconds", "commit", "verified_on", "landed_on", "log")
	_, err := time.Parse(time.RFC3339Nano, attempt["started_at"].(string))
	require.NoError(t, err)

	var found object
	testkit.Eventually(t, "the index of runs has "+c.Run, func() bool {
		for _, row := range lines(t, lab.Client.OK(t, "runs", "--json")) {
			if row["run"] == c.Run && row["status"] == "completed" {
				found = row
			}
		}
		return found != nil
	})
	requireKeys(t, "a run", found, "run", "status", "started_at", "closed_at", "plan", "repository")

	report := parse(t, lab.Client.OK(t, "report", c.Run, "--json"))
	requireKeys(t, "a report", report, "version", "run", "plan_id", "repository", "branch", "base_commit", "head_commit",
		"verdict", "items", "dispositions", "nodes", "gates", "friction", "salvage", "refs", "usage", "pools")
	require.Contains(t, report["refs"], "refs/mendflow/run/"+c.Run)
	require.Contains(t, report["refs"], "refs/heads/mendflow/"+c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	requireNothingLeft(t, lab, c)
}

// requireStatus looks at the fields that a status always has.
func requireStatus(t *testing.T, status object) {
	t.Helper()
	requireKeys(t, "a status", status, "run", "workflow_id", "status", "holds", "repository", "branch", "base_commit", "head_commit",
		"level", "nodes", "items", "pools", "gate", "usage", "started_at")
	requireKeys(t, "a usage", status["usage"].(map[string]any), "input_tokens", "output_tokens", "usd", "uncertain")
	for _, pool := range status["pools"].([]any) {
		requireKeys(t, "a pool", pool.(map[string]any), "id", "state", "running", "max")
	}
}

// only keeps some keys of a nested object.
func only(value any, keys ...string) object {
	kept := object{}
	for _, key := range keys {
		kept[key] = value.(map[string]any)[key]
	}
	return kept
}

// TestEmbeddedServerHasOurSearchAttributes compares the server's list, which is
// in a module of its own, with the contract.
func TestEmbeddedServerHasOurSearchAttributes(t *testing.T) {
	t.Parallel()
	lab := theLab(t)
	known, err := lab.Client.Server().OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: "default"})
	require.NoError(t, err)
	ours := map[string]string{}
	for name, kind := range known.GetCustomAttributes() {
		if strings.HasPrefix(name, "Mendflow") {
			ours[name] = kind.String()
		}
	}
	want := map[string]string{}
	for _, a := range contract.Attributes() {
		want[a.Name] = a.Type
	}
	require.Equal(t, want, ours)

	setup := parse(t, lab.Client.OK(t, "setup", "--json"))
	require.Empty(t, setup["added"], "starter setup found something to add")
	require.Len(t, setup["present"], len(want))
}
