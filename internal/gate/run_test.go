package gate_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
)

// scripted answers each command line with its next exit, the last one for ever.
type scripted struct {
	exits map[string][]gate.Exit
	text  map[string]string
	ran   []string
	err   error
}

func (s *scripted) Run(_ context.Context, job gate.Job) (gate.Exit, error) {
	name := job.Command.String()
	s.ran = append(s.ran, name)
	if s.err != nil {
		return gate.Exit{}, s.err
	}
	if _, err := job.Output.Write([]byte(s.text[name])); err != nil {
		return gate.Exit{}, err
	}
	exits := s.exits[name]
	if len(exits) == 0 {
		return gate.Exit{Elapsed: time.Second}, nil
	}
	if len(exits) > 1 {
		s.exits[name] = exits[1:]
	}
	return exits[0], nil
}

func in(layer, argv string) contract.GateCommand {
	return contract.GateCommand{Command: plan.Command{Argv: strings.Fields(argv)}, Layer: layer}
}

var (
	exitRed  = gate.Exit{Code: 1, Elapsed: time.Second}
	exitOK   = gate.Exit{Elapsed: time.Second}
	exitLate = gate.Exit{Code: 143, TimedOut: true, Elapsed: time.Minute}
)

func statuses(r gate.Result) []gate.Status {
	out := make([]gate.Status, len(r.Commands))
	for i, c := range r.Commands {
		out[i] = c.Status
	}
	return out
}

var layered = []contract.GateCommand{
	in(gate.LayerBuild, "build one"), in(gate.LayerCheck, "check one"), in(gate.LayerCheck, "check two"), in(gate.LayerTest, "test one"),
}

func TestRunGoesThroughAllLayers(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: layered, Commit: "c", Residual: []string{"b", "a", "b"}})
	require.NoError(t, err)
	require.Equal(t, gate.VerdictGreen, r.Verdict)
	require.Equal(t, []string{"build one", "check one", "check two", "test one"}, s.ran)
	require.Equal(t, []string{"a", "b"}, r.Residual)
	require.InDelta(t, 4, r.Seconds, 0.001)
	require.Equal(t, "c", r.Commit)
}

func TestRunStopsAfterTheFirstRedLayer(t *testing.T) {
	t.Parallel()
	s := &scripted{exits: map[string][]gate.Exit{"check one": {exitRed}}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: layered})
	require.NoError(t, err)
	require.Equal(t, gate.VerdictRed, r.Verdict)
	require.Equal(t, []gate.Status{gate.StatusGreen, gate.StatusRed, gate.StatusGreen, gate.StatusSkipped}, statuses(r))
	require.Equal(t, []string{"build one", "check one", "check one", "check two"}, s.ran, "the whole layer runs, the next does not")
	failing, ok := r.Failing()
	require.True(t, ok)
	require.Equal(t, "check one fails (exit code 1)", failing.Explain())
	require.Equal(t, "test one did not run: an earlier layer is red", r.Commands[3].Explain())
}

func TestRunOfABaselineGoesOnBehindARedLayer(t *testing.T) {
	t.Parallel()
	s := &scripted{exits: map[string][]gate.Exit{"build one": {exitRed}, "test one": {exitRed}}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: layered, All: true})
	require.NoError(t, err)
	require.Equal(t, []gate.Status{gate.StatusRed, gate.StatusGreen, gate.StatusGreen, gate.StatusRed}, statuses(r))
}

func TestCommandsOfThePlanAreLayersOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := &scripted{exits: map[string][]gate.Exit{"one": {exitRed}}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: gate.FromPlan([]plan.Command{{Shell: "one"}, {Shell: "two"}})})
	require.NoError(t, err)
	require.Equal(t, []gate.Status{gate.StatusRed, gate.StatusSkipped}, statuses(r))
}

func TestOnlyTheFirstRedIsRunAgain(t *testing.T) {
	t.Parallel()
	s := &scripted{exits: map[string][]gate.Exit{"check one": {exitRed, exitOK}, "check two": {exitRed, exitOK}}, text: map[string]string{"check one": "why\n"}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: layered})
	require.NoError(t, err)
	require.Equal(t, []gate.Status{gate.StatusGreen, gate.StatusFlaky, gate.StatusRed, gate.StatusSkipped}, statuses(r))
	require.Equal(t, 2, r.Commands[1].Runs)
	require.InDelta(t, 2, r.Commands[1].Seconds, 0.001)
	require.Equal(t, "why", r.Commands[1].Tail)

	s = &scripted{exits: map[string][]gate.Exit{"check one": {exitRed, exitOK}}}
	r, err = gate.Run(t.Context(), s, gate.Request{Commands: layered, Commit: "c"})
	require.NoError(t, err)
	require.Equal(t, gate.VerdictFlaky, r.Verdict)
	require.Equal(t, []contract.Friction{{Type: contract.FrictionFlakyGate, Severity: "warning", Discriminator: "check one", Note: "check one was red and then green on the same commit c"}}, r.End().Friction)
}

