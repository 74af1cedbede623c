package importer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/plan"
)

func read(t testing.TB, data string, o Options) Input {
	t.Helper()
	in, err := Read([]byte(data), o)
	require.NoError(t, err)
	return in
}

// parse makes the plan and reads it back as `starter plan validate` does.
func parse(t testing.TB, b Built) *plan.Plan {
	t.Helper()
	text := Write(b)
	p, faults := plan.Parse("plan.yaml", text)
	require.NoError(t, faults.Err(), "%s", text)
	return p
}

func places(f plan.Finding) []string {
	var all []string
	for _, l := range f.Files {
		all = append(all, fmt.Sprintf("%s:%d-%d", l.Path, l.LineStart, l.LineEnd))
	}
	return all
}

// TestRealOutputs reads what tools of these versions printed for one small module;
// results and their rules are whole, rules without a result and call stacks are cut.
func TestRealOutputs(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct {
		findings, nodes int
		first           string // rule, severity, lens and place of the first finding
	}{
		"golangci-lint-2.15.0.sarif": {9, 2, "staticcheck high  [main.go:6-0]"},
		"staticcheck-2026.2.2.sarif": {5, 2, "SA1019 "},
		"gosec-2.30.0.sarif":         {11, 2, "G"},
		"govulncheck-1.9.0.sarif":    {1, 1, "GO-2026-0001 "},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("testdata", file))
			require.NoError(t, err)
			in, err := Read(data, Options{Root: "/home/dev/shop"})
			require.NoError(t, err)
			require.Empty(t, in.Notes)
			b := Build("shop", "Repair what was found.", in.Findings, Grouping{PerNode: 100})
			p := parse(t, b)
			require.Len(t, p.Findings, want.findings)
			require.Len(t, p.Nodes, want.nodes, "one per file")
			f := in.Findings[0]
			for _, x := range in.Findings {
				if order(x, f) < 0 {
					f = x
				}
			}
			require.Contains(t, fmt.Sprintf("%s %s %s %v", f.Rule, f.Severity, f.Lens, places(p.Findings[0])), want.first)
			for _, f := range p.Findings {
				require.NotEmpty(t, f.Files, f.ID)
				require.NotEmpty(t, f.Title)
			}
		})
	}
}

// log is a SARIF file of one run.
func log(t testing.TB, bases map[string]any, results ...map[string]any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{
		"tool":               map[string]any{"driver": map[string]any{"name": "scan", "rules": []any{map[string]any{"id": "R1", "defaultConfiguration": map[string]any{"level": "note"}}}}},
		"originalUriBaseIds": bases, "results": results,
	}}})
	require.NoError(t, err)
	return string(data)
}

func at(uri, base string, line int) map[string]any {
	return map[string]any{
		"ruleId": "R1", "message": map[string]any{"text": "bad thing"},
		"locations": []any{map[string]any{"physicalLocation": map[string]any{
			"artifactLocation": map[string]any{"uri": uri, "uriBaseId": base}, "region": map[string]any{"startLine": line},
		}}},
	}
}

