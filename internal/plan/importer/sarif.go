package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mendflow/internal/plan"
)

// The part of SARIF 2.1.0 that says what is wrong and where (OASIS, sections 3.14
// to 3.52). Everything else may stand in a file and is not looked at.
type (
	sarifLog struct {
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver     sarifTool   `json:"driver"`
			Extensions []sarifTool `json:"extensions"`
		} `json:"tool"`
		Bases     map[string]artifactLocation `json:"originalUriBaseIds"`
		Artifacts []struct {
			Location artifactLocation `json:"location"`
		} `json:"artifacts"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID       string                  `json:"id"`
		Name     string                  `json:"name"`
		Short    sarifMessage            `json:"shortDescription"`
		Full     sarifMessage            `json:"fullDescription"`
		Messages map[string]sarifMessage `json:"messageStrings"`
		Config   struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
		Properties sarifProperties `json:"properties"`
	}
	sarifResult struct {
		RuleID    string `json:"ruleId"`
		RuleIndex *int   `json:"ruleIndex"`
		Rule      struct {
			ID    string `json:"id"`
			Index *int   `json:"index"`
			Tool  struct {
				Index *int `json:"index"`
			} `json:"toolComponent"`
		} `json:"rule"`
		Kind         string            `json:"kind"`
		Level        string            `json:"level"`
		Message      sarifMessage      `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Partial      map[string]string `json:"partialFingerprints"`
		Fingerprints map[string]string `json:"fingerprints"`
		Suppressions []struct {
			Status string `json:"status"`
		} `json:"suppressions"`
		Baseline   string          `json:"baselineState"`
		Properties sarifProperties `json:"properties"`
	}
	sarifMessage struct {
		Text      string   `json:"text"`
		ID        string   `json:"id"`
		Arguments []string `json:"arguments"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact artifactLocation `json:"artifactLocation"`
			Region   struct {
				StartLine int `json:"startLine"`
				EndLine   int `json:"endLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
	artifactLocation struct {
		URI    string `json:"uri"`
		BaseID string `json:"uriBaseId"`
		Index  *int   `json:"index"`
	}
	// sarifProperties are those that GitHub's code scanning documents; tools write some as other types.
	sarifProperties struct {
		Severity  any   `json:"security-severity"`
		Precision any   `json:"precision"`
		Problem   any   `json:"problem.severity"`
		Tags      []any `json:"tags"`
	}
)

func readSARIF(data []byte, o Options) (Input, error) {
	var log sarifLog
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&log); err != nil {
		return Input{}, fmt.Errorf("read SARIF: %w", err)
	}
	if log.Version != "" && log.Version != "2.1.0" {
		return Input{}, fmt.Errorf("read SARIF: version %s: want 2.1.0", clip(log.Version, 20))
	}
	var in Input
	for i := range log.Runs {
		r := &runReader{run: &log.Runs[i], index: i, options: o, in: &in}
		r.bases = bases{uris: r.run.Bases}
		r.read()
	}
	return in, nil
}

// runReader reads one run of a log.
type runReader struct {
	run     *sarifRun
	index   int
	options Options
	bases   bases
	in      *Input
}

func (r *runReader) note(result int, format string, args ...any) {
	r.in.Notes = append(r.in.Notes, Note{Where: fmt.Sprintf("runs[%d].results[%d]", r.index, result), Text: fmt.Sprintf(format, args...)})
}

func (r *runReader) read() {
	for i, result := range r.run.Results {
		switch {
		case result.Kind != "" && result.Kind != "fail" && result.Kind != "review" && result.Kind != "open":
			continue // it says that something is fine
		case result.Baseline == "absent":
			continue // repaired already
		case slices.ContainsFunc(result.Suppressions, func(s struct {
			Status string `json:"status"`
		}) bool {
			return s.Status == "" || s.Status == "accepted"
		}):
			r.note(i, "left out: it is suppressed")
			continue
		}
		r.in.Findings = append(r.in.Findings, r.finding(i, result))
	}
}