func TestAStepOfABisectIsNotRunAgain(t *testing.T) {
	t.Parallel()
	s := &scripted{exits: map[string][]gate.Exit{"build one": {exitRed, exitOK}}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: layered[:1], Once: true})
	require.NoError(t, err)
	require.Equal(t, gate.VerdictRed, r.Verdict)
	require.Equal(t, []string{"build one"}, s.ran)
}

func TestATimeoutIsRedAndSaysSo(t *testing.T) {
	t.Parallel()
	s := &scripted{exits: map[string][]gate.Exit{"build one": {exitLate}}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: layered, Timeout: time.Minute})
	require.NoError(t, err)
	require.True(t, r.Commands[0].TimedOut)
	require.Equal(t, "build one ran out of time", r.Commands[0].Explain())
	require.Equal(t, "build one ran out of time", r.End().Detail)
}

func TestAnAcceptedRedBaseCountsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	vet := []contract.GateCommand{in(gate.LayerCheck, "go vet ./..."), in(gate.LayerTest, "make test")}
	s := &scripted{exits: map[string][]gate.Exit{"go vet ./...": {exitRed}, "make test": {exitRed}}, text: map[string]string{"go vet ./...": "a.go:1:1: old\n"}}
	base, err := gate.Run(t.Context(), s, gate.Request{Commands: vet, All: true, Commit: "c"})
	require.NoError(t, err)
	require.Equal(t, gate.VerdictRed, base.Verdict)
	friction, ok := base.BaselineRed()
	require.True(t, ok)
	require.Equal(t, "on the base commit c, go vet ./... fails (exit code 1): a.go: old", friction.Note)

	same, err := gate.Run(t.Context(), s, gate.Request{Commands: vet, Baseline: &base})
	require.NoError(t, err)
	require.Equal(t, gate.VerdictGreen, same.Verdict)
	_, ok = same.BaselineRed()
	require.False(t, ok)
	require.Equal(t, []gate.Status{gate.StatusAccepted, gate.StatusAccepted}, statuses(same))
	require.Equal(t, []string{"make test: red at the base, and its output cannot be compared"}, same.Residual)

	s.text["go vet ./..."] = "a.go:5:1: old\nb.go:2:2: fresh\n"
	worse, err := gate.Run(t.Context(), s, gate.Request{Commands: vet, Baseline: &base})
	require.NoError(t, err)
	require.Equal(t, gate.VerdictRed, worse.Verdict)
	require.Equal(t, []string{"b.go: fresh"}, worse.Commands[0].New)
	require.Equal(t, "go vet ./... fails (exit code 1): b.go: fresh", worse.End().Detail)
}

func TestRunEndsWithTheRunnerAndTheContext(t *testing.T) {
	t.Parallel()
	broken := errors.New("no space left")
	_, err := gate.Run(t.Context(), &scripted{err: broken}, gate.Request{Commands: layered})
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "run build one: no space left")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = gate.Run(ctx, &scripted{}, gate.Request{Commands: layered})
	require.ErrorIs(t, err, context.Canceled, "an interrupted command is no verdict")
}

// memoryLog is a log that remembers how it ended.
type memoryLog struct {
	bytes.Buffer
	name  string
	ended *[]string
	fail  error
}

func (l *memoryLog) Commit(context.Context) (contract.Artifact, error) {
	*l.ended = append(*l.ended, "kept "+l.name+": "+l.String())
	return contract.Artifact{URI: l.name}, l.fail
}

func (l *memoryLog) Discard() { *l.ended = append(*l.ended, "discarded "+l.name) }

