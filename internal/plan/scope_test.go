package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestScopesOverlap(t *testing.T) {
	t.Parallel()
	cases := []struct {
		a, b string
		fold bool
		want bool
	}{
		{a: "client/**", b: "server/**", want: false},
		{a: "client/**", b: "client/tls.go", want: true},
		{a: "client/*.go", b: "client/*_test.go", want: true},
		{a: "client/*.go", b: "client/*.md", want: false},
		{a: "**/*.go", b: "docs/*.md", want: false},
		{a: "**/*.go", b: "docs/**", want: true},
		{a: "a/**/z", b: "a/b/c/z", want: true},
		{a: "a/**/z", b: "a/b/c/y", want: false},
		{a: "a/**/x/**", b: "**/x/b", want: true},
		{a: "{a,b}/x", b: "{b,c}/x", want: true},
		{a: "{a,b}/x", b: "{c,d}/x", want: false},
		{a: "a/{b/c,d}", b: "a/b/*", want: true},
		{a: "[ab].go", b: "[cd].go", want: false},
		{a: "[a-m].go", b: "[k-z].go", want: true},
		{a: "[!a].go", b: "a.go", want: false},
		{a: "[!a].go", b: "[a].go", want: false},
		{a: "[!a].go", b: "[!b].go", want: true},
		{a: "README.md", b: "readme.md", want: false},
		{a: "README.md", b: "readme.md", fold: true, want: true},
		{a: "[A-C].md", b: "b.md", fold: true, want: true},
		{a: "caf\u00e9/**", b: "cafe\u0301/x", want: true},
		{a: "client", b: "client/tls.go", want: true},
		{a: "client", b: "client2/tls.go", want: false},
		{a: "client/", b: "client/sub/tls.go", want: true},
		{a: "./client//x", b: "client/x", want: true},
		{a: `a\*b`, b: "axb", want: false},
		{a: `a\*b`, b: "a?b", want: true},
		{a: "[broken", b: "else", want: true},
		{a: "**", b: "x", want: true},
		{a: "*", b: "x/y", want: false},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s against %s fold %v", c.a, c.b, c.fold), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, ScopesOverlap([]string{c.a}, []string{c.b}, c.fold))
			require.Equal(t, c.want, ScopesOverlap([]string{c.b}, []string{c.a}, c.fold))
		})
	}
}

func TestEmptyScopeIsExclusive(t *testing.T) {
	t.Parallel()
	empty, other := CompileScope(nil, false), CompileScope([]string{"a"}, false)
	require.True(t, empty.Overlaps(other))
	require.True(t, other.Overlaps(empty))
	require.True(t, other.Conflicts(empty, true), "shared_append does not soften an exclusive scope")
	require.False(t, empty.Match("a"))
	require.True(t, new(Scope).Exclusive())
}

func TestSharedAppendLetsScopesOverlap(t *testing.T) {
	t.Parallel()
	a, b := CompileScope([]string{"CHANGELOG.md"}, false), CompileScope([]string{"*.md"}, false)
	require.True(t, a.Conflicts(b, false))
	require.False(t, a.Conflicts(b, true))
}

func TestMatchFollowsCaseAndNormalForm(t *testing.T) {
	t.Parallel()
	require.True(t, InScope([]string{"caf\u00e9/*"}, "cafe\u0301/x", false))
	require.False(t, InScope([]string{"Makefile"}, "makefile", false))
	require.True(t, InScope([]string{"Makefile"}, "makefile", true))
	require.True(t, InScope([]string{"[a-c]/K"}, "B/\u212a", true), "the Kelvin sign folds to k")
	require.True(t, InScope([]string{"client/"}, "client/a/b", false))
	require.False(t, InScope([]string{"client"}, "client/a", false))
	require.True(t, InScope([]string{"dir with space/-x\n*"}, "dir with space/-x\ny", false))
}

