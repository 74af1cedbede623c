package report_test

import (
	"fmt"
	"strings"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
	"mendflow/internal/report"
)

// The runs that the golden files show.
var fixtures = map[string]func() report.Facts{
	"completed": completed, "blocked": blocked, "ungated": ungated, "paused": paused,
	"baseline-red": baselineRed, "hostile": hostile, "long": long, "empty": empty,
}

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func at(minutes int) *time.Time {
	t := start.Add(time.Duration(minutes) * time.Minute)
	return &t
}

const (
	base = "1111111111111111111111111111111111111111"
	head = "2222222222222222222222222222222222222222"
)

func goCommand(layer string, argv ...string) contract.GateCommand {
	return contract.GateCommand{Command: plan.Command{Argv: append([]string{"go"}, argv...)}, Layer: layer}
}

func greenGate(commit string) gate.Result {
	return gate.Result{
		Kind: gate.KindExecuted, Verdict: gate.VerdictGreen, Commit: commit, Seconds: 14.25,
		Commands: []gate.CommandResult{
			{GateCommand: goCommand(gate.LayerBuild, "build", "./..."), Status: gate.StatusGreen, Runs: 1, Seconds: 2.5, Log: &contract.Artifact{URI: "runs/tour/gate-01.log"}},
			{GateCommand: goCommand(gate.LayerCheck, "vet", "./..."), Status: gate.StatusGreen, Runs: 1, Seconds: 3.25},
			{GateCommand: goCommand(gate.LayerTest, "test", "./..."), Status: gate.StatusGreen, Runs: 1, Seconds: 8.5},
		},
	}
}

func redGate(commit string) gate.Result {
	g := greenGate(commit)
	g.Verdict = gate.VerdictRed
	g.Commands[2].Status, g.Commands[2].ExitCode, g.Commands[2].Runs = gate.StatusRed, 1, 2
	g.Commands[2].Failures = gate.Failures{Known: true, IDs: []string{"example.com/shop/cart: TestTotal"}}
	g.Commands[2].New = g.Commands[2].IDs
	g.Commands[2].Tail = "--- FAIL: TestTotal (0.00s)\n    cart_test.go:12: want 3, got 4\nFAIL\nFAIL\texample.com/shop/cart\t0.003s"
	return g
}

func attempt(k int, pool string, outcome contract.Outcome) contract.AttemptRow {
	return contract.AttemptRow{
		K: k, Opening: 1, Charged: outcome.Charged(), Pool: pool, Outcome: outcome, StartedAt: start, Seconds: 61,
		Usage: contract.Usage{InputTokens: 12000, OutputTokens: 900, USDMicros: 243000, Known: true},
	}
}

func landed(k int, pool, commit string) contract.AttemptRow {
	a := attempt(k, pool, contract.OutcomeSuccess)
	a.Commit, a.VerifiedOn, a.LandedOn, a.Log = commit, base, base, "runs/tour/log"
	return a
}