func (r *runReader) finding(i int, result sarifResult) Raw {
	rule := r.rule(result)
	raw := Raw{
		Tool: r.run.Tool.Driver.Name, Rule: rule.ID, Severity: severity(result, rule), Summary: message(result.Message, rule),
		Confidence: confidenceOf(text(rule.Properties.Precision)), print: fingerprint(result),
	}
	raw.Title = firstLine(raw.Summary)
	if raw.Title == "" {
		raw.Title = firstLine(rule.Short.Text)
		raw.Summary = rule.Full.Text
	}
	if raw.Title == raw.Summary {
		raw.Summary = ""
	}
	for _, tag := range slices.Concat(rule.Properties.Tags, result.Properties.Tags) {
		word := text(tag)
		if lens := lensOf(word); lens != "" && raw.Lens == "" {
			raw.Lens = lens
		} else if word != "" && lens == "" && !slices.Contains(raw.Themes, word) {
			raw.Themes = append(raw.Themes, oneLine(word, 60))
		}
	}
	if raw.Lens == "" && score(result, rule) > 0 {
		raw.Lens = plan.LensSecurity
	}
	for _, l := range result.Locations {
		place, err := r.place(l)
		switch {
		case err != nil:
			r.note(i, "the place %q is refused: %v", clip(l.Physical.Artifact.URI, 120), err)
		case place.Path != "" && !slices.Contains(raw.Files, place):
			raw.Files = append(raw.Files, place)
		}
	}
	return raw
}

// place is a location as a path of the repository; empty when it names no file.
func (r *runReader) place(l sarifLocation) (plan.Location, error) {
	artifact := l.Physical.Artifact
	if artifact.URI == "" && artifact.Index != nil && *artifact.Index >= 0 && *artifact.Index < len(r.run.Artifacts) {
		artifact = r.run.Artifacts[*artifact.Index].Location
	}
	if artifact.URI == "" {
		return plan.Location{}, nil
	}
	uri, err := r.bases.resolve(artifact)
	if err != nil {
		return plan.Location{}, err
	}
	path, err := inside(uri, r.options.Root, true)
	if err != nil {
		return plan.Location{}, err
	}
	region := l.Physical.Region
	place := plan.Location{Path: path, LineStart: max(region.StartLine, 0), LineEnd: max(region.EndLine, 0)}
	if place.LineStart == 0 || place.LineEnd < place.LineStart {
		place.LineEnd = 0
	}
	return place, nil
}

// rule finds the rule of a result: by index, else by id; in an extension where the result says so.
func (r *runReader) rule(result sarifResult) sarifRule {
	tool := r.run.Tool.Driver
	if at := result.Rule.Tool.Index; at != nil && *at >= 0 && *at < len(r.run.Tool.Extensions) {
		tool = r.run.Tool.Extensions[*at]
	}
	id := result.RuleID
	if id == "" {
		id = result.Rule.ID
	}
	for _, at := range []*int{result.RuleIndex, result.Rule.Index} {
		if at != nil && *at >= 0 && *at < len(tool.Rules) {
			rule := tool.Rules[*at]
			if rule.ID = strings.TrimSpace(rule.ID); rule.ID == "" {
				rule.ID = id
			}
			return rule
		}
	}
	for _, rule := range tool.Rules {
		// A hierarchical id (CA2101/1) belongs to the rule that it begins with.
		if rule.ID == id || rule.ID != "" && strings.HasPrefix(id, rule.ID+"/") {
			return rule
		}
	}
	return sarifRule{ID: id}
}

var placeholder = regexp.MustCompile(`\{(\d+)\}`)

// message is the text of a result, from the rule's strings where it only names one.
func message(m sarifMessage, rule sarifRule) string {
	body := m.Text
	if body == "" && m.ID != "" {
		body = rule.Messages[m.ID].Text
	}
	return placeholder.ReplaceAllStringFunc(body, func(found string) string {
		n, err := strconv.Atoi(found[1 : len(found)-1])
		if err != nil || n >= len(m.Arguments) {
			return found
		}
		return m.Arguments[n]
	})
}

// severity is the CVSS-like score of a security rule, else the level of the result or of its rule.
func severity(result sarifResult, rule sarifRule) plan.Severity {
	switch s := score(result, rule); {
	case s >= 9:
		return plan.SeverityCritical
	case s >= 7:
		return plan.SeverityHigh
	case s >= 4:
		return plan.SeverityMedium
	case s > 0:
		return plan.SeverityLow
	}
	for _, word := range []string{result.Level, text(rule.Properties.Problem), rule.Config.Level} {
		if s := severityOf(word); s != "" {
			return s
		}
	}
	return plan.SeverityMedium // what SARIF says of a result without a level: warning
}

func score(result sarifResult, rule sarifRule) float64 {
	for _, value := range []any{result.Properties.Severity, rule.Properties.Severity} {
		if s, err := strconv.ParseFloat(text(value), 64); err == nil && s > 0 && s <= 10 {
			return s
		}
	}
	return 0
}

// text is a property as text, whatever type a tool gave it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// fingerprint is the scanner's own, in a defined order; empty: it gives none.
func fingerprint(result sarifResult) string {
	var parts []string
	for _, prints := range []map[string]string{result.Fingerprints, result.Partial} {
		keys := make([]string, 0, len(prints))
		for k := range prints {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			parts = append(parts, k+"="+prints[k])
		}
	}
	return strings.Join(parts, " ")
}
