package workercmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Crash tests iterate KillPoints: a point that is not listed would never be tried.
func TestKillPointsAreAllListed(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, append(points(t, "../gitrepo"), points(t, "../../activities")...), slices.Concat(KillPoints(), GatePoints(), PublishPoints()))
}

// points are the values of a package's constants Point….
func points(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Point") || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				found = append(found, value)
			}
			return true
		})
	}
	require.NotEmpty(t, found)
	return found
}

func TestAMisspeltKillPointIsRefused(t *testing.T) {
	t.Setenv(killVariable, "after-lunch")
	_, err := killPoint()
	require.ErrorContains(t, err, "after-lunch")
	t.Setenv(killVariable, KillPoints()[0]+"=/some/file")
	hook, err := killPoint()
	require.NoError(t, err)
	require.NotNil(t, hook)
}
