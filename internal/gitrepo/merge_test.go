package gitrepo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// mergeTwo lands one edit, and merges another that was made on the same base.
func mergeTwo(t *testing.T, first, second func(dir string), shared func(string) bool) (*bench, MergeResult) {
	t.Helper()
	b := openRun(t, false, nil)
	a1, a2 := attempt("n1", 1), attempt("n2", 1)
	f1, w1 := b.start(a1)
	_, w2 := b.start(a2)
	first(w1.Path())
	second(w2.Path())
	require.Equal(t, Landed, b.land(a1, f1, w1).Status)
	work, err := w2.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	commit, err := w2.Commit(t.Context(), CommitRequest{Attempt: a2, Work: work, Message: "x", When: testTime})
	require.NoError(t, err)
	res, err := b.mirror.Merge(t.Context(), MergeRequest{Truth: b.truth(), Base: w2.Base(), Commit: commit, SharedAppend: shared})
	require.NoError(t, err)
	return b, res
}

func edit(t *testing.T, name, text string) func(string) {
	return func(dir string) { writeFile(t, dir, name, text) }
}

func TestConflictNamesItsPaths(t *testing.T) {
	t.Parallel()
	_, res := mergeTwo(t,
		func(d string) { writeFile(t, d, "src/a.txt", "one\n"); writeFile(t, d, "src/x ü\n.txt", "one\n") },
		func(d string) { writeFile(t, d, "src/a.txt", "two\n"); writeFile(t, d, "src/x ü\n.txt", "two\n") }, nil)
	require.False(t, res.Clean)
	require.Equal(t, []string{"src/a.txt", "src/x ü\n.txt"}, res.Conflicts)
}

func TestEditsOfOneFileApartFromEachOtherMerge(t *testing.T) {
	t.Parallel()
	text := seedFiles["src/a.txt"]
	b, res := mergeTwo(t, edit(t, "src/a.txt", "top\n"+text), edit(t, "src/a.txt", text+"end\n"), nil)
	require.True(t, res.Clean)
	got, err := b.mirror.readBlobs(t.Context(), []string{plainGit(t, b.mirror.dir, "rev-parse", res.Tree+":src/a.txt")})
	require.NoError(t, err)
	for _, v := range got {
		require.Equal(t, "top\n"+text+"end\n", string(v))
	}
}

func TestSharedAppendTakesOursThenTheirs(t *testing.T) {
	t.Parallel()
	all := func(string) bool { return true }
	list := seedFiles["docs/list.md"]
	show := func(b *bench, res MergeResult, path string) string {
		return plainGit(t, b.mirror.dir, "cat-file", "blob", res.Tree+":"+path) + "\n"
	}
	b, res := mergeTwo(t, edit(t, "docs/list.md", list+"- ours\n"), edit(t, "docs/list.md", list+"- theirs"), all)
	require.True(t, res.Clean)
	require.Equal(t, []string{"docs/list.md"}, res.Appended)
	require.Equal(t, list+"- ours\n- theirs\n", show(b, res, "docs/list.md"))

	b, res = mergeTwo(t, edit(t, "docs/new.md", "ours\n"), edit(t, "docs/new.md", "theirs\n"), all)
	require.True(t, res.Clean)
	require.Equal(t, "ours\ntheirs\n", show(b, res, "docs/new.md"))

	_, res = mergeTwo(t, edit(t, "docs/list.md", list+"- ours\n"), edit(t, "docs/list.md", list+"- theirs\n"),
		func(p string) bool { return p != "docs/list.md" })
	require.False(t, res.Clean, "not declared")

	_, res = mergeTwo(t, edit(t, "docs/list.md", list+"- ours\n"), edit(t, "docs/list.md", "- one\n- changed\n"), all)
	require.False(t, res.Clean, "not an addition")
	require.Equal(t, []string{"docs/list.md"}, res.Conflicts)

	_, res = mergeTwo(t,
		func(d string) { writeFile(t, d, "docs/list.md", list+"- ours\n"); writeFile(t, d, "src/b.txt", "x\n") },
		func(d string) {
			writeFile(t, d, "docs/list.md", list+"- theirs\n")
			writeFile(t, d, "src/b.txt", "y\n")
		}, all)
	require.False(t, res.Clean, "one of the paths is no addition")
	require.Equal(t, []string{"src/b.txt"}, res.Conflicts)
	require.Empty(t, res.Appended)

	_, res = mergeTwo(t, edit(t, "bin/blob", "a\x00b"), edit(t, "bin/blob", "a\x00c"), all)
	require.False(t, res.Clean, "binary")
}

func TestOnlyAddsIsAboutWholeLinesInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b", "c", ""})
		before := rapid.SliceOf(line).Draw(t, "before")
		after := append([]string(nil), before...)
		for range rapid.IntRange(0, 4).Draw(t, "additions") {
			at := rapid.IntRange(0, len(after)).Draw(t, "at")
			after = append(after[:at], append([]string{line.Draw(t, "line")}, after[at:]...)...)
		}
		text := func(lines []string) []byte {
			var b strings.Builder
			for _, l := range lines {
				b.WriteString(l + "\n")
			}
			return []byte(b.String())
		}
		require.True(t, onlyAdds(text(before), text(after)))
		if len(before) > 0 {
			fewer := append([]string(nil), before[1:]...)
			require.False(t, onlyAdds(text(before), text(fewer)))
		}
	})
}
