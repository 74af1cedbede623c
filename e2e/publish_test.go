package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/testkit"
	"mendflow/internal/testkit/forgeserver"
	"mendflow/internal/workercmd"
)

// publishCase is a case with one node whose plan ends in a closing action.
func publishCase(t *testing.T, closing map[string]any) *testkit.Case {
	t.Helper()
	return testkit.NewCase(t, testkit.RunID(t), testkit.Plan{
		Nodes: []testkit.Node{{ID: "alpha"}}, More: map[string]any{"close": closing},
	})
}

// requestCase ends in a pull request on a stand-in that has the case's repository.
func requestCase(t *testing.T) (*testkit.Case, *forgeserver.Server) {
	t.Helper()
	closing := map[string]any{"action": "pull-request", "forge": "github", "token_env": "FORGE_TOKEN"}
	c := publishCase(t, closing)
	s := forgeserver.New(t, c.Repo.Dir)
	closing["remote"], closing["api"] = s.Remote(), s.GitHub()
	c.Plan.Write(t, c.Path)
	return c, s
}

func forgeEnv() []string { return []string{"FORGE_TOKEN=" + forgeserver.Token} }

// requireOneRequest checks that the forge has the branch and one request of the run.
func requireOneRequest(t *testing.T, s *forgeserver.Server, c *testkit.Case, v contract.RunView) {
	t.Helper()
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	require.NotNil(t, v.Publication)
	require.Equal(t, contract.PublishSucceeded, v.Publication.State, v.Publication.Detail)
	require.Len(t, s.Requests(), 1)
	require.Equal(t, v.HeadCommit, s.Branches(t)["mendflow/"+c.Run])
	require.Len(t, s.Branches(t), 2)
}

// TestPublishPointsAreTried makes sure that a new point is killed at.
func TestPublishPointsAreTried(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, workercmd.PublishPoints(), slices.Concat(requestPoints, mergePoints))
}

var (
	requestPoints = []string{gitrepo.PointPushing, gitrepo.PointPushed, activities.PointOpening, activities.PointOpened}
	mergePoints   = []string{gitrepo.PointMerging, gitrepo.PointMovedTo}
)

// TestKillsWhilePublishing kills the worker at every point of a publication, and
// the server with it, and expects one branch and one pull request.
func TestKillsWhilePublishing(t *testing.T) {
	t.Parallel()
	for _, point := range requestPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			once := filepath.Join(t.TempDir(), "killed")
			lab := testkit.NewLab(t, testkit.LabOptions{Durable: true, Env: append(forgeEnv(), "MENDFLOW_TEST_KILL_AT="+point+"="+once)})
			c, s := requestCase(t)
			lab.Start(t, c)
			select {
			case <-lab.Host.Done():
			case <-time.After(testkit.Guard):
				t.Fatal("the point was never reached")
			}
			require.FileExists(t, once, "the host ended by itself:\n%s", lab.Host.Output())
			lab.Server.Kill()
			require.NoError(t, lab.Server.Restart())
			require.NoError(t, lab.Host.Restart())
			v := lab.Client.AwaitClosed(t, c.Run)
			requireOneRequest(t, s, c, v)
			require.Greater(t, v.Publication.Attempts, 1)
			testkit.CheckInvariants(t, lab.Scene(c))
			model := lab.Client.Report(t, c.Run)
			require.Equal(t, "succeeded", model.Publication.State)
			require.Equal(t, s.URL+"/acme/shop/pull/1", model.Publication.URL)
		})
	}
}

// TestKillsWhileMerging kills the worker around the move of the branch: the user's
// clean checkout follows it once.
func TestKillsWhileMerging(t *testing.T) {
	t.Parallel()
	for _, point := range mergePoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			once := filepath.Join(t.TempDir(), "killed")
			lab := testkit.NewLab(t, testkit.LabOptions{Env: []string{"MENDFLOW_TEST_KILL_AT=" + point + "=" + once}})
			c := publishCase(t, map[string]any{"action": "merge"})
			lab.Start(t, c)
			select {
			case <-lab.Host.Done():
			case <-time.After(testkit.Guard):
				t.Fatal("the point was never reached")
			}
			require.FileExists(t, once)
			require.NoError(t, lab.Host.Restart())
			v := lab.Client.AwaitClosed(t, c.Run)
			require.Equal(t, contract.PublishSucceeded, v.Publication.State, v.Publication.Detail)
			require.Equal(t, v.HeadCommit, c.Repo.Git(t, "rev-parse", "main"))
			require.Empty(t, c.Repo.Git(t, "status", "--porcelain"))
		})
	}
}

// TestLostAnswersAndLimits publishes through a chain of faults, a merge before the answer among them.
func TestLostAnswersAndLimits(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{Env: forgeEnv()})
	c, s := requestCase(t)
	s.Fail(
		forgeserver.Fault{Op: forgeserver.OpFind, How: forgeserver.Limit429},
		forgeserver.Fault{Op: forgeserver.OpFind, How: forgeserver.Secondary},
		forgeserver.Fault{Op: forgeserver.OpPush, How: forgeserver.Lose},
		forgeserver.Fault{Op: forgeserver.OpOpen, How: forgeserver.Bad502},
		forgeserver.Fault{Op: forgeserver.OpOpen, How: forgeserver.Merge},
	)
	lab.Start(t, c)
	v := lab.Client.AwaitClosed(t, c.Run)
	require.Equal(t, contract.PublishSucceeded, v.Publication.State, v.Publication.Detail)
	require.Contains(t, v.Publication.Detail, "is merged")
	require.Empty(t, s.Left())
	require.Len(t, s.Requests(), 1)
	require.Equal(t, map[string]string{"main": v.HeadCommit}, s.Branches(t), "the branch went with the merge and did not come back")
}

