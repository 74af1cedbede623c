package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// SARIF 2.1.0, as far as a report of findings needs it
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool            `json:"tool"`
		Automation  *sarifAutomation     `json:"automationDetails,omitempty"`
		Invocations []sarifInvocation    `json:"invocations"`
		Provenance  []sarifProvenance    `json:"versionControlProvenance,omitempty"`
		Bases       map[string]sarifBase `json:"originalUriBaseIds"`
		ColumnKind  string               `json:"columnKind"`
		Results     []sarifResult        `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID         string    `json:"id"`
		Short      sarifText `json:"shortDescription"`
		Properties sarifTags `json:"properties"`
	}
	sarifTags struct {
		Tags []string `json:"tags"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifAutomation struct {
		ID string `json:"id"`
	}
	sarifInvocation struct {
		Successful bool   `json:"executionSuccessful"`
		Start      string `json:"startTimeUtc,omitempty"`
		End        string `json:"endTimeUtc,omitempty"`
	}
	sarifProvenance struct {
		Repository string `json:"repositoryUri"`
		Revision   string `json:"revisionId,omitempty"`
		Branch     string `json:"branch,omitempty"`
	}
	sarifBase struct {
		Description sarifText `json:"description"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions"` // empty: known not to be suppressed
		Properties   sarifProperties    `json:"properties"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI  string `json:"uri"`
		Base string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
		EndLine   int `json:"endLine,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification,omitempty"`
	}
	sarifProperties struct {
		Finding  string              `json:"finding"`
		Node     string              `json:"node,omitempty"`
		Severity plan.Severity       `json:"severity,omitempty"`
		Status   contract.ItemStatus `json:"status,omitempty"`
		Reason   string              `json:"reason,omitempty"`
	}
)

const sarifRoot = "SRCROOT"

// SARIF renders what is still wrong with the repository as SARIF 2.1.0: the open
// findings as results; those that somebody decided to leave (ignored, deemed
// inappropriate, excluded by the plan's intent) as suppressed results. Repaired findings, findings
// whose files are gone and folded ones are no results. There is one rule per lens.
//
// Two partial fingerprints tell a result again in a later run:
// mendflowFinding/v1 follows the lens, title and first file (no lines, so that
// edits above do not change it; repetitions are counted), mendflowId/v1 the plan's and finding's ids.
func SARIF(m Model) ([]byte, error) {
	log := sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{
			Tool:        sarifTool{Driver: sarifDriver{Name: "Mendflow", Rules: []sarifRule{}}},
			Automation:  &sarifAutomation{ID: "mendflow/" + m.PlanID + "/" + m.Run},
			Invocations: []sarifInvocation{invocation(m)},
			Bases:       map[string]sarifBase{sarifRoot: {Description: sarifText{Text: "The root of the repository."}}},
			ColumnKind:  "unicodeCodePoints",
			Results:     []sarifResult{},
		}},
	}
	run := &log.Runs[0]
	if uri := repositoryURI(m.Repository); uri != "" {
		run.Provenance = []sarifProvenance{{Repository: uri, Revision: m.HeadCommit, Branch: m.Branch}}
	}
	seen := map[string]int{}
	for _, r := range results(m) {
		r.Fingerprints = fingerprints(m.PlanID, r, seen)
		r.RuleIndex = slices.IndexFunc(run.Tool.Driver.Rules, func(x sarifRule) bool { return x.ID == r.RuleID })
		if r.RuleIndex < 0 {
			r.RuleIndex = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule(r.RuleID))
		}
		run.Results = append(run.Results, r)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(log); err != nil {
		return nil, fmt.Errorf("encode sarif: %w", err)
	}
	return b.Bytes(), nil
}

func invocation(m Model) sarifInvocation {
	inv := sarifInvocation{Successful: m.ClosedAt != nil && m.Verdict.Status != contract.RunFailed}
	if !m.StartedAt.IsZero() {
		inv.Start = m.StartedAt.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if m.ClosedAt != nil {
		inv.End = m.ClosedAt.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return inv
}

// results lists the findings that are results, items first, without fingerprints and rule indexes.
func results(m Model) []sarifResult {
	var out []sarifResult
	for _, i := range m.Items {
		if i.Status.VerifiedComplete() {
			continue
		}
		r := result(i.Finding, i.Title, i.Summary, i.Severity, i.Lens, i.Files)
		r.Properties.Node, r.Properties.Status, r.Properties.Reason = i.Node, i.Status, i.Reason
		if i.Status.Skip() {
			r.Suppressions = append(r.Suppressions, sarifSuppression{Kind: "external", Status: "accepted", Justification: join(string(i.Status), i.Reason)})
		}
		out = append(out, r)
	}
	for _, d := range m.Dispositions {
		status := map[string]string{DroppedByIntent: "accepted", DroppedNoEvidence: "underReview"}[d.State]
		if status == "" {
			continue
		}
		r := result(d.Finding, d.Title, "", d.Severity, d.Lens, d.Files)
		r.Properties.Reason = join(d.State, d.Reason)
		r.Suppressions = append(r.Suppressions, sarifSuppression{Kind: "external", Status: status, Justification: join(d.State, d.Reason)})
		out = append(out, r)
	}
	return out
}

func join(state, reason string) string {
	if reason == "" {
		return state
	}
	return state + ": " + reason
}

func result(id, title, summary string, severity plan.Severity, lens plan.Lens, files []plan.Location) sarifResult {
	if lens == "" {
		lens = "finding"
	}
	text := title
	if text == "" {
		text = id
	}
	if summary != "" {
		text += "\n\n" + summary
	}
	r := sarifResult{
		RuleID: string(lens), Level: level(severity), Message: sarifText{Text: text},
		Suppressions: []sarifSuppression{}, Properties: sarifProperties{Finding: id, Severity: severity},
	}
	for _, f := range files {
		loc := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{URI: percent(f.Path), Base: sarifRoot}}}
		if f.LineStart > 0 {
			loc.Physical.Region = &sarifRegion{StartLine: f.LineStart}
			if f.LineEnd >= f.LineStart {
				loc.Physical.Region.EndLine = f.LineEnd
			}
		}
		r.Locations = append(r.Locations, loc)
	}
	return r
}

func level(s plan.Severity) string {
	switch s {
	case plan.SeverityCritical, plan.SeverityHigh:
		return "error"
	case plan.SeverityLow, plan.SeverityInfo:
		return "note"
	default:
		return "warning"
	}
}

func rule(id string) sarifRule {
	return sarifRule{
		ID: id, Short: sarifText{Text: "Findings of the lens " + strings.ReplaceAll(id, "_", " ") + "."},
		Properties: sarifTags{Tags: []string{id}},
	}
}

func fingerprints(planID string, r sarifResult, seen map[string]int) map[string]string {
	first := ""
	if len(r.Locations) > 0 {
		first = r.Locations[0].Physical.Artifact.URI
	}
	title, _, _ := strings.Cut(r.Message.Text, "\n")
	about := digest(r.RuleID, strings.Join(strings.Fields(title), " "), first)
	seen[about]++
	return map[string]string{
		"mendflowFinding/v1": fmt.Sprintf("%s:%d", about, seen[about]),
		"mendflowId/v1":      digest(planID, r.Properties.Finding),
	}
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), strings.ToValidUTF8(p, "\uFFFD"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// percent makes a URI reference of a path (RFC 3986: unreserved characters and slashes stay).
func percent(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// hubURL matches the URLs that git takes, user and password apart (RFC 3986, no query).
var hubURL = regexp.MustCompile(`^([a-z][a-z0-9+.-]*://)(?:[^/@]*@)?([A-Za-z0-9._-]+(?::[0-9]{1,5})?(?:/(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9._~!$&'()*+,;=:@/-])*)?)$`)

// repositoryURI is the hub as a URI without user and password, or "" when it is none (an address like host:path).
func repositoryURI(hub string) string {
	if strings.HasPrefix(hub, "/") {
		return "file://" + percent(hub)
	}
	m := hubURL.FindStringSubmatch(hub)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}
