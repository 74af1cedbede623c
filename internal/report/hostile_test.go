package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
	"mendflow/internal/report"
)

var nasty = []string{
	"", "|", "\\", "\\|", "a|b", "`", "``|``", "<b>", "<!-- x", "[a](b)", "![a](b)", "[a]: http://b", "# h", "- l", "1. l", "1) l", "> q", "---", "===",
	"***", "_a_", "__a__", "a_b", "~~a~~", "@team", "&lt;", "&#60;", "\x00", "\x1b[31m", "\x1b]8;;http://e\x07t", "\r\n", "\n\n# h\n", "\n```\n", "\t|\t", "\u202e", "\u200b",
	"\u2028", "\xff", "\xed\xa0\x80", "]]>", "\ufffe", "%", "%s", "$(rm -rf /)", "'; rm -rf /", "ü ä", "日本語", "🦊", strings.Repeat("`", 40), strings.Repeat("x", 300), " ", " a ",
}

func hostileText(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom(nasty),
		rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 4).Draw(t, "parts"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "by"))
		}),
		rapid.String(),
	).Draw(t, label)
}

// hostileFacts has other people's text in every field that holds text.
func hostileFacts(t *rapid.T) report.Facts {
	s := func(label string) string { return hostileText(t, label) }
	f := report.Facts{
		Run: s("run"), Repository: rapid.SampledFrom([]string{"", "/", "https://u:p@", "git@h:"}).Draw(t, "kind") + s("repository"), BaseCommit: s("base"), HeadCommit: s("head"),
		Status: rapid.SampledFrom([]contract.RunStatus{contract.RunCompleted, contract.RunBlocked, contract.RunPaused, contract.RunFailed, contract.RunCancelled}).Draw(t, "status"),
		Reason: s("reason"), StartedAt: start, Notes: []string{s("note")}, Refs: []string{s("ref")},
		Friction:  []contract.Friction{{Type: contract.FrictionNoChangeUnverified, Discriminator: s("discriminator"), Note: s("friction")}},
		Protected: []report.ProtectedPath{{Path: s("protected"), Node: s("protected node")}},
		Holds:     []contract.Hold{{Kind: contract.HoldGate, Reason: s("hold"), Lift: s("lift"), Since: start}},
	}
	if rapid.Bool().Draw(t, "closed") {
		f.ClosedAt = at(rapid.IntRange(-5, 5).Draw(t, "minutes"))
	}
	f.Plan.ID, f.Plan.Goal = s("plan"), s("goal")
	for range rapid.IntRange(0, 4).Draw(t, "items") {
		id, node := s("finding"), s("node")
		f.Plan.Findings = append(f.Plan.Findings, plan.Finding{ID: id, Title: s("title"), Summary: s("summary"), Lens: plan.Lens(s("lens")),
			Severity: rapid.SampledFrom([]plan.Severity{"", "low", "critical", "odd"}).Draw(t, "severity"),
			Files:    []plan.Location{{Path: s("path"), LineStart: rapid.IntRange(0, 3).Draw(t, "line"), LineEnd: rapid.IntRange(0, 3).Draw(t, "end")}}})
		f.Plan.Nodes = append(f.Plan.Nodes, plan.Node{ID: node, Findings: []string{id}})
		f.Items = append(f.Items, contract.ItemRow{Finding: id, Node: node, Reason: s("item reason"), Question: s("question"), Answer: s("answer"),
			Status: rapid.SampledFrom([]contract.ItemStatus{contract.ItemResolved, contract.ItemResolvedNoChange, contract.ItemAbandoned, contract.ItemIgnored, contract.ItemNeedsClarification}).Draw(t, "item status")})
		f.Evidence = append(f.Evidence, report.ItemEvidence{Finding: id, Evidence: []report.Evidence{{Command: s("command"), Tail: s("tail")}, {Text: s("text")}}})
		f.Nodes = append(f.Nodes, contract.NodeRow{ID: node, State: contract.NodeBlocked, Opening: 1, Reason: s("node reason"), Attempts: []contract.AttemptRow{
			{K: 1, Opening: 1, Pool: s("pool"), Outcome: contract.OutcomeError, Reason: s("attempt reason"), Commit: s("commit"), Salvage: s("salvage"), Log: s("log")},
		}})
		f.Dispositions = append(f.Dispositions, contract.Disposition{Finding: s("dropped"), State: report.DroppedByIntent, Reason: s("drop reason")})
	}
	if rapid.Bool().Draw(t, "gate") {
		g := gate.Result{Kind: gate.KindExecuted, Verdict: gate.VerdictRed, Commit: s("gate commit"), Residual: []string{s("residual")}, Commands: []gate.CommandResult{{
			GateCommand: contract.GateCommand{Command: plan.Command{Argv: []string{s("argv"), s("arg")}}, Dir: s("dir"), Layer: gate.LayerPlan},
			Status:      gate.StatusRed, Runs: 1, ExitCode: 1, Tail: s("gate tail"), New: []string{s("id 1"), s("id 2"), s("id 3"), s("id 4")},
		}}}
		f.Gates = []report.Gate{{Purpose: report.PurposeFinal, Round: 1, Result: g, Attribution: &report.Attribution{Verdict: "culprit", Nodes: []string{s("culprit")}, Detail: s("detail")}}}
		f.Publication = &report.Publication{Action: plan.ClosePush, State: "exhausted", URL: s("url"), Detail: s("publication")}
	}
	return f
}

