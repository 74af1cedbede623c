package gitrepo

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPermissionsTakenAwayAreGivenBack runs without root's right to read everything.
func TestPermissionsTakenAwayAreGivenBack(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	for name, keep := range map[string]fs.FileMode{"nothing is left": 0, "folders cannot be entered": 0o666, "nothing can be read": 0o333} {
		t.Run(name, func(t *testing.T) {
			b := openRun(t, false, nil)
			_, w := b.start(attempt("n1", 1))
			writeFile(t, w.Path(), "src/a.txt", "edited\n")
			writeFile(t, w.Path(), "src/new/b.txt", "new\n")
			restrict(t, w.Path(), keep)
			work, err := w.Collect(t.Context(), Scope{Has: func(p string) bool { return strings.HasPrefix(p, "src/") }})
			require.NoError(t, err)
			var content []string
			for _, c := range work.Changes {
				if c.Kind != ModeOnly && c.Path != "bin/run.sh" { // whether it was executable is not to be seen any more
					content = append(content, string(c.Kind)+" "+c.Path)
				}
			}
			require.Equal(t, []string{"modify src/a.txt", "add src/new/b.txt"}, content)
			require.NoError(t, w.Release(t.Context(), ReleaseOptions{}))
			require.NoError(t, b.store.Close())
			require.NoDirExists(t, w.Path())
			require.Empty(t, b.store.Leftovers())
		})
	}
}

// restrict takes permissions of everything in a tree, what lies deepest first.
func restrict(t *testing.T, tree string, keep fs.FileMode) {
	t.Helper()
	modes := map[string]fs.FileMode{}
	require.NoError(t, filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		modes[path] = info.Mode().Perm()
		return err
	}))
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(modes))) {
		require.NoError(t, os.Chmod(path, modes[path]&keep))
	}
}

// asNobody runs the test that calls it once more as another user.
func asNobody(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nobody-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, removeTree(dir)) })
	const nobody = 65534
	require.NoError(t, os.Chown(dir, nobody, nobody))
	program := filepath.Join(dir, "gitrepo.test")
	copyProgram(t, program)
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: "+t.Name())
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer from.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(file, from)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}
