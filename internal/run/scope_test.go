package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func scope(globs ...string) *plan.Scope { return plan.CompileScope(globs, false) }

func changes(paths ...string) []Change {
	var cs []Change
	for _, p := range paths {
		cs = append(cs, Change{Path: p, Bytes: 10})
	}
	return cs
}

func TestScopeDecidesPerPath(t *testing.T) {
	t.Parallel()
	others := []Owner{{Node: "N-2", Scope: scope("b/**")}, {Node: "N-3", Scope: scope()}}
	for name, c := range map[string]struct {
		paths []string
		rules ScopeRules
		want  ScopeVerdict
	}{
		"inside passes": {[]string{"a/x.go", "a/ü y.go"}, ScopeRules{Scope: scope("a/**"), Others: others}, ScopeVerdict{}},
		"outside is refused": {
			[]string{"z.go", "c.go"}, ScopeRules{Scope: scope("a/**"), Others: others, Policy: plan.ScopeStrict},
			ScopeVerdict{Refused: []Refusal{{Path: "c.go", Kind: RefusedUndeclared}, {Path: "z.go", Kind: RefusedUndeclared}}},
		},
		"a path of another open node is a seam, also under widen": {
			[]string{"b/x.go"}, ScopeRules{Scope: scope("a/**"), Others: others, Policy: plan.ScopeWiden},
			ScopeVerdict{Refused: []Refusal{{Path: "b/x.go", Kind: RefusedSeam, Node: "N-2"}}},
		},
		"own scope wins where scopes overlap": {[]string{"b/x.go"}, ScopeRules{Scope: scope("b/x.go"), Others: others}, ScopeVerdict{}},
		"an empty scope owns every unprotected path": {
			[]string{"b/x.go", "q", ".github/workflows/ci.yml"}, ScopeRules{Scope: scope(), Others: others, AllowProtected: true},
			ScopeVerdict{Refused: []Refusal{{Path: ".github/workflows/ci.yml", Kind: RefusedProtected}}},
		},
		"must_not_touch is refused always": {
			[]string{"a/api/x.go"}, ScopeRules{Scope: scope("a/api/x.go"), MustNotTouch: scope("a/api/**"), AllowProtected: true, Policy: plan.ScopeWiden},
			ScopeVerdict{Refused: []Refusal{{Path: "a/api/x.go", Kind: RefusedMustNotTouch}}},
		},
		"must_not_touch without globs refuses nothing": {[]string{"a/x"}, ScopeRules{Scope: scope("a/**"), MustNotTouch: scope()}, ScopeVerdict{}},
		"protected by glob is refused": {
			[]string{"Makefile"}, ScopeRules{Scope: scope("**"), Protected: []string{"Makefile"}, AllowProtected: true},
			ScopeVerdict{Refused: []Refusal{{Path: "Makefile", Kind: RefusedProtected}}},
		},
		"protected by name without allow_protected is refused": {
			[]string{"Makefile"}, ScopeRules{Scope: scope("Makefile"), Protected: []string{"Makefile"}},
			ScopeVerdict{Refused: []Refusal{{Path: "Makefile", Kind: RefusedProtected}}},
		},
		"protected by name with allow_protected lands and is listed": {
			[]string{"Makefile"}, ScopeRules{Scope: scope("Makefile"), Protected: []string{"Makefile"}, AllowProtected: true},
			ScopeVerdict{Protected: []string{"Makefile"}},
		},
		"widen lets few undeclared paths pass": {
			[]string{"a/x", "q", "p"}, ScopeRules{Scope: scope("a/**"), Policy: plan.ScopeWiden}, ScopeVerdict{Widened: []string{"p", "q"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, CheckScope(changes(c.paths...), c.rules))
		})
	}
}

func TestWideningIsCapped(t *testing.T) {
	t.Parallel()
	rules := ScopeRules{Scope: scope("a/**"), Policy: plan.ScopeWiden}
	var many []Change
	for i := range MaxWidenedPaths + 1 {
		many = append(many, Change{Path: fmt.Sprintf("p%02d", i)})
	}
	require.Len(t, CheckScope(many[1:], rules).Widened, MaxWidenedPaths)
	v := CheckScope(many, rules)
	require.Len(t, v.Refused, MaxWidenedPaths+1)
	require.Equal(t, RefusedTooMuch, v.Refused[0].Kind)
	v = CheckScope([]Change{{Path: "big", Bytes: MaxWidenedBytes + 1}}, rules)
	require.Equal(t, []Refusal{{Path: "big", Kind: RefusedTooMuch}}, v.Refused)
}

func TestProtectedPaths(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		".github/workflows/ci.yml", ".gitlab-ci.yml", "sub/.gitignore", ".gitattributes", ".GitModules", "Jenkinsfile", "ci/jenkinsfile",
		".ci/run", ".circleci/config.yml", "azure-pipelines.yml", "deep/.travis.yml", "go.mod", "GO.MOD",
	} {
		require.True(t, ProtectedPath(p, []string{"go.mod"}), p)
	}
	for _, p := range []string{"main.go", "github/x.go", "docs/git.md", "a/go.mod", "ci/run.go"} {
		require.False(t, ProtectedPath(p, []string{"go.mod"}), p)
	}
}

func TestRefusalsOfSeveralKindsAreTheWorkersFault(t *testing.T) {
	t.Parallel()
	seam, other := Refusal{Path: "a", Kind: RefusedSeam, Node: "N"}, Refusal{Path: "b", Kind: RefusedUndeclared}
	require.Equal(t, contract.CauseConflict, ScopeVerdict{Refused: []Refusal{seam}}.cause())
	require.Equal(t, contract.CauseWork, ScopeVerdict{Refused: []Refusal{seam, other}}.cause())
}