func TestPlacesAreResolvedAndNeverLeaveTheRepository(t *testing.T) {
	t.Parallel()
	bases := map[string]any{
		"ROOT":   map[string]any{"uri": "file:///home/dev/shop/"},
		"SRC":    map[string]any{"uri": "src/", "uriBaseId": "ROOT"},
		"UP":     map[string]any{"uri": "../", "uriBaseId": "ROOT"},
		"SELF":   map[string]any{"uri": "x/", "uriBaseId": "SELF"},
		"LATER":  map[string]any{"description": map[string]any{"text": "found at run time"}},
		"REMOTE": map[string]any{"uri": "https://example.com/shop/"},
	}
	for name, c := range map[string]struct{ uri, base, want, note string }{
		"relative":             {"a/b.go", "", "a/b.go", ""},
		"escaped":              {"a%20b/%C3%BC.go", "", "a b/ü.go", ""},
		"backslashes":          {`a\b.go`, "", "a/b.go", ""},
		"dots":                 {"./a/../b.go", "", "b.go", ""},
		"base":                 {"a.go", "ROOT", "a.go", ""},
		"base on a base":       {"a.go", "SRC", "src/a.go", ""},
		"base without a place": {"a.go", "LATER", "a.go", ""},
		"base nobody knows":    {"a.go", "%SRCROOT%", "a.go", ""},
		"absolute URI":         {"file:///home/dev/shop/a.go", "", "a.go", ""},
		"absolute path":        {"/home/dev/shop/a.go", "", "a.go", ""},
		"localhost":            {"file://localhost/home/dev/shop/a.go", "", "a.go", ""},
		"not escaped":          {"a b.go", "", "a b.go", ""},
		"percent that is none": {"a%zz.go", "", "a%zz.go", ""},
		"up":                   {"../a.go", "", "", "outside"},
		"up in the middle":     {"a/../../b.go", "", "", "outside"},
		"escaped up":           {"%2e%2e/a.go", "", "", "outside"},
		"up by a base":         {"a.go", "UP", "", "outside"},
		"a base on itself":     {"a.go", "SELF", "", "rests on itself"},
		"elsewhere":            {"file:///etc/passwd", "", "", "outside"},
		"a neighbour":          {"/home/dev/shop2/a.go", "", "", "outside"},
		"another machine":      {"file://server/share/a.go", "", "", "no file"},
		"the web":              {"https://example.com/a.go", "", "", "no file"},
		"a base on the web":    {"a.go", "REMOTE", "", "no file"},
		"the standard library": {"src/net/http/server.go", "%GOROOT%", "", "outside"},
		"git's own folder":     {".git/config", "", "", ".git"},
		"the root":             {".", "", "", "outside"},
	} {
		in := read(t, log(t, bases, at(c.uri, c.base, 7)), Options{Root: "/home/dev/shop"})
		require.Len(t, in.Findings, 1, name)
		if c.want != "" {
			require.Equal(t, []plan.Location{{Path: c.want, LineStart: 7}}, in.Findings[0].Files, name)
			require.Empty(t, in.Notes, name)
			continue
		}
		require.Empty(t, in.Findings[0].Files, name)
		require.Len(t, in.Notes, 1, name)
		require.Contains(t, in.Notes[0].Text, c.note, name)
		b := Build("x", "", in.Findings, Grouping{})
		require.Len(t, b.Unplaced, 1, name)
		p := parse(t, b)
		require.Empty(t, p.Nodes[0].Write, name)
		require.NotEmpty(t, p.Nodes[0].Instructions, name)
		require.Contains(t, string(Write(b)), "# Name what the repair may change", name)
	}
	in := read(t, log(t, nil, at("/home/dev/shop/a.go", "", 7)), Options{})
	require.Empty(t, in.Findings[0].Files, "without a root an absolute path is nobody's")
	in = read(t, log(t, nil, at("file:///C:/work/shop/a.go", "", 7), at(`C:\work\shop\b.go`, "", 7)), Options{Root: `C:\work\shop`})
	require.Equal(t, "a.go", in.Findings[0].Files[0].Path)
	require.Equal(t, "b.go", in.Findings[1].Files[0].Path)
}

func TestWhatASARIFResultSays(t *testing.T) {
	t.Parallel()
	text := `{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "CodeQL", "rules": [
		{"id": "go/xss", "shortDescription": {"text": "Cross-site scripting"}, "fullDescription": {"text": "Writing user input…"},
		 "messageStrings": {"default": {"text": "{0} flows to {1}{7}"}}, "defaultConfiguration": {"level": "note"},
		 "properties": {"security-severity": "6.1", "precision": "very-high", "tags": ["security", "external/cwe/cwe-079", "web"]}}]},
		"extensions": [{"name": "pack", "rules": [{"id": "p1", "defaultConfiguration": {"level": "error"}}]}]},
		"artifacts": [{"location": {"uri": "web/x.go"}}],
		"results": [
		{"ruleIndex": 0, "message": {"id": "default", "arguments": ["input", "output"]}, "locations": [{"physicalLocation": {"artifactLocation": {"index": 0}, "region": {"startLine": 3, "endLine": 9}}}]},
		{"rule": {"index": 0, "toolComponent": {"index": 0}}, "message": {"text": "First line.\n\nMore of it."}},
		{"ruleId": "go/xss/sub", "message": {}},
		{"ruleId": "other", "level": "warning", "message": {"text": "w"}, "properties": {"security-severity": 9.8}},
		{"ruleId": "gone", "baselineState": "absent", "message": {"text": "x"}},
		{"ruleId": "fine", "kind": "pass", "message": {"text": "x"}},
		{"ruleId": "hushed", "suppressions": [{"kind": "inSource"}], "message": {"text": "x"}},
		{"ruleId": "not hushed", "suppressions": [{"kind": "external", "status": "rejected"}], "message": {"text": "y"}}]}]}`
	in := read(t, "\ufeff"+text, Options{})
	require.Len(t, in.Findings, 5)
	require.Equal(t, []Note{{Where: "runs[0].results[6]", Text: "left out: it is suppressed"}}, in.Notes)
	f := in.Findings[0]
	require.Equal(t, "input flows to output{7}", f.Title)
	require.Equal(t, plan.SeverityMedium, f.Severity)
	require.Equal(t, plan.LensSecurity, f.Lens)
	require.Equal(t, plan.ConfidenceHigh, f.Confidence)
	require.Equal(t, []string{"web"}, f.Themes)
	require.Equal(t, []plan.Location{{Path: "web/x.go", LineStart: 3, LineEnd: 9}}, f.Files)
	require.Equal(t, "p1", in.Findings[1].Rule)
	require.Equal(t, plan.SeverityHigh, in.Findings[1].Severity)
	require.Equal(t, "First line.", in.Findings[1].Title)
	require.Equal(t, "First line.\n\nMore of it.", in.Findings[1].Summary)
	require.Equal(t, "Cross-site scripting", in.Findings[2].Title)
	require.Equal(t, plan.SeverityCritical, in.Findings[3].Severity)
	require.Equal(t, plan.SeverityMedium, in.Findings[4].Severity)
}

