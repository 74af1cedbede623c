package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// userLab is a lab whose user and host have a home of their own with a git configuration.
func userLab(t *testing.T) (lab *testkit.Lab, home string) {
	t.Helper()
	home = t.TempDir()
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config")}
	lab = testkit.NewLab(t, testkit.LabOptions{Env: env})
	lab.Client.Env = env
	return lab, home
}

// TestCommitsAreSignedWhereThePlanAsksForIt signs with the user's own key, which
// only the user's git configuration names.
func TestCommitsAreSignedWhereThePlanAsksForIt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed: git signs with it")
	}
	lab, home := userLab(t)
	key := filepath.Join(home, "key")
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput()
	require.NoError(t, err, string(out))
	public, err := os.ReadFile(key + ".pub")
	require.NoError(t, err)
	signers := filepath.Join(home, "signers")
	require.NoError(t, os.WriteFile(signers, []byte("signer@example.com "+string(public)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[gpg]\n\tformat = ssh\n[user]\n\tsigningKey = "+key+".pub\n"), 0o600))

	p := testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta"}}, More: map[string]any{
		"git": map[string]any{"user_config": true, "sign": true, "author": "Signer <signer@example.com>"},
	}}
	c := testkit.NewCase(t, testkit.RunID(t), p)
	lab.Start(t, c)
	v := lab.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	verdicts := c.Repo.Git(t, "-c", "gpg.ssh.allowedSignersFile="+signers, "log", "--format=%G? %an", v.BaseCommit+".."+contract.TruthRef(c.Run))
	require.Equal(t, "G Signer\nG Signer", verdicts)
}

// TestWorkersSeeFilesOfLFSWhereThePlanAsksForIt has a file in LFS: its pointer by
// default, its content where the plan opts in.
func TestWorkersSeeFilesOfLFSWhereThePlanAsksForIt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.Skip("git-lfs is not installed")
	}
	for name, optedIn := range map[string]bool{"pointers": false, "content": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab, home := userLab(t)
			filters := "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n"
			require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(filters), 0o600))
			p := testkit.Plan{
				Nodes: []testkit.Node{{ID: "alpha", Verify: []string{"head -c 9 large.bin | grep -q '^" + map[bool]string{false: "version h", true: "contents"}[optedIn] + "'"}}},
			}
			if optedIn {
				p.More = map[string]any{"git": map[string]any{"user_config": true, "lfs": true}}
			}
			c := testkit.NewCase(t, testkit.RunID(t), p)
			lfs := func(args ...string) {
				cmd := exec.Command("git", append([]string{"-C", c.Repo.Dir, "-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
				cmd.Env = append(os.Environ(), "HOME="+home, "GIT_CONFIG_GLOBAL="+filepath.Join(home, ".gitconfig"))
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
			}
			require.NoError(t, os.WriteFile(filepath.Join(c.Repo.Dir, ".gitattributes"), []byte("*.bin filter=lfs diff=lfs merge=lfs -text\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(c.Repo.Dir, "large.bin"), []byte(strings.Repeat("contents\n", 1000)), 0o600))
			lfs("add", "-A")
			lfs("commit", "-q", "-m", "A file in LFS")
			c.Before = c.Repo.Checkout(t)
			lab.Start(t, c)
			v := lab.Client.AwaitClosed(t, c.Run)
			testkit.CheckInvariants(t, lab.Scene(c))
			require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
			require.Equal(t, c.Repo.Git(t, "rev-parse", v.BaseCommit+":large.bin"), c.Repo.Git(t, "rev-parse", contract.TruthRef(c.Run)+":large.bin"))
		})
	}
}