func TestEveryRunOfACommandHasALog(t *testing.T) {
	t.Parallel()
	var ended []string
	open := func(_ context.Context, name string) (gate.Log, error) {
		return &memoryLog{name: name, ended: &ended}, nil
	}
	s := &scripted{exits: map[string][]gate.Exit{"build one": {exitRed, exitOK}}, text: map[string]string{"build one": "text"}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: layered[:1], OpenLog: open})
	require.NoError(t, err)
	require.Equal(t, "gate-01", r.Commands[0].FirstLog.URI)
	require.Equal(t, "gate-01-again", r.Commands[0].Log.URI)
	require.Equal(t, []string{"kept gate-01: text", "kept gate-01-again: text"}, ended)

	ended = nil
	_, err = gate.Run(t.Context(), &scripted{err: errors.New("x")}, gate.Request{Commands: layered, OpenLog: open})
	require.Error(t, err)
	require.Equal(t, []string{"discarded gate-01"}, ended)

	full := errors.New("disk full")
	_, err = gate.Run(t.Context(), &scripted{}, gate.Request{Commands: layered, OpenLog: func(context.Context, string) (gate.Log, error) { return nil, full }})
	require.ErrorIs(t, err, full)
	_, err = gate.Run(t.Context(), &scripted{}, gate.Request{Commands: layered, OpenLog: func(_ context.Context, name string) (gate.Log, error) {
		return &memoryLog{name: name, ended: &ended, fail: full}, nil
	}})
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "store log")
}

func TestOnlyAPlainGoTestIsAskedForEvents(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"go test ./...":                        "go test -json ./...",
		"go test -race -count=1 ./... -args x": "go test -json -race -count=1 ./... -args x",
		"env GOWORK=off go test ./...":         "env GOWORK=off go test -json ./...",
		"/usr/local/go/bin/go test":            "/usr/local/go/bin/go test -json",
		"go test -json ./...":                  "go test -json ./...",
		"go test -c ./p":                       "go test -c ./p",
		"go vet ./...":                         "go vet ./...",
		"gotestsum ./...":                      "gotestsum ./...",
		"make test":                            "make test",
	} {
		s := &scripted{}
		_, err := gate.Run(t.Context(), s, gate.Request{Commands: []contract.GateCommand{in(gate.LayerTest, line)}})
		require.NoError(t, err)
		require.Equal(t, []string{want}, s.ran)
	}
	s := &scripted{}
	_, err := gate.Run(t.Context(), s, gate.Request{Commands: gate.FromPlan([]plan.Command{{Shell: "go test ./..."}})})
	require.NoError(t, err)
	require.Equal(t, []string{"go test ./..."}, s.ran, "a shell line is left alone")
}

func TestTailsAreBoundedAndReadable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü line of output\n", 4000)
	s := &scripted{text: map[string]string{"x": "lost\n" + long + "10%\r20%\r\x1b[31m100%\x1b[0m\r\n\x1b]8;;http://e\x07link\x1b]8;;\x07\x00\xff done\n\n"}}
	r, err := gate.Run(t.Context(), s, gate.Request{Commands: gate.FromPlan([]plan.Command{{Shell: "x"}})})
	require.NoError(t, err)
	tail := r.Commands[0].Tail
	require.LessOrEqual(t, len([]rune(tail)), gate.TailRunes)
	require.Greater(t, len([]rune(tail)), gate.TailRunes-100)
	require.True(t, strings.HasPrefix(tail, "ü line"), "it begins at a line")
	require.True(t, strings.HasSuffix(tail, "ü line of output\n100%\nlink\uFFFD done"), "%q", tail[len(tail)-60:])
}

// FuzzGoTestEvents splits any stream at any place.
func FuzzGoTestEvents(f *testing.F) {
	f.Add([]byte(`{"Action":"output","Package":"p","Test":"T","Output":"x\n"}`+"\n"+`{"Action":"fail","Package":"p","Test":"T"}`+"\n{bad\nplain\n"), 7)
	f.Add([]byte(`{"Action":"build-fail","ImportPath":"p"}`), 1)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		run := func(chunk int) gate.CommandResult {
			r, err := gate.Run(t.Context(), chunks{stream, chunk}, gate.Request{Commands: []contract.GateCommand{in(gate.LayerTest, "go test ./...")}, Once: true})
			require.NoError(t, err)
			return r.Commands[0]
		}
		require.Equal(t, run(len(stream)), run(size), "where writes are cut does not show")
	})
}

type chunks struct {
	data []byte
	size int
}

func (c chunks) Run(_ context.Context, job gate.Job) (gate.Exit, error) {
	for part := range slices.Chunk(c.data, max(c.size, 1)) {
		if _, err := job.Output.Write(part); err != nil {
			return gate.Exit{}, err
		}
	}
	return gate.Exit{Code: 1}, nil
}
