package forge_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/forge"
	"mendflow/internal/plan"
	"mendflow/internal/testkit"
	"mendflow/internal/testkit/forgeserver"
)

// newServer is a project with main and a branch to open requests of.
func newServer(t *testing.T) *forgeserver.Server {
	t.Helper()
	repo := testkit.NewRepo(t, filepath.Join(t.TempDir(), "repo"), map[string]string{"a": "a\n"})
	repo.Git(t, "branch", "fix")
	return forgeserver.New(t, repo.Dir)
}

// open returns both kinds of forge on a server each.
func each(t *testing.T, test func(t *testing.T, s *forgeserver.Server, f forge.Forge)) {
	t.Helper()
	for _, kind := range []plan.Forge{plan.ForgeGitHub, plan.ForgeGitLab} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			test(t, s, connect(t, s, kind, forgeserver.Token, forgeserver.Project))
		})
	}
}

// answerLimit is how long the tests' clients wait for an answer that never comes.
const answerLimit = 2 * time.Second

func connect(t *testing.T, s *forgeserver.Server, kind plan.Forge, token, project string) forge.Forge {
	t.Helper()
	api := s.GitHub()
	if kind == plan.ForgeGitLab {
		api = s.GitLab()
	}
	client := &http.Client{Timeout: time.Minute}
	f, err := forge.New(forge.Settings{Kind: kind, API: api, Project: project, Token: token, Client: client})
	require.NoError(t, err)
	return f
}

var proposal = forge.Proposal{Head: "fix", Into: "main", Title: "Repair", Body: "What was done.", Draft: true}

func TestOpenAndFind(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *forgeserver.Server, f forge.Forge) {
		found, err := f.Find(t.Context(), "fix")
		require.NoError(t, err)
		require.Empty(t, found)
		opened, err := f.Open(t.Context(), proposal)
		require.NoError(t, err)
		require.True(t, opened.Open)
		require.False(t, opened.Merged)
		require.Contains(t, opened.URL, s.URL)
		require.Equal(t, "What was done.", opened.Body)
		found, err = f.Find(t.Context(), "fix")
		require.NoError(t, err)
		require.Equal(t, []forge.PullRequest{opened}, found)
		found, err = f.Find(t.Context(), "main")
		require.NoError(t, err)
		require.Empty(t, found)
		require.Len(t, s.Requests(), 1)
		require.True(t, s.Requests()[0].Draft)
		require.Equal(t, "Repair", s.Requests()[0].Title)

		_, err = f.Open(t.Context(), proposal)
		effect, _ := forge.EffectOf(err)
		require.Equal(t, forge.Exists, effect, "%v", err)
	})
}

func TestAMergedRequestIsFoundAfterItsBranchIsGone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *forgeserver.Server, f forge.Forge) {
		s.Fail(forgeserver.Fault{Op: forgeserver.OpOpen, How: forgeserver.Merge})
		_, err := f.Open(t.Context(), proposal)
		effect, _ := forge.EffectOf(err)
		require.Equal(t, forge.Unknown, effect, "%v", err)
		require.NotContains(t, s.Branches(t), "fix")
		found, err := f.Find(t.Context(), "fix")
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.True(t, found[0].Merged)
		require.False(t, found[0].Open)
	})
}

// TestEffects says for each way to fail what may have happened, and that each call was one request.
func TestEffects(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *forgeserver.Server, f forge.Forge) {
		for _, c := range []struct {
			how        string
			read       forge.Effect
			write      forge.Effect
			retryAfter time.Duration
		}{
			{forgeserver.Drop, forge.Unknown, forge.Unknown, 0},
			{forgeserver.Bad502, forge.Nothing, forge.Unknown, 0},
			{forgeserver.Limit429, forge.Nothing, forge.Nothing, time.Second},
			{forgeserver.Secondary, forge.Nothing, forge.Nothing, time.Second},
			{forgeserver.Forbid, forge.Refused, forge.Refused, 0},
			{forgeserver.Invalid, forge.Refused, forge.Refused, 0},
		} {
			finds, opens := s.Calls(forgeserver.OpFind), s.Calls(forgeserver.OpOpen)
			s.Fail(forgeserver.Fault{Op: forgeserver.OpFind, How: c.how}, forgeserver.Fault{Op: forgeserver.OpOpen, How: c.how})
			_, err := f.Find(t.Context(), "fix")
			effect, after := forge.EffectOf(err)
			require.Equal(t, c.read, effect, "find %s: %v", c.how, err)
			require.Equal(t, c.retryAfter, after, c.how)
			_, err = f.Open(t.Context(), proposal)
			effect, after = forge.EffectOf(err)
			require.Equal(t, c.write, effect, "open %s: %v", c.how, err)
			require.Equal(t, c.retryAfter, after, c.how)
			require.NotContains(t, err.Error(), forgeserver.Token)
			require.NotContains(t, err.Error(), "\n")
			if c.how != forgeserver.Drop { // the standard library repeats a read that got nothing; that does no harm
				require.Equal(t, finds+1, s.Calls(forgeserver.OpFind), c.how)
			}
			require.Equal(t, opens+1, s.Calls(forgeserver.OpOpen), "%s: a write is never repeated", c.how)
		}
		require.Empty(t, s.Requests())
		require.Empty(t, s.Left())
	})
}

