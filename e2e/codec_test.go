package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/encoding/protojson"

	"mendflow/internal/codec"
	"mendflow/internal/config"
	"mendflow/internal/contract"
	"mendflow/internal/testkit"
	"mendflow/workflows"
)

// marker is a word that stands in a plan, in what a worker says and in what an
// operator says, so that it passes through every kind of payload.
const marker = "periwinkle-4711"

// TestEncryptedHistoriesShowNothing runs a case with the payload codec, pauses and
// resumes it by hand, and looks for the marker in the server's database: found
// without the codec, not found with it. What an operator sends without the codec
// is understood; the Web UI's endpoint decrypts; the history replays.
func TestEncryptedHistoriesShowNothing(t *testing.T) {
	t.Parallel()
	if os.Getenv("MENDFLOW_TEST_POSTGRES") != "" {
		t.Skip("the test looks into the file of a SQLite database")
	}
	for name, encrypted := range map[string]bool{"with the codec": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := ""
			if encrypted {
				keys = filepath.Join(t.TempDir(), "keys")
				line, err := codec.NewKey("2026-11")
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(keys, []byte(line+"\n"), 0o600))
			}
			lab := testkit.NewLab(t, testkit.LabOptions{Durable: true, CodecKeys: keys})
			c := markedRun(t, lab)
			history := wholeHistory(t, lab.Client.Server(), contract.RemediationID(c.Run))
			require.NoError(t, lab.Close())
			found := findIn(t, lab.Dir, "server.db", marker)
			if !encrypted {
				require.NotEmpty(t, found, "the search finds what is there")
				return
			}
			require.Empty(t, found)
			requireReplay(t, keys, history)
			requireDecrypted(t, keys, history)
		})
	}
}

// markedRun takes a run to its end with the marker in everything that people and workers write.
func markedRun(t *testing.T, lab *testkit.Lab) *testkit.Case {
	t.Helper()
	p := testkit.Plan{
		Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta"}},
		More:  map[string]any{"goal": "Repair what " + marker + " says."}, Policy: map[string]any{"unattended": true},
	}
	c := testkit.NewCase(t, testkit.RunID(t), p)
	lab.Control.Script(t, c.Run, "alpha", "mark alpha/work.txt", "tell working", "wait go", "result resolved")
	lab.Control.Script(t, c.Run, "beta", "cry fatal: "+marker, "say "+marker, "exit 3")
	lab.Start(t, c)
	lab.Control.Await(t, c.Run, "working")
	lab.Client.OK(t, "pause", c.Run, "--reason", "for "+marker)
	lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)
	require.NoError(t, lab.Control.Tell(c.Run, "go"))
	// As `temporal workflow signal` sends it: plain JSON by a client that knows no keys.
	plain, err := client.Dial(client.Options{HostPort: lab.Server.Address})
	require.NoError(t, err)
	defer plain.Close()
	require.NoError(t, plain.SignalWorkflow(t.Context(), contract.RemediationID(c.Run), "", contract.CommandResume, "an operator without keys"))
	v := lab.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Equal(t, contract.RunBlocked, v.Status, v.Reason)
	require.Contains(t, lab.Client.OK(t, "status", c.Run), c.Run)
	require.Contains(t, lab.Client.OK(t, "runs", "--json"), c.Repo.Dir, "the memo is decrypted for its list")
	rows := lab.Client.Nodes(t, c.Run)
	require.Equal(t, contract.NodeLanded, rows["alpha"].State)
	require.Contains(t, rows["beta"].Attempts[0].Reason, marker, "it went through the histories")
	return c
}

// findIn names the files of a database that hold a word.
func findIn(t *testing.T, dir, name, word string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, name+"*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if bytes.Contains(data, []byte(word)) {
			found = append(found, file)
		}
	}
	return found
}

func wholeHistory(t *testing.T, server client.Client, id string) *historypb.History {
	t.Helper()
	var history historypb.History
	for events := server.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		history.Events = append(history.Events, event)
	}
	return &history
}

// requireReplay replays an encrypted history with its keys.
func requireReplay(t *testing.T, keys string, history *historypb.History) {
	t.Helper()
	options, err := config.Connection{CodecKeys: keys}.Options(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: options.DataConverter, FailureConverter: options.FailureConverter, DisableRegistrationAliasing: true,
	})
	require.NoError(t, err)
	workflows.Register(replayer)
	require.NoError(t, replayer.ReplayWorkflowHistory(nil, history))
}

// requireDecrypted asks the endpoint of the Web UI for the input of the run.
func requireDecrypted(t *testing.T, keys string, history *historypb.History) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const ui = "http://127.0.0.1:8233"
	serve := exec.CommandContext(ctx, testkit.Program("starter"), "codec", "serve", "--listen", "127.0.0.1:0", "--codec-keys", keys, "--ui", ui)
	out, err := serve.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	defer func() {
		cancel()
		_ = serve.Wait() // killed
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(line[:n]), "codec ready: endpoint=")
	require.True(t, found, string(line[:n]))
	endpoint, _, _ := strings.Cut(rest, " ")

	input := history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetInput()
	require.Equal(t, "binary/encrypted", string(input.Payloads[0].Metadata["encoding"]))
	body, err := protojson.Marshal(input)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/decode", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Origin", ui)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, ui, response.Header.Get("Access-Control-Allow-Origin"))
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(answer))
	var opened commonpb.Payloads
	require.NoError(t, protojson.Unmarshal(answer, &opened))
	var in struct {
		Run string `json:"run"`
	}
	require.NoError(t, json.Unmarshal(opened.Payloads[0].Data, &in))
	id, _ := contract.ParseRemediationID(history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId())
	require.Equal(t, id, in.Run)
}

// TestWorkerWithoutTheKeysHoldsARunUpAndCostsItNothing restarts the host of an
// encrypted run without its keys, and then with them.
func TestWorkerWithoutTheKeysHoldsARunUpAndCostsItNothing(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	line, err := codec.NewKey("2026-11")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(keys, []byte(line+"\n"), 0o600))
	lab := testkit.NewLab(t, testkit.LabOptions{CodecKeys: keys})
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}}})
	lab.Control.Script(t, c.Run, "alpha", "mark alpha/work.txt", "tell working", "wait go", "result resolved")
	lab.Start(t, c)
	lab.Control.Await(t, c.Run, "working")
	require.NoError(t, lab.Host.Stop())

	bare, err := testkit.StartHost(testkit.HostOptions{Address: lab.Server.Address, State: lab.Host.State, Pools: lab.Pools})
	require.NoError(t, err)
	testkit.Eventually(t, "a task of the run fails for want of its key", func() bool {
		return strings.Contains(bare.Output(), `decrypt payload of key \"2026-11\": its key is missing`)
	})
	require.NoError(t, bare.Stop())
	require.NoError(t, lab.Control.Tell(c.Run, "go"))
	require.NoError(t, lab.Host.Restart())
	v := lab.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
}