// TestPublishRetry gives up after the automatic tries, says so everywhere, and
// publishes when an operator asks again, also on a server that never knew the run.
func TestPublishRetry(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{Env: forgeEnv()})
	c, s := requestCase(t)
	for range 5 {
		s.Fail(forgeserver.Fault{Op: forgeserver.OpFind, How: forgeserver.Limit429})
	}
	lab.Start(t, c)
	v := lab.Client.AwaitClosed(t, c.Run)
	require.Equal(t, contract.RunCompleted, v.Status)
	require.Equal(t, contract.PublishExhausted, v.Publication.State)
	require.Equal(t, 5, v.Publication.Attempts)
	require.Equal(t, 1, lab.Client.Starter(t, "watch", c.Run).Code, "what was asked did not come about")
	require.Contains(t, lab.Client.OK(t, "status", c.Run), "publish  pull-request exhausted after 5 tries")
	require.Contains(t, lab.Client.OK(t, "report", c.Run), "starter publish retry "+c.Run)

	other := testkit.NewLab(t, testkit.LabOptions{Env: forgeEnv()})
	require.NoError(t, other.Host.Stop()) // its queue is served by a worker that sees the first one's artifacts
	require.NoError(t, lab.Host.Stop())
	host, err := testkit.StartHost(testkit.HostOptions{Address: other.Server.Address, State: lab.Host.State, Pools: lab.Pools, Env: forgeEnv()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Stop()) })
	client, err := testkit.NewClient(other.Server.Address, lab.Host.State)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.Contains(t, client.OK(t, "publish", "retry", c.Run), "pull-request succeeded, "+s.URL+"/acme/shop/pull/1")
	require.Len(t, s.Requests(), 1)
	model := client.Report(t, c.Run)
	require.Equal(t, "succeeded", model.Publication.State)
	again := client.Starter(t, "publish", "retry", c.Run)
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Err, "it is published already")
}

// TestReportOfAForgottenRun reads every form of a report from a server that never
// knew the run, and without any worker.
func TestReportOfAForgottenRun(t *testing.T) {
	t.Parallel()
	lab := theLab(t)
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}}})
	lab.Start(t, c)
	lab.Client.AwaitClosed(t, c.Run)
	server, err := testkit.StartServer(t.TempDir(), false)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	client, err := testkit.NewClient(server.Address, lab.Host.State)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.NotZero(t, client.Starter(t, "status", c.Run).Code, "the server does not know the run")
	for format, want := range map[string]string{
		"md": "# completed: " + c.Run, "json": `"run": "` + c.Run + `"`, "sarif": `"version": "2.1.0"`, "junit": "<testsuites",
	} {
		require.Contains(t, client.OK(t, "report", c.Run, "--format", format), want)
	}
	nowhere := client.Starter(t, "report", "never-was")
	require.Equal(t, 1, nowhere.Code)
	require.Contains(t, nowhere.Err, fmt.Sprintf("read report of %s: there is none yet", "never-was"))
}

// TestPartialIsPublishedWhenAsked leaves a finding, and publishes only with --allow-partial.
func TestPartialIsPublishedWhenAsked(t *testing.T) {
	t.Parallel()
	lab := theLab(t)
	start := func(name string, more ...string) (*testkit.Case, contract.RunView) {
		c := testkit.NewCase(t, testkit.RunID(t)+name, testkit.Plan{
			Nodes:  []testkit.Node{{ID: "alpha"}, {ID: "beta"}},
			Policy: map[string]any{"unattended": true}, More: map[string]any{"close": map[string]any{"action": "merge"}},
		})
		lab.Control.Script(t, c.Run, "beta", "result blocked")
		lab.Start(t, c, more...)
		return c, lab.Client.AwaitClosed(t, c.Run)
	}
	c, v := start("-no")
	require.Equal(t, contract.RunBlocked, v.Status)
	require.Equal(t, contract.PublishSkipped, v.Publication.State)
	require.NotEqual(t, v.HeadCommit, c.Repo.Git(t, "rev-parse", "main"))
	refused := lab.Client.Starter(t, "publish", "retry", c.Run)
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Err, "--allow-partial")
	lab.Client.OK(t, "publish", "retry", c.Run, "--allow-partial")
	require.Equal(t, v.HeadCommit, c.Repo.Git(t, "rev-parse", "main"))

	c, v = start("-yes", "--allow-partial")
	require.Equal(t, contract.RunBlocked, v.Status)
	require.Equal(t, contract.PublishSucceeded, v.Publication.State)
	require.Equal(t, v.HeadCommit, c.Repo.Git(t, "rev-parse", "main"))
	require.Equal(t, 3, lab.Client.Starter(t, "watch", c.Run).Code)
}
