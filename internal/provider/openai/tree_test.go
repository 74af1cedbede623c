package openai

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/plan"
)

func grove(t *testing.T, scope ...string) (*tree, string) {
	t.Helper()
	dir := t.TempDir()
	files, err := openTree(dir, plan.CompileScope(scope, false))
	require.NoError(t, err)
	t.Cleanup(files.close)
	return files, dir
}

func TestNoPathLeadsOutOfTheWorktree(t *testing.T) {
	t.Parallel()
	files, dir := grove(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /elsewhere\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(".git", filepath.Join(dir, "disguise")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "new"), filepath.Join(dir, "dangling")))
	for _, name := range []string{
		"", ".", "/etc/passwd", "../x", "a/../../x", "a/..", ".git", "x/.git/config", ".GIT/hooks/pre-commit", `..\x`, "a\x00b",
		"out/secret", "out/new", "disguise", "dangling", outside + "/secret",
	} {
		require.Error(t, files.write(name, "x"), name)
		require.Error(t, files.remove(name), name)
	}
	for _, name := range []string{"/etc/passwd", "../x", ".git", "out/secret"} {
		_, err := files.read(name, 0)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), dir)
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, left, 1)
	list, err := files.list("")
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestOnlyTheScopeIsWritten(t *testing.T) {
	t.Parallel()
	files, dir := grove(t, "pkg/**")
	require.NoError(t, files.write("./pkg/deep/a.txt", "a"))
	require.ErrorContains(t, files.write("other/a.txt", "a"), "outside of what the task may change")
	require.ErrorContains(t, files.replace("pkg/deep/a.txt", "b", "c"), "not there")
	require.NoError(t, files.write("pkg/twice", "xx"))
	require.ErrorContains(t, files.replace("pkg/twice", "x", "c"), "2 times")
	require.NoError(t, files.replace("pkg/twice", "xx", "y"))
	require.NoError(t, files.remove("pkg/twice"))
	require.NoFileExists(t, filepath.Join(dir, "pkg", "twice"))
	require.ErrorContains(t, files.remove("pkg/deep"), "not a file")
}

func TestLongFilesAreReadInParts(t *testing.T) {
	t.Parallel()
	files, _ := grove(t)
	require.NoError(t, files.write("long", strings.Repeat("0123456789\n", 40000)))
	part, err := files.read("long", 0)
	require.NoError(t, err)
	require.Less(t, len(part), maxShown+100)
	require.Contains(t, part, "go on with from=18619]")
	rest, err := files.read("long", 39999)
	require.NoError(t, err)
	require.Equal(t, "0123456789\n0123456789\n", rest)
	_, err = files.read("long", 50000)
	require.ErrorContains(t, err, "no line 50000")
	require.NoError(t, files.write("binary", "a\x00b"))
	_, err = files.read("binary", 0)
	require.ErrorContains(t, err, "not a text file")
}

func TestShownFilesFitTheRoom(t *testing.T) {
	t.Parallel()
	files, _ := grove(t)
	require.NoError(t, files.write("a", "small\n"))
	require.NoError(t, files.write("b", strings.Repeat("large", 100)))
	require.NoError(t, files.write("c", "has ``` in it"))
	shown := files.show([]string{"*", "a", "[", "no/such"}, 100)
	require.Equal(t, 1, strings.Count(shown, "### a"))
	require.Contains(t, shown, "````\nhas ``` in it\n````")
	require.Contains(t, shown, "Too large to be shown: b")
}

func FuzzPathsStayInside(f *testing.F) {
	for _, s := range []string{"a/b", "../x", "/a", ".git/x", "a/./b", "a//b", "..", "\x00", "con/../.GIT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := inside(name)
		if err != nil {
			return
		}
		require.True(t, filepath.IsLocal(clean), clean)
		for part := range strings.SplitSeq(clean, "/") {
			require.False(t, strings.EqualFold(part, ".git"))
			require.NotEqual(t, "..", part)
		}
	})
}