func TestNamedLiterallyNeedsTheExactPath(t *testing.T) {
	t.Parallel()
	require.True(t, NamedLiterally([]string{".github/workflows/ci.yml"}, ".github/workflows/ci.yml", false))
	require.True(t, NamedLiterally([]string{".github/{a,ci}.yml"}, ".github/ci.yml", false))
	require.False(t, NamedLiterally([]string{".github/**"}, ".github/ci.yml", false))
	require.True(t, NamedLiterally([]string{`we\[ird\]`}, "we[ird]", false))
}

func TestMatchingGlobIsTheOneAsWritten(t *testing.T) {
	t.Parallel()
	s := CompileScope([]string{"a/**", "{b,c}/*.go"}, false)
	got, ok := s.MatchingGlob("c/x.go")
	require.True(t, ok)
	require.Equal(t, "{b,c}/*.go", got)
	require.Equal(t, []GlobPair{{"{b,c}/*.go", "c/**"}}, s.OverlappingGlobs(CompileScope([]string{"c/**", "d"}, false), 5))
}

// globs and paths over a small alphabet meet often.
func genGlob() *rapid.Generator[string] {
	part := rapid.OneOf(
		rapid.Just("**"),
		rapid.StringOfN(rapid.SampledFrom([]rune("abAB*?")), 1, 4, -1).Filter(func(s string) bool { return !strings.Contains(s, "**") }),
		rapid.SampledFrom([]string{"[ab]", "[!a]", "[a-b]*", "{a,b}", "{a,?b}c", "*a", "a*b*", "é", "\\*"}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "/")
	})
}

func genPath() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("abABc*é")), 1, 3, -1)
		return strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "/")
	})
}

func TestGlobsThatShareAPathOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := genGlob().Draw(t, "a"), genGlob().Draw(t, "b")
		path := genPath().Draw(t, "path")
		fold := rapid.Bool().Draw(t, "fold")
		if InScope([]string{a}, path, fold) && InScope([]string{b}, path, fold) {
			require.True(t, ScopesOverlap([]string{a}, []string{b}, fold))
		}
		require.Equal(t, ScopesOverlap([]string{a}, []string{b}, fold), ScopesOverlap([]string{b}, []string{a}, fold))
		if ScopesOverlap([]string{a}, []string{b}, false) {
			require.True(t, ScopesOverlap([]string{a}, []string{b}, true), "folding only adds paths")
		}
	})
}

func TestMatchAgreesWithDoublestar(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, path := genGlob().Draw(t, "glob"), genPath().Draw(t, "path")
		want, err := doublestar.Match(g, path)
		require.NoError(t, err)
		got := InScope([]string{g}, path, false)
		// doublestar lets a negated class match a slash, and does not always let a
		// ** at the end match nothing.
		if !strings.Contains(g, "[!a]") && (want || !strings.HasSuffix(g, "**")) {
			require.Equal(t, want, got)
		}
	})
}

func TestCanonicalPath(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a/b": "a/b", "./a//b/": "a/b", "cafe\u0301": "caf\u00e9", "-x y\n": "-x y\n", ".gitignore": ".gitignore",
	} {
		got, err := CanonicalPath(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", ".", "/a", "../a", "a/../b", ".git/config", "sub/.GIT", "C:\\x", "C:/x", "a\x00", "\xff"} {
		_, err := CanonicalPath(in)
		require.Error(t, err, in)
	}
}

func BenchmarkScopesPairwise(b *testing.B) {
	scopes := make([]*Scope, 2000)
	for i := range scopes {
		scopes[i] = CompileScope([]string{fmt.Sprintf("svc/s%d/**", i), fmt.Sprintf("pkg/p%d/*.go", i), "docs/**/*.md"}, false)
	}
	for b.Loop() {
		overlapping := 0
		for i := range scopes {
			for j := range i {
				if scopes[i].Overlaps(scopes[j]) {
					overlapping++
				}
			}
		}
		require.Equal(b, 1999000, overlapping)
	}
}