// completed is a green run with a skip, a retry, an unverified node and dropped findings.
func completed() report.Facts {
	commit := strings.Repeat("a", 40)
	limited := attempt(1, "claude-max", contract.OutcomeRateLimited)
	limited.Reason = "five-hour limit, resets at 11:00 UTC"
	failed := attempt(1, "fixer", contract.OutcomeError)
	failed.Cause, failed.Reason, failed.Salvage = contract.CauseWork, "go test ./cart/... fails (exit code 1)", "refs/mendflow/salvage/tour/B-002/1"
	failed.Usage = contract.Usage{}
	unverified := landed(2, "fixer", strings.Repeat("b", 40))
	unverified.Unverified = true
	return report.Facts{
		Run: "tour", Repository: "/srv/git/shop", BaseCommit: base, HeadCommit: head, Status: contract.RunCompleted,
		StartedAt: start, ClosedAt: at(42),
		Plan: plan.Plan{
			ID: "tls-2026-11", Goal: "Repair the findings of the November audit.",
			Findings: []plan.Finding{
				{ID: "F-001", Title: "Certificate errors are ignored", Severity: plan.SeverityHigh, Lens: "security", Summary: "InsecureSkipVerify is set.",
					Files: []plan.Location{{Path: "client/tls.go", LineStart: 40, LineEnd: 52}}, Evidence: []string{"client/tls.go:44"}},
				{ID: "F-002", Title: "Totals are rounded twice", Severity: plan.SeverityCritical, Lens: "correctness", Files: []plan.Location{{Path: "cart/total.go", LineStart: 9}}},
				{ID: "F-003", Title: "The handler is not tested", Severity: plan.SeverityLow, Lens: "tests", Files: []plan.Location{{Path: "web/handler.go"}}},
				{ID: "F-004", Title: "An old endpoint is kept", Severity: plan.SeverityInfo, Lens: "maintainability"},
				{ID: "F-005", Title: "Retries are unbounded", Severity: plan.SeverityMedium, Lens: "reliability", Files: []plan.Location{{Path: "legacy/retry.go", LineStart: 3}}},
			},
			Nodes: []plan.Node{
				{ID: "B-001", Findings: []string{"F-001"}}, {ID: "B-002", Findings: []string{"F-002", "F-003"}}, {ID: "B-003", Findings: []string{"F-004"}},
			},
		},
		Items: []contract.ItemRow{
			{Finding: "F-004", Node: "B-003", Status: contract.ItemIgnored, Reason: "kept until March for one customer"},
			{Finding: "F-001", Node: "B-001", Status: contract.ItemResolved, Attempt: 2},
			{Finding: "F-002", Node: "B-002", Status: contract.ItemResolved, Attempt: 2},
			{Finding: "F-003", Node: "B-002", Status: contract.ItemResolvedNoChange, Reason: "handler_test.go covers it", Attempt: 2},
		},
		Evidence: []report.ItemEvidence{{Finding: "F-003", Evidence: []report.Evidence{{Command: "go test ./web/...", Ran: true}, {Text: "web/handler_test.go:10"}}}},
		Nodes: []contract.NodeRow{
			{ID: "B-002", Level: 1, State: contract.NodeLanded, Opening: 1, Attempts: []contract.AttemptRow{failed, unverified}},
			{ID: "B-001", Level: 0, State: contract.NodeLanded, Opening: 1, Attempts: []contract.AttemptRow{limited, landed(2, "fixer", commit)}},
			{ID: "B-003", Level: 1, State: contract.NodeSkipped, Opening: 1, Reason: "all its findings are skips"},
		},
		Dispositions: []contract.Disposition{
			{Finding: "F-005", State: report.DroppedByIntent, Reason: "legacy/retry.go matches excluded legacy/**"},
			{Finding: "F-005b", State: report.Folded, Reason: "F-005"},
		},
		Baseline: &report.Gate{Purpose: report.PurposeBaseline, Result: greenGate(base)},
		Gates: []report.Gate{
			{Purpose: report.PurposeFinal, Round: 1, Result: redGate(strings.Repeat("c", 40)), Attribution: &report.Attribution{
				Verdict: "culprit", Nodes: []string{"B-002"}, Reverted: []string{"B-002"}, Runs: 3}},
			{Purpose: report.PurposeFinal, Round: 2, Result: withResidual(greenGate(head), "web: package.json has no test script")},
		},
		Friction: []contract.Friction{
			{Type: contract.FrictionNoChangeUnverified, Discriminator: "B-002/F-003", Severity: "warning", Note: "verify was green before as well"},
			{Type: contract.FrictionNodeSalvaged, Discriminator: "B-002/1", Severity: "info", Note: "kept at refs/mendflow/salvage/tour/B-002/1"},
		},
		Refs:        []string{"refs/mendflow/salvage/tour/B-002/1", "refs/heads/mendflow/tour", "refs/mendflow/run/tour"},
		Protected:   []report.ProtectedPath{{Path: ".github/workflows/ci.yml", Node: "B-001", Commit: commit}},
		Publication: &report.Publication{Action: plan.ClosePullRequest, State: "succeeded", Branch: "mendflow/tour", URL: "https://git.example.com/shop/pull/7"},
		Notes:       []string{"branch mendflow/tour is checked out in the repository: left alone"},
	}
}

func withResidual(r gate.Result, residual ...string) gate.Result {
	r.Residual = residual
	return r
}

// blocked is a run that closed with findings left, a red gate and an exhausted publication.
func blocked() report.Facts {
	f := completed()
	f.Run, f.Status, f.Reason = "tour-2", contract.RunBlocked, "the gate was red for the third time"
	f.Items[1].Status, f.Items[1].Reason = contract.ItemAbandoned, "the gate was red for the third time"
	f.Items[2].Status, f.Items[2].Reason = contract.ItemAbandoned, "go test ./cart/... fails (exit code 1)"
	f.Nodes[0].State, f.Nodes[0].Reason = contract.NodeBlocked, "two attempts failed"
	f.Nodes[1].State = contract.NodeBlocked
	f.Gates = f.Gates[:1]
	f.Publication = &report.Publication{Action: plan.ClosePullRequest, State: "exhausted", Branch: "mendflow/tour-2", Attempts: 5, Detail: "502 from the server"}
	return f
}

// ungated is a green run of a remote hub whose plan disables the gate.
func ungated() report.Facts {
	f := completed()
	f.Repository = "https://bot@git.example.com/shop.git"
	f.Baseline, f.Publication = nil, nil
	f.Gates = []report.Gate{{Purpose: report.PurposeFinal, Round: 1, Result: gate.Disabled(head, nil)}}
	return f
}