func TestTwoFindingsOnOneLineStayApartAndDuplicatesAreFolded(t *testing.T) {
	t.Parallel()
	other := at("a.go", "", 7)
	other["message"] = map[string]any{"text": "another thing"}
	lower := at("a.go", "", 9)
	in := read(t, log(t, nil, at("a.go", "", 7), other, at("a.go", "", 7), lower, at("a.go", "", 7)), Options{})
	b := Build("x", "", in.Findings, Grouping{})
	require.Len(t, b.Findings, 3)
	require.Equal(t, 2, b.Folded)
	p := parse(t, b)
	require.Len(t, p.Nodes, 1)
	folded := 0
	for _, f := range p.Findings {
		folded += len(f.Folded)
	}
	require.Equal(t, 2, folded)
	dispositions := map[plan.Disposition]int{}
	for _, d := range plan.Select(p, nil).Findings {
		dispositions[d.Disposition]++
	}
	require.Equal(t, map[plan.Disposition]int{plan.DispositionPlanned: 3, plan.DispositionFolded: 2}, dispositions)
}

func TestIDsSurviveEditsElsewhere(t *testing.T) {
	t.Parallel()
	ids := func(line int) []string {
		in := read(t, log(t, nil, at("a.go", "", line), at("b.go", "", 1)), Options{})
		var all []string
		for _, f := range Build("x", "", in.Findings, Grouping{}).Findings {
			all = append(all, f.ID)
		}
		return all
	}
	require.Equal(t, ids(3), ids(300), "a finding that moved is the same")
	require.Regexp(t, `^R1-[0-9a-f]{8}$`, ids(3)[0])
}

func TestGroupingByFilesAndFolders(t *testing.T) {
	t.Parallel()
	wide := at("a/1.go", "", 1)
	wide["locations"] = append(wide["locations"].([]any), at("b/2.go", "", 1)["locations"].([]any)...)
	in := read(t, log(t, nil, wide, at("b/2.go", "", 4), at("b/3.go", "", 1), at("c/[x].go", "", 1), at("c/[x].go", "", 2), at("c/[x].go", "", 3)), Options{})
	b := Build("x", "", in.Findings, Grouping{PerNode: 2})
	p := parse(t, b)
	got := map[string][]string{}
	for _, n := range p.Nodes {
		got[n.ID] = n.Write
	}
	require.Equal(t, map[string][]string{"a-1": {"a/1.go", "b/2.go"}, "b-3": {"b/3.go"}, "c-x": {`c/\[x\].go`}, "c-x-2": {`c/\[x\].go`}}, got)
	p = parse(t, Build("x", "", in.Findings, Grouping{Folder: true}))
	require.Len(t, p.Nodes, 2)
	require.Equal(t, []string{"a/*", "b/*"}, p.Nodes[0].Write)
}