func TestAnswersThatGotLostAreUnknown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *forgeserver.Server, f forge.Forge) {
		for i, how := range []string{forgeserver.Lose, forgeserver.After502, forgeserver.Garbage} {
			s.Fail(forgeserver.Fault{Op: forgeserver.OpOpen, How: how})
			p := proposal
			p.Head = []string{"fix", "main", "other"}[i]
			if i == 2 {
				_, err := exec.Command("git", "-C", s.Repo, "branch", "other", "main").CombinedOutput()
				require.NoError(t, err)
			}
			_, err := f.Open(t.Context(), p)
			effect, _ := forge.EffectOf(err)
			require.Equal(t, forge.Unknown, effect, "%s: %v", how, err)
			require.Len(t, s.Requests(), i+1, "it was done")
		}
	})
}

func TestSilenceEndsWithTheClientsLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for kind, api := range map[plan.Forge]string{plan.ForgeGitHub: s.GitHub(), plan.ForgeGitLab: s.GitLab()} {
		f, err := forge.New(forge.Settings{Kind: kind, API: api, Project: forgeserver.Project, Token: forgeserver.Token, Client: &http.Client{Timeout: answerLimit}})
		require.NoError(t, err)
		s.Fail(forgeserver.Fault{Op: forgeserver.OpOpen, How: forgeserver.Hang})
		_, err = f.Open(t.Context(), proposal)
		effect, _ := forge.EffectOf(err)
		require.Equal(t, forge.Unknown, effect, "%v", err)
	}
	require.Empty(t, s.Requests())
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, kind := range []plan.Forge{plan.ForgeGitHub, plan.ForgeGitLab} {
		f, err := forge.New(forge.Settings{Kind: kind, API: closed.URL, Project: forgeserver.Project, Token: "x"})
		require.NoError(t, err)
		_, err = f.Open(t.Context(), proposal)
		effect, _ := forge.EffectOf(err)
		require.Equal(t, forge.Nothing, effect, "%s: nothing was sent: %v", kind, err)
	}
}

func TestAWriteFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	reads := 0
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			reads++
		}
		http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
	}))
	t.Cleanup(moved.Close)
	for _, kind := range []plan.Forge{plan.ForgeGitHub, plan.ForgeGitLab} {
		f, err := forge.New(forge.Settings{Kind: kind, API: moved.URL, Project: forgeserver.Project, Token: "x"})
		require.NoError(t, err)
		_, err = f.Open(t.Context(), proposal)
		effect, _ := forge.EffectOf(err)
		require.Equal(t, forge.Refused, effect, "%s: %v", kind, err)
	}
	require.Zero(t, reads)
}

func TestWrongTokenAndProjectAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, kind := range []plan.Forge{plan.ForgeGitHub, plan.ForgeGitLab} {
		_, err := connect(t, s, kind, "wrong-token-123456", forgeserver.Project).Find(t.Context(), "fix")
		effect, _ := forge.EffectOf(err)
		require.Equal(t, forge.Refused, effect, "%v", err)
		require.NotContains(t, err.Error(), "wrong-token")
		_, err = connect(t, s, kind, forgeserver.Token, "acme/other").Find(t.Context(), "fix")
		effect, _ = forge.EffectOf(err)
		require.Equal(t, forge.Refused, effect, "%v", err)
	}
	_, err := forge.New(forge.Settings{Kind: plan.ForgeGitHub, Project: "a/b/c"})
	require.ErrorContains(t, err, "want owner/name")
	_, err = forge.New(forge.Settings{Kind: "gitea"})
	require.ErrorContains(t, err, "want github or gitlab")
}