// paused is an open run that waits for a reset and an answer; its plan accepts a red base.
func paused() report.Facts {
	f := completed()
	f.Status, f.ClosedAt, f.Gates, f.Publication = contract.RunPaused, nil, nil, nil
	f.Baseline, f.Plan.Gate.Baseline = &report.Gate{Purpose: report.PurposeBaseline, Result: redGate(base)}, plan.BaselineAccept
	f.Items[0] = contract.ItemRow{Finding: "F-004", Node: "B-003", Status: contract.ItemNeedsClarification, Question: "Does customer X still call it?"}
	f.Items[1].Status = contract.ItemPending
	f.Nodes[1].State, f.Nodes[1].Cause, f.Nodes[1].NotBefore = contract.NodeStranded, contract.StrandQuotaPaused, at(120)
	f.Holds = []contract.Hold{
		{Kind: contract.HoldQuota, Reason: "every pool waits for a reset", Since: start, Until: at(120), Lift: "starter resume tour --now"},
		{Kind: contract.HoldQuestion, Reason: "F-004 needs an answer", Since: start, Lift: "starter answer tour F-004"},
	}
	return f
}

// baselineRed never launched a worker.
func baselineRed() report.Facts {
	f := completed()
	f.Status, f.HeadCommit, f.ClosedAt, f.Reason = contract.RunPaused, base, nil, ""
	f.Gates, f.Publication, f.Friction, f.Refs, f.Protected, f.Notes, f.Evidence = nil, nil, nil, nil, nil, nil, nil
	f.Baseline = &report.Gate{Purpose: report.PurposeBaseline, Result: redGate(base)}
	for i := range f.Items {
		f.Items[i] = contract.ItemRow{Finding: f.Items[i].Finding, Node: f.Items[i].Node, Status: contract.ItemPending}
	}
	for i := range f.Nodes {
		f.Nodes[i] = contract.NodeRow{ID: f.Nodes[i].ID, Level: f.Nodes[i].Level, State: contract.NodePending, Opening: 1}
	}
	f.Holds = []contract.Hold{{Kind: contract.HoldGate, Reason: "baseline_red: go test ./... fails on " + base[:12], Since: start, Lift: "starter gate retry tour"}}
	return f
}

// hostile has every text under somebody else's control.
func hostile() report.Facts {
	f := completed()
	evil := "a|b\n# x `code` <script>alert(1)</script> [l](http://e) ![i](x) *b* _u_ ~~s~~ @team &lt; \x1b[31mred\x1b[0m \u202egnp.exe \\| $x$"
	f.Run = "tour"
	f.Repository = "/srv/git/it's `a` $HOME"
	f.Reason, f.Plan.Goal = evil, evil
	for i := range f.Plan.Findings {
		f.Plan.Findings[i].Title, f.Plan.Findings[i].Summary = evil, evil
		f.Plan.Findings[i].Files = []plan.Location{{Path: "ü ä/`x`|\n<y>.go", LineStart: 5, LineEnd: 2}}
	}
	for i := range f.Items {
		f.Items[i].Reason, f.Items[i].Question = evil, evil
	}
	for i := range f.Friction {
		f.Friction[i].Note = evil
	}
	f.Gates = f.Gates[:1]
	f.Gates[0].Commands[2].Tail = "```\n" + evil + "\n````"
	f.Gates[0].Commands[2].New = []string{evil}
	f.Protected[0].Path = "a|b`c``d\n.yml"
	f.Notes = []string{evil, "1. one", "- two", "> three"}
	f.Publication.Detail = evil
	return f
}

// long has more of everything than a reader wants.
func long() report.Facts {
	f := report.Facts{Run: "long", Repository: "/srv/git/long", BaseCommit: base, HeadCommit: head, Status: contract.RunBlocked, StartedAt: start, ClosedAt: at(600)}
	f.Plan.ID = "long"
	for i := range 250 {
		id, node := fmt.Sprintf("F-%03d", i), fmt.Sprintf("B-%03d", i)
		f.Plan.Findings = append(f.Plan.Findings, plan.Finding{ID: id, Title: strings.Repeat("word ", 60), Severity: plan.SeverityLow})
		f.Plan.Nodes = append(f.Plan.Nodes, plan.Node{ID: node, Findings: []string{id}})
		f.Items = append(f.Items, contract.ItemRow{Finding: id, Node: node, Status: contract.ItemAbandoned, Reason: "no capable pool"})
		f.Nodes = append(f.Nodes, contract.NodeRow{ID: node, State: contract.NodeBlocked, Opening: 1, Reason: "no capable pool"})
		f.Friction = append(f.Friction, contract.Friction{Type: contract.FrictionPoolDown, Discriminator: node})
		f.Refs = append(f.Refs, "refs/mendflow/salvage/long/"+node+"/1")
	}
	for i := range 9 {
		f.Gates = append(f.Gates, report.Gate{Purpose: report.PurposePhase, Round: i + 1, Result: greenGate(head)})
	}
	return f
}

func empty() report.Facts { return report.Facts{Status: contract.RunFailed, ClosedAt: at(0)} }