func TestPlainList(t *testing.T) {
	t.Parallel()
	in := read(t, `{"findings": [
		{"id": "A-1", "title": "One", "severity": "blocker", "path": "a.go", "line": 3, "lens": "security", "evidence": "seen"},
		{"message": "Two\nmore", "level": "odd", "files": ["a.go", {"path": "b.go", "line_start": 2, "line_end": 5}, "/etc/passwd"], "themes": ["x"]},
		{"id": "not an id!", "title": "Three", "evidence": ["e1", "e2"]}]}`, Options{Lens: plan.LensTests})
	require.Equal(t, []Note{
		{"findings[1]", `the severity "odd" is unknown: taken for medium`},
		{"findings[1]", `the place "/etc/passwd" is refused: it lies outside the repository`},
		{"findings[2]", `the id "not an id!" cannot be used: another is made`},
	}, in.Notes)
	p := parse(t, Build("x", "", in.Findings, Grouping{}))
	byTitle := map[string]plan.Finding{}
	for _, f := range p.Findings {
		byTitle[f.Title] = f
	}
	require.Equal(t, "A-1", byTitle["One"].ID)
	require.Equal(t, plan.SeverityCritical, byTitle["One"].Severity)
	require.Equal(t, plan.LensSecurity, byTitle["One"].Lens)
	require.Equal(t, []string{"a.go:0-0", "b.go:2-5"}, places(byTitle["Two"]))
	require.Equal(t, plan.LensTests, byTitle["Two"].Lens)
	require.Equal(t, []string{"e1", "e2"}, byTitle["Three"].Evidence)
	require.Regexp(t, `^not-an-id-[0-9a-f]{8}$`, byTitle["Three"].ID)
	require.Len(t, p.Nodes, 2, "One and Two share a file, Three asks for a scope")
}

func TestFilesThatAreNoFindings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "the file is empty",
		"hello":                            "neither SARIF nor a JSON list",
		"{}":                               "neither runs (SARIF) nor findings",
		`{"runs": 3}`:                      "read SARIF: ",
		`{"version": "1.0.0", "runs": []}`: "version 1.0.0: want 2.1.0",
		`[{"severity": "high"}]`:           "findings[0]: it has neither title nor message",
		`[1]`:                              "findings[0]: ",
		`[{"title": "x", "files": 3}]`:     "findings[0]: files: ",
	} {
		_, err := Read([]byte(text), Options{})
		require.ErrorContains(t, err, want, text)
	}
	_, err := Read([]byte("[]"), Options{Format: "xml"})
	require.ErrorContains(t, err, "want sarif or json")
}

// drawRaw draws a finding with whatever texts and places tools write.
func TestDuplicatesKeepTheWorstSeverity(t *testing.T) {
	t.Parallel()
	mild := Raw{Rule: "R1", Title: "same", Severity: plan.SeverityLow}
	bad := mild
	bad.Severity = plan.SeverityCritical
	for _, raws := range [][]Raw{{mild, bad}, {bad, mild}} {
		b := Build("x", "goal", raws, Grouping{})
		require.Len(t, b.Findings, 1)
		require.Equal(t, plan.SeverityCritical, b.Findings[0].Severity)
		require.Len(t, b.Findings[0].Folded, 1)
	}
}

func TestHugeScopesBecomeFolders(t *testing.T) {
	t.Parallel()
	r := Raw{Title: "everywhere", Severity: plan.SeverityLow}
	for i := range 2000 {
		r.Files = append(r.Files, plan.Location{Path: fmt.Sprintf("pkg/%d/%s.go", i%5, strings.Repeat("x", i%40)+fmt.Sprint(i))})
	}
	r.complete(Options{})
	p := parse(t, Build("x", "", []Raw{r}, Grouping{}))
	require.Equal(t, []string{"pkg/0/*", "pkg/1/*", "pkg/2/*", "pkg/3/*", "pkg/4/*"}, p.Nodes[0].Write)
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.sarif")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4000)])
	}
	f.Add([]byte(`[{"title": "x", "path": "a.go", "line": 3}]`))
	f.Add([]byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"originalUriBaseIds":{"A":{"uri":"a/"}},"results":[{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"b.go","uriBaseId":"A"},"region":{"startLine":1}}}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := Read(data, Options{Root: "/r"})
		if err != nil || len(in.Findings) == 0 {
			return
		}
		text := Write(Build("x", "", in.Findings, Grouping{}))
		p, faults := plan.Parse("plan.yaml", text)
		if faults.Err() != nil {
			t.Fatalf("%v\n%s", faults.Err(), text)
		}
		for _, found := range p.Findings {
			if slices.ContainsFunc(found.Files, func(l plan.Location) bool { return strings.HasPrefix(l.Path, "../") || strings.HasPrefix(l.Path, "/") }) {
				t.Fatalf("a path leaves the repository: %v", found.Files)
			}
		}
	})
}
