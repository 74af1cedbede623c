package testkit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"mendflow/internal/config"
	"mendflow/internal/contract"
	"mendflow/internal/report"
)

// Client is a user of a server: the command line, and the queries behind it.
type Client struct {
	Address   string
	State     string   // state folder, shared with the host so that artifacts are seen
	Artifacts string   // empty: in the state folder
	Env       []string // of the starter, beside the test's own
	// In is what starts the starter elsewhere, such as in a network of its own, and
	// At the server's address there; empty: nothing, and Address.
	In     []string
	At     string
	keys   string // key file of the payload codec; empty: none
	server client.Client
}

// NewClient connects; the caller closes it.
func NewClient(address, state string) (*Client, error) {
	return newClient(config.Connection{Address: address}, state)
}

func newClient(connection config.Connection, state string) (*Client, error) {
	server, err := connection.Dial(context.Background(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &Client{Address: connection.Address, State: state, keys: connection.CodecKeys, server: server}, nil
}

// Close ends the connection.
func (c *Client) Close() { c.server.Close() }

// Result is how a command of the starter ended.
type Result struct {
	Code int
	Out  string
	Err  string
}

// Starter runs a command of the built starter and waits for its end.
func (c *Client) Starter(t testing.TB, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Guard) // cleanups ask too, when the test's own context is over
	defer cancel()
	args = append(args, "--address", cmp.Or(c.At, c.Address), "--state-dir", c.State)
	if c.Artifacts != "" {
		args = append(args, "--artifacts", c.Artifacts)
	}
	args = append(append(slices.Clone(c.In), Program("starter")), args...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = cleanEnviron()
	cmd.Env = append(cmd.Env, c.Env...)
	if c.keys != "" {
		cmd.Env = append(cmd.Env, codecVariable+"="+c.keys)
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NoError(t, ctx.Err(), "starter %v did not end", args)
	return Result{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: errOut.String()}
}

// OK runs a command that must succeed and returns its output.
func (c *Client) OK(t testing.TB, args ...string) string {
	t.Helper()
	r := c.Starter(t, args...)
	require.Zero(t, r.Code, "starter %v: %s", args, r.Err)
	return r.Out
}

// Start starts a run with an id and returns at once.
func (c *Client) Start(t testing.TB, run, repo, plan, pools string, more ...string) {
	t.Helper()
	c.OK(t, append([]string{"start", "--id", run, "--repo", repo, "--plan", plan, "--pools", pools}, more...)...)
}

// Status asks a run once.
func (c *Client) Status(run string) (contract.RunView, error) {
	var v contract.RunView
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := c.server.QueryWorkflow(ctx, contract.RemediationID(run), "", contract.QueryStatus)
	if err != nil {
		return v, fmt.Errorf("ask run %s: %w", run, err)
	}
	return v, answer.Get(&v)
}

// Await waits until a run's status is as wanted. Questions that nobody
// answers, while a test has killed who could, are asked again.
func (c *Client) Await(t testing.TB, run, what string, holds func(contract.RunView) bool) contract.RunView {
	t.Helper()
	deadline := time.Now().Add(Guard)
	for {
		v, err := c.Status(run)
		if err == nil && holds(v) {
			return v
		}
		if time.Now().After(deadline) {
			data, _ := json.MarshalIndent(v, "", "  ")
			t.Fatalf("wait until %s: not so after %v (last error: %v); last status:\n%s", what, Guard, err, data)
		}
		time.Sleep(2 * poll)
	}
}

// AwaitStatus waits until a run has a status.
func (c *Client) AwaitStatus(t testing.TB, run string, status contract.RunStatus) contract.RunView {
	t.Helper()
	return c.Await(t, run, "run "+run+" is "+string(status), func(v contract.RunView) bool {
		return v.Status == status || v.Status.Closed() && v.ClosedAt != nil
	})
}

// AwaitClosed waits until a run has closed.
func (c *Client) AwaitClosed(t testing.TB, run string) contract.RunView {
	t.Helper()
	return c.Await(t, run, "run "+run+" closes", func(v contract.RunView) bool { return v.Status.Closed() && v.ClosedAt != nil })
}

// Nodes returns a run's node table by node.
func (c *Client) Nodes(t testing.TB, run string) map[string]contract.NodeRow {
	t.Helper()
	return nodeTable(t, c.OK(t, "nodes", run, "--json"))
}

// NodesSoFar is Nodes for a run that may still be queued and have none.
func (c *Client) NodesSoFar(t testing.TB, run string) map[string]contract.NodeRow {
	t.Helper()
	return nodeTable(t, c.Starter(t, "nodes", run, "--json").Out)
}

func nodeTable(t testing.TB, table string) map[string]contract.NodeRow {
	t.Helper()
	rows := map[string]contract.NodeRow{}
	for line := range bytes.Lines([]byte(table)) {
		var row contract.NodeRow
		require.NoError(t, json.Unmarshal(line, &row))
		rows[row.ID] = row
	}
	return rows
}

// Report returns the report of a closed run.
func (c *Client) Report(t testing.TB, run string) report.Model {
	t.Helper()
	model, err := report.Parse([]byte(c.OK(t, "report", run, "--format", "json")))
	require.NoError(t, err)
	return model
}

// Server is the connection, for what the command line does not show.
func (c *Client) Server() client.Client { return c.server }
