package gate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
)

// shell runs real programs in a folder.
type shell struct{ root string }

func (s shell) Run(ctx context.Context, job gate.Job) (gate.Exit, error) {
	argv := job.Command.Argv
	if job.Command.Shell != "" {
		argv = []string{"sh", "-c", job.Command.Shell}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(s.root, job.Dir), job.Output, job.Output
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return gate.Exit{Code: exit.ExitCode()}, nil
	}
	return gate.Exit{}, err
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return root
}

// broken is a module with one package of each kind of failure.
var broken = map[string]string{
	"go.mod":            "module example.com/broken\n\ngo 1.26\n",
	"ok/ok.go":          "package ok\n\nfunc F() int { return 1 }\n",
	"ok/ok_test.go":     "package ok\n\nimport \"testing\"\n\nfunc TestFine(t *testing.T) { t.Log(\"chatter of a passing test\") }\nfunc TestBad(t *testing.T) { t.Run(\"one\", func(t *testing.T) { t.Fatal(\"the reason\") }) }\n",
	"nobuild/x.go":      "package nobuild\n\nfunc F() int { return missing }\n",
	"nobuild/x_test.go": "package nobuild\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
	"panics/x_test.go":  "package panics\n\nimport \"testing\"\n\nfunc TestBoom(t *testing.T) { panic(\"boom\") }\nfunc TestAfter(t *testing.T) {}\n",
	"exits/x_test.go":   "package exits\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(3) }\n",
}

func runGo(t *testing.T, root string, baseline *gate.Result, argv string) gate.Result {
	t.Helper()
	r, err := gate.Run(t.Context(), shell{root}, gate.Request{Commands: []contract.GateCommand{in(gate.LayerTest, argv)}, Root: root, Baseline: baseline, Once: true})
	require.NoError(t, err)
	return r
}

func TestGoTestIsReadByTestID(t *testing.T) {
	t.Parallel()
	root := folder(t, broken)
	base := runGo(t, root, nil, "go test ./...")
	c := base.Commands[0]
	require.Equal(t, gate.StatusRed, c.Status)
	require.Equal(t, []string{
		"example.com/broken/exits: failed", "example.com/broken/nobuild: build failed",
		"example.com/broken/ok: TestBad", "example.com/broken/ok: TestBad/one", "example.com/broken/panics: TestBoom",
		"nobuild/x.go: undefined: missing",
	}, c.IDs)
	require.Equal(t, []string{"example.com/broken/exits", "example.com/broken/nobuild", "example.com/broken/panics"}, c.Blind)
	require.Contains(t, c.Tail, "the reason")
	require.Contains(t, c.Tail, "FAIL\texample.com/broken/nobuild [build failed]")
	require.NotContains(t, c.Tail, `"Action"`, "people read text, not events")
	require.NotContains(t, c.Tail, "chatter of a passing test")
	require.Equal(t, []string{"go", "test", "./..."}, c.Command.Argv, "the command is named as it was asked for")

	// A new failing test turns it red; tests behind a repaired build do not.
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	write("nobuild/x.go", "package nobuild\n")
	write("nobuild/x_test.go", "package nobuild\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Fatal() }\n")
	hidden := runGo(t, root, &base, "go test ./...")
	require.Equal(t, gate.VerdictGreen, hidden.Verdict)
	require.Equal(t, []string{"go test ./...: example.com/broken/nobuild cannot be compared: a failure at the base hid what it does"}, hidden.Residual)
	write("ok/new_test.go", "package ok\n\nimport \"testing\"\n\nfunc TestNew(t *testing.T) { t.Fatal() }\n")
	worse := runGo(t, root, &base, "go test ./...")
	require.Equal(t, []string{"example.com/broken/ok: TestNew"}, worse.Commands[0].New)
}