// TestHostileTextsStayText renders other people's texts: no panic, JSON that is
// read back, XML and SARIF that parse, no control character for the terminal, and in
// Markdown neither HTML, links, images nor headings of theirs, and rows as wide as their table.
func TestHostileTextsStayText(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	require.NoError(t, err)
	sarif := compile(t, "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", text)
	rapid.Check(t, func(t *rapid.T) {
		m := report.Build(hostileFacts(t))
		out := renderings(t, m)
		back, err := report.Parse(out["json"])
		require.NoError(t, err)
		again, err := report.JSON(back)
		require.NoError(t, err)
		twice, err := report.Parse(again) // texts that are not UTF-8 change once, on the way out
		require.NoError(t, err)
		require.Equal(t, back, twice)
		requireXML(t, out["xml"])
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(out["sarif"]))
		require.NoError(t, err)
		require.NoError(t, sarif.Validate(doc))
		requirePlain(t, out["txt"], "\n")
		requirePlain(t, out["md"], "\n\t")
		requireOnlyOurMarkup(t, out["md"])
	})
}

func requireXML(t require.TestingT, data []byte) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func requirePlain(t require.TestingT, data []byte, allowed string) {
	require.True(t, utf8.Valid(data))
	for _, r := range string(data) {
		bad := unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
		require.True(t, !bad || strings.ContainsRune(allowed, r), "%U", r)
	}
}

// ourHeadings begin the headings that the report itself writes.
var ourHeadings = []string{
	"completed", "blocked", "paused", "failed", "cancelled", "What to do next", "Findings", "resolved", "abandoned", "ignored", "needs_clarification", "Closed without",
	"Gate", "Round", "Not covered", "Nodes", "Friction", "Work that did not land", "Protected", "Landed without", "References", "Notes", "Time and cost", "Input findings",
}

func requireOnlyOurMarkup(t require.TestingT, source []byte) {
	parser := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser()
	root := parser.Parse(text.NewReader(source))
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch v := n.(type) {
		case *ast.RawHTML, *ast.HTMLBlock, *ast.Link, *ast.AutoLink, *ast.Image, *ast.Blockquote, *ast.ThematicBreak, *east.Strikethrough, *ast.CodeBlock:
			require.Failf(t, "foreign markup", "%s in\n%s", n.Kind(), source)
		case *ast.Emphasis:
			require.Equal(t, 2, v.Level, "emphasis in\n%s", source)
		case *ast.Heading:
			title := string(v.Lines().Value(source))
			ours := false
			for _, h := range ourHeadings {
				ours = ours || strings.HasPrefix(title, h)
			}
			require.True(t, ours, "heading %q", title)
		case *east.TableRow:
			require.Equal(t, n.Parent().FirstChild().ChildCount(), n.ChildCount())
		}
		return ast.WalkContinue, nil
	})
	require.NoError(t, err)
}

// TestMarkdownTablesKeepTheirRows counts the rows that a Markdown reader sees in the hostile fixture.
func TestMarkdownTablesKeepTheirRows(t *testing.T) {
	t.Parallel()
	source := report.Markdown(report.Build(hostile()))
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	rows := 0
	require.NoError(t, ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if _, ok := n.(*east.TableRow); ok && entering {
			rows++
		}
		return ast.WalkContinue, nil
	}))
	lines := 0
	for line := range strings.SplitSeq(string(source), "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") {
			lines++
		}
	}
	require.Equal(t, lines-strings.Count(string(source), "\n| ---"), rows, "every line of a table is a row of it")
}

func TestRenderingDoesNotKnowTheClockOrTheZone(t *testing.T) {
	t.Parallel()
	here := completed()
	there := completed()
	zone := time.FixedZone("X", 5*3600)
	there.StartedAt = there.StartedAt.In(zone)
	closed := there.ClosedAt.In(zone)
	there.ClosedAt = &closed
	require.Equal(t, renderings(t, report.Build(here)), renderings(t, report.Build(there)))
}

func FuzzParse(f *testing.F) {
	for _, facts := range fixtures {
		data, err := report.JSON(report.Build(facts()))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := report.Parse(data)
		if err != nil {
			return
		}
		requireXML(t, renderings(t, m)["xml"])
	})
}
