package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func TestColumnsAreGivenByNameAndKept(t *testing.T) {
	t.Parallel()
	aliases := map[string]string{"Keyword01": "MendflowRun"}
	require.NoError(t, addAliases(aliases, map[string]enumspb.IndexedValueType{
		"MendflowRun": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"B":           enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"A":           enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"C":           enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	}))
	require.Equal(t, map[string]string{"Keyword01": "MendflowRun", "Keyword02": "A", "Keyword03": "B", "KeywordList01": "C"}, aliases)
}

func TestAttributeOfAnotherTypeIsRefused(t *testing.T) {
	t.Parallel()
	err := addAliases(map[string]string{"Int01": "MendflowRun"}, builtinSearchAttributes)
	require.ErrorContains(t, err, "search attribute MendflowRun exists with the type Int, need Keyword")
}

func TestTooManyAttributesOfATypeAreRefused(t *testing.T) {
	t.Parallel()
	code, message := fail(t, "--port", "0", "--headless", "--search-attribute", "A=KeywordList", "--search-attribute", "B=KeywordList")
	require.Equal(t, exitError, code)
	require.Contains(t, message, "no column of the type KeywordList is left")
}

var (
	runKey        = temporal.NewSearchAttributeKeyKeyword("MendflowRun")
	statusKey     = temporal.NewSearchAttributeKeyKeyword("MendflowStatus")
	repositoryKey = temporal.NewSearchAttributeKeyKeyword("MendflowRepository")
	holdKey       = temporal.NewSearchAttributeKeyKeywordList("MendflowHold")
	resetKey      = temporal.NewSearchAttributeKeyTime("MendflowResetAt")
	poolKey       = temporal.NewSearchAttributeKeyKeywordList("MendflowPool")
	outcomeKey    = temporal.NewSearchAttributeKeyKeyword("MendflowOutcome")
	noteKey       = temporal.NewSearchAttributeKeyString("Note")
)

// attributed waits for "lift" and replaces its holds; then for "end".
func attributed(ctx workflow.Context) error {
	workflow.GetSignalChannel(ctx, "lift").Receive(ctx, nil)
	if err := workflow.UpsertTypedSearchAttributes(ctx, holdKey.ValueSet([]string{"operator"})); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return nil
}

func TestSearchAttributesCanBeSetAndListedBy(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"file":   {"--db", filepath.Join(t.TempDir(), "dev.db")},
		"memory": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := launch(t, append(args, "--headless", "--search-attribute", "Note=Text")...).dial(t)
			w := worker.New(c, "queue", worker.Options{})
			w.RegisterWorkflow(attributed)
			require.NoError(t, w.Start())
			t.Cleanup(w.Stop)

			reset := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
			run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
				ID: "one", TaskQueue: "queue",
				TypedSearchAttributes: temporal.NewSearchAttributes(
					runKey.ValueSet("r-1"), statusKey.ValueSet("paused"), repositoryKey.ValueSet("/srv/hub.git"),
					holdKey.ValueSet([]string{"operator", "quota wall"}), resetKey.ValueSet(reset),
					poolKey.ValueSet([]string{"claude-max", "codex"}), outcomeKey.ValueSet("landed"), noteKey.ValueSet("needs a second look"),
				),
			}, attributed)
			require.NoError(t, err)
			_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "other", TaskQueue: "queue"}, attributed)
			require.NoError(t, err)

			finds := func(query string, ids ...string) {
				t.Helper()
				require.EventuallyWithT(t, func(retry *assert.CollectT) {
					found, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
					require.NoError(retry, err)
					listed := []string{}
					for _, execution := range found.GetExecutions() {
						listed = append(listed, execution.GetExecution().GetWorkflowId())
					}
					require.ElementsMatch(retry, ids, listed)
				}, 10*time.Second, 50*time.Millisecond, query)
			}
			finds("WorkflowType = 'attributed'", "one", "other")
			finds("MendflowRun = 'r-1'", "one")
			finds("MendflowStatus = 'paused'", "one")
			finds("MendflowRepository = '/srv/hub.git'", "one")
			finds("MendflowHold = 'operator'", "one")
			finds("MendflowHold = 'quota wall' AND MendflowPool = 'codex'", "one")
			finds("MendflowResetAt BETWEEN '2026-11-30T11:59:59Z' AND '2026-11-30T12:00:01Z'", "one")
			finds("MendflowResetAt > '2026-11-30T12:00:01Z'")
			finds("MendflowOutcome = 'landed'", "one")
			finds("Note = 'second'", "one")
			finds("MendflowRun IS NULL AND WorkflowType = 'attributed'", "other")

			require.NoError(t, c.SignalWorkflow(t.Context(), "one", "", "lift", nil))
			finds("MendflowHold = 'quota wall'")
			finds("MendflowHold = 'operator'", "one")
			require.NoError(t, c.SignalWorkflow(t.Context(), "one", "", "end", nil))
			require.NoError(t, run.Get(t.Context(), nil))
			finds("MendflowHold = 'operator' AND ExecutionStatus = 'Completed'", "one")
		})
	}
}

func TestExistingDatabaseGetsRetentionAndMissingAttributes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.db")
	first := launch(t, "--headless", "--db", path, "--retention", "24h", "--search-attribute", "Team=Keyword")
	require.Equal(t, 24*time.Hour, first.retention(t))
	before := first.aliases(t)
	require.Equal(t, exitOK, first.stop(t, syscall.SIGTERM))

	second := launch(t, "--headless", "--db", path, "--search-attribute", "Aim=Keyword")
	require.Equal(t, 30*24*time.Hour, second.retention(t))
	after := second.aliases(t)
	require.Subset(t, after, before, "an attribute changed its column")
	attributes, err := second.dial(t).OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: "default"})
	require.NoError(t, err)
	for name, kind := range builtinSearchAttributes {
		require.Equal(t, kind, attributes.GetCustomAttributes()[name], name)
	}
	require.Contains(t, attributes.GetCustomAttributes(), "Team")
	require.Contains(t, attributes.GetCustomAttributes(), "Aim")
}

func TestNamespaceOfTheFlagIsRegistered(t *testing.T) {
	t.Parallel()
	p := launch(t, "--headless", "--namespace", "mendflow-2")
	require.Equal(t, "mendflow-2", p.ready.Namespace)
	require.Len(t, p.aliases(t), len(builtinSearchAttributes))
}

func (p *process) describe(t testing.TB) *workflowservice.DescribeNamespaceResponse {
	t.Helper()
	description, err := p.dial(t).WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: p.ready.Namespace})
	require.NoError(t, err)
	return description
}

func (p *process) retention(t testing.TB) time.Duration {
	t.Helper()
	return p.describe(t).GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
}

func (p *process) aliases(t testing.TB) map[string]string {
	t.Helper()
	return p.describe(t).GetConfig().GetCustomSearchAttributeAliases()
}