func TestGoVetAndBuildAreReadByFinding(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"go.mod": "module example.com/vet\n\ngo 1.26\n",
		"p/p.go": "package p\n\nimport \"fmt\"\n\nfunc F() { fmt.Printf(\"%d\", \"x\") }\n",
	})
	base := runGo(t, root, nil, "go vet ./...")
	require.Equal(t, []string{`p/p.go: fmt.Printf format %d has arg "x" of wrong type string`}, base.Commands[0].IDs)
	// The finding moves and is repeated: the second is new.
	text := "package p\n\nimport \"fmt\"\n\n// A comment above.\nfunc F() {\n\tfmt.Printf(\"%d\", \"x\")\n\tfmt.Printf(\"%d\", \"x\")\n}\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "p/p.go"), []byte(text), 0o644))
	worse := runGo(t, root, &base, "go vet ./...")
	require.Equal(t, []string{`p/p.go: fmt.Printf format %d has arg "x" of wrong type string #2`}, worse.Commands[0].New)

	require.NoError(t, os.WriteFile(filepath.Join(root, "p/p.go"), []byte("package p\n\nfunc F() { undefined() }\n"), 0o644))
	require.Equal(t, []string{"p/p.go: undefined: undefined"}, runGo(t, root, nil, "go build ./...").Commands[0].IDs)
}

const surefire = `<?xml version="1.0"?><testsuite><testcase classname="a.B" name="one"/><testcase classname="a.B" name="two"><failure message="x"/></testcase>%s</testsuite>`

func TestJUnitFilesThatTheCommandWroteAreRead(t *testing.T) {
	t.Parallel()
	stale := fmt.Sprintf(surefire, `<testcase classname="a.Stale" name="committed"><error/></testcase>`)
	root := folder(t, map[string]string{"core/target/surefire-reports/TEST-a.Stale.xml": stale})
	script := func(cases, say string) string {
		text := "#!/bin/sh\nmkdir -p core/target/surefire-reports\ncat > core/target/surefire-reports/TEST-a.B.xml <<'X'\n" + fmt.Sprintf(surefire, cases) + "\nX\ncat <<'X'\n" + say + "\nX\nexit 1\n"
		require.NoError(t, os.WriteFile(filepath.Join(root, "mvnw"), []byte(text), 0o755))
		return text
	}
	dir, err := os.OpenRoot(root)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	run := func(base *gate.Result) gate.Result {
		r, err := gate.Run(t.Context(), shell{root}, gate.Request{Commands: []contract.GateCommand{in(gate.LayerTest, "./mvnw test")}, Root: root, Tree: dir.FS(), Baseline: base, Once: true})
		require.NoError(t, err)
		return r
	}
	script("", "[ERROR] Failed to execute goal org.apache:surefire:3.1:test (default-test) on project core: There are test failures.")
	base := run(nil)
	require.Equal(t, []string{"a.B: two", "maven core: org.apache:surefire:3.1:test default-test"}, base.Commands[0].IDs)
	require.Equal(t, gate.VerdictGreen, run(&base).Verdict)
	script(`<testcase classname="a.C" name="three &amp; more"><error/></testcase>`, "")
	require.Equal(t, []string{"a.C: three & more"}, run(&base).Commands[0].New)
	script("", "[ERROR] Failed to execute goal org.apache:checkstyle:3.1:check (default) on project core: violations")
	require.Equal(t, []string{"maven core: org.apache:checkstyle:3.1:check default"}, run(&base).Commands[0].New, "another red step does not hide behind known tests")
	require.NoError(t, os.WriteFile(filepath.Join(root, "mvnw"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	require.Equal(t, gate.VerdictRed, run(&base).Verdict, "files of an earlier run say nothing about this one")
	require.NoError(t, os.WriteFile(filepath.Join(root, "mvnw"), []byte("#!/bin/sh\necho '<testsuite><testcase' > core/target/surefire-reports/TEST-a.B.xml\nexit 1\n"), 0o755))
	require.Equal(t, gate.VerdictRed, run(&base).Verdict, "a file that cannot be understood proves nothing")
}

func TestPytestIsAskedForAJUnitFile(t *testing.T) {
	t.Parallel()
	root := folder(t, nil)
	fake := "#!/bin/sh\nout=${1#--junitxml=}\nprintf '%s' '<testsuites><testsuite><testcase classname=\"tests.test_a\" name=\"test_x\"><failure/></testcase></testsuite></testsuites>' > $out\necho args: \"$@\"\nexit 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "pytest"), []byte(fake), 0o755))
	dir, err := os.OpenRoot(root)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	r, err := gate.Run(t.Context(), shell{root}, gate.Request{Commands: []contract.GateCommand{in(gate.LayerTest, "./pytest -q")}, Root: root, Tree: dir.FS(), Once: true})
	require.NoError(t, err)
	require.Equal(t, []string{"tests.test_a: test_x"}, r.Commands[0].IDs)
	require.Equal(t, "args: --junitxml=.mendflow-junit.xml -q", r.Commands[0].Tail)
}
