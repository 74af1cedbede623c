// Package importer makes a plan of what scanners found: SARIF 2.1.0, or a plain
// JSON list. It is a start for people, who edit the file that Write makes.
//
//   - Read reads one file into raw findings; it never guesses a place, and refuses
//     every path that leaves the repository.
//   - Build folds duplicates, gives each finding an id that survives edits and other
//     orders of the input, and groups findings that share files into nodes.
//   - Write renders the plan as YAML.
//
// It is pure: bytes and values in, values out.
package importer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/plan"
)

// Format is the form of a file.
type Format string

// Formats.
const (
	Auto  Format = "auto"
	SARIF Format = "sarif"
	List  Format = "json"
)

// Raw is a finding as a scanner tells it.
type Raw struct {
	Tool       string
	Rule       string
	ID         string // given by the input; empty: made
	Title      string
	Summary    string
	Severity   plan.Severity
	Lens       plan.Lens
	Confidence plan.Confidence
	Themes     []string
	Files      []plan.Location
	Evidence   []string
	print      string // of the scanner, if it gives one: stays the same when lines move
}

// Note is something about the input that people should know.
type Note struct {
	Where string `json:"where"` // part of the input
	Text  string `json:"text"`
}

// Input is a file that was read.
type Input struct {
	Findings []Raw
	Notes    []Note
}

// Options say how a file is read.
type Options struct {
	Format Format
	// Root is the absolute path of the repository on the machine of the scanner; absolute
	// paths below it are understood. Empty: they are refused.
	Root string
	Lens plan.Lens // of findings that name none
}

// Read reads a file. An error says what is wrong with it as a whole; what is wrong
// with parts of it are notes.
func Read(data []byte, o Options) (Input, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	format := o.Format
	if format == Auto || format == "" {
		var err error
		if format, err = detect(data); err != nil {
			return Input{}, err
		}
	}
	var in Input
	var err error
	switch format {
	case SARIF:
		in, err = readSARIF(data, o)
	case List:
		in, err = readList(data, o)
	default:
		return Input{}, fmt.Errorf("read findings: unknown format %q: want sarif or json", format)
	}
	if err != nil {
		return Input{}, err
	}
	for i := range in.Findings {
		in.Findings[i].complete(o)
	}
	return in, nil
}

// detect tells the formats by their outermost value.
func detect(data []byte) (Format, error) {
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) == 0:
		return "", fmt.Errorf("read findings: the file is empty")
	case trimmed[0] == '[':
		return List, nil
	case trimmed[0] != '{':
		return "", fmt.Errorf("read findings: it is neither SARIF nor a JSON list")
	}
	var head struct {
		Runs     *json.RawMessage `json:"runs"`
		Findings *json.RawMessage `json:"findings"`
	}
	if err := json.Unmarshal(trimmed, &head); err != nil {
		return "", fmt.Errorf("read findings: %w", err)
	}
	switch {
	case head.Runs != nil:
		return SARIF, nil
	case head.Findings != nil:
		return List, nil
	}
	return "", fmt.Errorf("read findings: the object has neither runs (SARIF) nor findings")
}

const (
	maxTitle   = 200
	maxSummary = 4000
)

// complete fills in what every finding of a plan has.
func (r *Raw) complete(o Options) {
	r.Title = oneLine(cmp.Or(strings.TrimSpace(r.Title), strings.TrimSpace(firstLine(r.Summary)), r.Rule), maxTitle)
	if r.Title == "" {
		r.Title = "A finding without a text"
	}
	r.Summary = clip(clean(strings.TrimSpace(r.Summary)), maxSummary)
	if r.Severity == "" {
		r.Severity = plan.SeverityMedium
	}
	if r.Lens == "" {
		r.Lens = o.Lens
	}
	if len(r.Evidence) == 0 { // a finding without files and evidence would be dropped
		r.Evidence = []string{oneLine(strings.TrimSpace(r.Tool+" "+r.Rule)+": "+r.Title, maxTitle)}
	}
}

// fingerprint is what a finding is, wherever in the input it stands and whatever line it moved to.
func (r Raw) fingerprint() string {
	path := ""
	if len(r.Files) > 0 {
		path = r.Files[0].Path
	}
	text := r.print
	if text == "" {
		text = r.Title + "\n" + r.Summary
	}
	return digest(strings.ToLower(r.Tool), r.Rule, path, text)
}

// same is what duplicates share: everything that a reader sees, the place included.
func (r Raw) same() string {
	parts := []string{strings.ToLower(r.Tool), r.Rule, r.Title, r.Summary, r.print, r.ID}
	for _, f := range r.Files {
		parts = append(parts, fmt.Sprintf("%s:%d-%d", f.Path, f.LineStart, f.LineEnd))
	}
	return digest(parts...)
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// order sorts findings by place, then by what they are, so that the order of the input does not show.
// Of duplicates the first is kept: the one with the worst severity.
func order(a, b Raw) int {
	place := func(r Raw) (string, int, int) {
		if len(r.Files) == 0 {
			return "\uffff", 0, 0 // those without a place come last
		}
		return r.Files[0].Path, r.Files[0].LineStart, r.Files[0].LineEnd
	}
	aPath, aStart, aEnd := place(a)
	bPath, bStart, bEnd := place(b)
	return cmp.Or(cmp.Compare(aPath, bPath), cmp.Compare(aStart, bStart), cmp.Compare(aEnd, bEnd),
		cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.same(), b.same()),
		cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(a.Confidence, b.Confidence), cmp.Compare(a.Lens, b.Lens),
		slices.Compare(a.Evidence, b.Evidence), slices.Compare(a.Themes, b.Themes))
}

// severityOf reads the words that tools use for severities; empty: unknown.
func severityOf(word string) plan.Severity {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "critical", "blocker", "fatal":
		return plan.SeverityCritical
	case "high", "error", "major", "severe":
		return plan.SeverityHigh
	case "medium", "moderate", "warning", "warn":
		return plan.SeverityMedium
	case "low", "minor", "note":
		return plan.SeverityLow
	case "info", "informational", "information", "hint", "none", "style":
		return plan.SeverityInfo
	}
	return ""
}

// confidenceOf reads the words that tools use for confidence and precision.
func confidenceOf(word string) plan.Confidence {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "very-high", "high", "certain":
		return plan.ConfidenceHigh
	case "medium", "moderate", "firm":
		return plan.ConfidenceMedium
	case "low", "tentative":
		return plan.ConfidenceLow
	}
	return ""
}

// lensOf reads a lens, or a tag that stands for one.
func lensOf(word string) plan.Lens {
	word = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), "-", "_")
	if slices.Contains(plan.Lens("").Values(), word) {
		return plan.Lens(word)
	}
	switch {
	case strings.HasPrefix(word, "external/cwe"), word == "vulnerability":
		return plan.LensSecurity
	case word == "style", word == "readability", word == "complexity":
		return plan.LensMaintainability
	case word == "bugs", word == "bug":
		return plan.LensCorrectness
	}
	return ""
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// oneLine makes one line of a text, at most limit characters.
func oneLine(s string, limit int) string {
	return clip(strings.Join(strings.Fields(clean(s)), " "), limit)
}

func clip(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return strings.TrimRight(string(runes[:limit-1]), " ") + "…"
}

// clean replaces what is no UTF-8, and NUL, which no plan holds.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
