package gate_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
)

var update = flag.Bool("update", false, "rewrite the expectations of the fixtures")

// want names the file of a fixture that holds what is expected of the others.
const want = "WANT"

// treeOf is the tree of an archive, without its expectation.
type treeOf map[string]string

func (t treeOf) Paths() ([]string, error) {
	var out []string
	for p := range t {
		out = append(out, p)
	}
	return out, nil
}

func (t treeOf) Read(p string) ([]byte, error) {
	data, ok := t[p]
	if !ok {
		return nil, fmt.Errorf("read %s: not in the tree", p)
	}
	return []byte(data), nil
}

// TestDiscover runs every fixture of testdata/discover: a repository, and the
// commands, sources, residuals and warnings that it must give, in order.
func TestDiscover(t *testing.T) {
	t.Parallel()
	fixtures, err := filepath.Glob("testdata/discover/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, fixtures)
	for _, file := range fixtures {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			tree, expected := treeOf{}, ""
			for _, f := range archive.Files {
				if f.Name == want {
					expected = string(f.Data)
					continue
				}
				tree[f.Name] = string(f.Data)
			}
			found, err := gate.Discover(tree)
			require.NoError(t, err)
			if *update {
				rewrite(t, file, archive, describe(found))
				return
			}
			require.Equal(t, expected, describe(found))
		})
	}
}

func describe(d gate.Discovery) string {
	var b strings.Builder
	for _, c := range append(append([]contract.GateCommand{}, d.Setup...), d.Commands...) {
		fmt.Fprintf(&b, "%s: %s\n", c.Layer, gate.Name(c))
	}
	for _, list := range []struct {
		name  string
		lines []string
	}{{"source", d.Sources}, {"residual", d.Residual}, {"warning", d.Warnings}} {
		for _, line := range list.lines {
			fmt.Fprintf(&b, "%s: %s\n", list.name, line)
		}
	}
	return b.String()
}

func rewrite(t *testing.T, file string, archive *txtar.Archive, text string) {
	t.Helper()
	kept := archive.Files[:0]
	for _, f := range archive.Files {
		if f.Name != want {
			kept = append(kept, f)
		}
	}
	archive.Files = append(kept, txtar.File{Name: want, Data: []byte(text)})
	require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
}

type brokenTree struct{ treeOf }

var errDisk = errors.New("disk on fire")

func (brokenTree) Read(string) ([]byte, error) { return nil, errDisk }

func TestDiscoverReportsFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := gate.Discover(brokenTree{treeOf{"package.json": "{}"}})
	require.ErrorIs(t, err, errDisk)
	require.ErrorContains(t, err, "read package.json")
}

// TestDiscoverNeverPanicsAndIsStable feeds files of known names with hostile contents, in any order.
func TestDiscoverNeverPanicsAndIsStable(t *testing.T) {
	t.Parallel()
	names := []string{
		"package.json", "pnpm-workspace.yaml", "pnpm-lock.yaml", "Cargo.toml", "go.mod", "go.work", "main.go", "pyproject.toml", "setup.cfg",
		"pom.xml", "settings.gradle", "build.gradle", "Makefile", "conftest.py", "yarn.lock",
	}
	contents := []string{
		"", "{", "{}", "[]", "null", `{"scripts":{"test":"x","build":""},"workspaces":["*","!b",null]}`, `{"workspaces":{"packages":["a/**"]}}`,
		"[workspace]\nexclude=['a','b/*']", "[tool.pytest]\n[tool.mypy]\nfiles=1", "use (\n\t./a\n\t../x\n)", "<project><modules><module>a</module></modules></project>",
		"packages: ['*']", "test:\n\ttrue\ncheck : test", "[tool:pytest]", "\xff\xfe\x00", "packages: {a: b}", "go 1.26\nuse ./a\nuse ./a",
	}
	rapid.Check(t, func(t *rapid.T) {
		tree := treeOf{}
		for range rapid.IntRange(0, 12).Draw(t, "files") {
			dir := rapid.SampledFrom([]string{"", "a/", "a/b/", "b/", "vendor/x/", "ü x/", "-a/"}).Draw(t, "dir")
			name := rapid.SampledFrom(names).Draw(t, "name")
			tree[dir+name] = rapid.OneOf(rapid.SampledFrom(contents), rapid.String()).Draw(t, "content")
		}
		first, err := gate.Discover(tree)
		require.NoError(t, err)
		second, err := gate.Discover(tree) // its Paths come in another order
		require.NoError(t, err)
		require.Equal(t, first, second)
		for _, c := range first.Commands {
			require.NotContains(t, c.Dir, "vendor")
			require.NotEmpty(t, c.Command.Argv)
		}
	})
}

func TestCommandsPrefersThePlan(t *testing.T) {
	t.Parallel()
	vet := plan.Command{Argv: []string{"go", "vet", "./..."}}
	line := plan.Command{Shell: "make ci"}
	found := gate.Discovery{Commands: []contract.GateCommand{{Command: vet, Layer: gate.LayerCheck, Dir: "sub"}}}

	got, err := gate.Commands(plan.Gate{Commands: []plan.Command{line, vet}}, found)
	require.NoError(t, err)
	require.Equal(t, []contract.GateCommand{{Command: line, Layer: gate.LayerPlan}, {Command: vet, Layer: gate.LayerPlan}}, got)

	got, err = gate.Commands(plan.Gate{}, found)
	require.NoError(t, err)
	require.Equal(t, found.Commands, got)

	got, err = gate.Commands(plan.Gate{Disabled: true}, found)
	require.NoError(t, err)
	require.Empty(t, got)

	_, err = gate.Commands(plan.Gate{}, gate.Discovery{})
	require.ErrorIs(t, err, gate.ErrNoCommands)
}
