package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/testkit"
)

var (
	caseRow   = regexp.MustCompile(`(?m)^\| (\d+) \|.*\|$`)
	namedTest = regexp.MustCompile("`([a-z0-9]+)\\.(Test\\w+)(?:/([\\w-]+))?`")
)

// TestEveryCaseNamesTestsThatExist keeps docs/cases.md honest.
func TestEveryCaseNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "cases.md"))
	require.NoError(t, err)
	var numbers []int
	misdeeds, known := hostileEndings(), testsByPackage(t)
	for _, row := range caseRow.FindAllStringSubmatch(string(data), -1) {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		numbers = append(numbers, n)
		named := namedTest.FindAllStringSubmatch(row[0], -1)
		require.NotEmpty(t, named, "case %d names no test", n)
		for _, name := range named {
			pkg, test, sub := name[1], name[2], name[3]
			require.Contains(t, known[pkg], test, "case %d: package %s has no such test", n, pkg)
			switch {
			case sub == "":
			case test == "TestHostileWorkers":
				require.Contains(t, misdeeds, sub, "case %d", n)
			case test == "TestScripts":
				require.FileExists(t, sub+".txtar", "case %d", n)
			}
		}
	}
	require.Len(t, numbers, 72)
	for i, n := range numbers {
		require.Equal(t, i+1, n, "in order, each once")
	}
}

// testsByPackage lists the module's tests by the name of their folder.
func testsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	found := map[string][]string{}
	for _, pattern := range []string{"*", "*/*", "*/*/*"} {
		files, err := filepath.Glob(filepath.Join(testkit.Root(), filepath.FromSlash(pattern), "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			pkg := filepath.Base(filepath.Dir(file))
			for _, f := range function.FindAllStringSubmatch(string(data), -1) {
				if !slices.Contains(found[pkg], f[1]) && !strings.HasPrefix(f[1], "TestMain") {
					found[pkg] = append(found[pkg], f[1])
				}
			}
		}
	}
	return found
}
