package run

import (
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Ended is how a worker ended: what the table "What a worker's end means"
// (landing.md) looks at before anything is committed.
type Ended struct {
	Node     string
	Opening  int
	Findings []plan.Finding // the open ones that the worker was given
	Command  bool           // provider `command`: no result is expected of it
	ExitCode int

	Result  *Result // nil: no valid result was delivered
	Invalid string  // why a delivered result was refused

	// Changed are the paths that the worker changed, as git says: its own commits,
	// index, tree and untracked files. Never its word.
	Changed []string

	// Classified is what the launch's output means (package quota). It is looked
	// at only without a valid result, since a delivered result decides. An empty
	// outcome, or success, means that nothing was recognised.
	Classified Classified
}

// Classified is a recognised end of a launch.
type Classified struct {
	Outcome contract.Outcome
	Cause   contract.Cause // of an error
	Reason  string
}

// Claim is executable evidence of a no_change to be tried again on the truth.
type Claim struct {
	Finding  string
	Command  plan.Command
	ExitCode int // the claimed one
}

// Step says what has to happen before the end can be judged: nothing (Final is
// set), landing, or verification of the truth as it is.
type Step struct {
	// Land: commit what the worker left, check its scope, merge, verify the merged
	// tree; then After, and the landing transaction when it says so.
	Land bool
	// Verify: the worker's changes, if any, do not land; verify the truth without
	// them; then After.
	Verify bool
	// Claims are tried again in the verified tree.
	Claims []Claim
	// Final is the judgement when neither is needed.
	Final *Judgement
}

// Verdict is what the node's verify commands said.
type Verdict string

// Verdicts of a verification.
const (
	VerifyNone  Verdict = "none" // the node has no verify commands: green, shown as unverified
	VerifyGreen Verdict = "green"
	VerifyRed   Verdict = "red"
)

// Checked is what commit, scope, merge and verification of a Step gave.
type Checked struct {
	Scope     ScopeVerdict // zero: nothing was refused
	Conflicts []string     // paths that did not merge
	Verify    Verdict
	Tail      string   // of the red command
	RedAtBase bool     // verify was red on the run's base commit
	Held      []string // findings with a claim that gave the claimed exit code again
}

// Tree says what becomes of the attempt's worktree.
type Tree string

// Ends of a worktree.
const (
	TreeReleased Tree = "released"
	TreeSalvaged Tree = "salvaged" // its changes go to a salvage ref, then it is released
	TreeKept     Tree = "kept"     // for continuation
)

// Judgement is what a worker's end means.
type Judgement struct {
	Land       bool // the merged tree becomes a commit of the run
	State      contract.NodeState
	Outcome    contract.Outcome
	Cause      contract.Cause
	Reason     string // one line
	Tail       string // of a failure, for the next prompt
	Items      []contract.ItemResult
	Friction   []contract.Friction
	Tree       Tree
	Unverified bool
}

// Before says what has to happen before a worker's end can be judged.
func Before(e Ended) Step {
	switch {
	case e.Result != nil:
		return beforeResult(e)
	case e.Invalid != "" && !recognised(e.Classified):
		return final(failed(e, contract.CauseWork, "the result file is not valid: "+e.Invalid, ""))
	case !e.Command || e.ExitCode != 0 || recognised(e.Classified):
		return final(unanswered(e))
	case len(e.Changed) > 0:
		return Step{Land: true}
	case e.Opening > 1:
		return Step{Verify: true} // its work may be on the truth already
	}
	return final(failed(e, contract.CauseWork, "nothing was changed and no result given", ""))
}

func final(j Judgement) Step { return Step{Final: &j} }

func recognised(c Classified) bool {
	return c.Outcome != "" && c.Outcome != contract.OutcomeSuccess
}

// beforeResult finds what a result needs: resolved findings need a change that
// lands, no_change ones a look at the truth.
func beforeResult(e Ended) Step {
	resolved, claims, unchanged := 0, []Claim(nil), 0
	for _, item := range e.Result.Items {
		switch {
		case item.Status == AnswerResolved:
			resolved++
		case item.Status == AnswerNoChange && !touches(e, item.Finding):
			unchanged++
			claims = append(claims, claimsOf(item)...)
		}
	}
	switch {
	case resolved > 0 && len(e.Changed) == 0:
		return final(failed(e, contract.CauseWork,
			"the result says resolved, but nothing was changed: what was right already is no_change, with evidence", ""))
	case resolved > 0:
		return Step{Land: true, Claims: claims}
	case unchanged > 0:
		return Step{Verify: true, Claims: claims}
	}
	j := Judgement{State: contract.NodeBlocked, Outcome: contract.OutcomeSuccess, Reason: "the worker resolved nothing"}
	j.answer(e, Checked{})
	j.discard(e)
	return final(j)
}

func claimsOf(item ResultItem) []Claim {
	var claims []Claim
	for _, ev := range item.Evidence {
		if ev.Executable() {
			claims = append(claims, Claim{Finding: item.Finding, Command: ev.Command, ExitCode: ev.ExitCode})
		}
	}
	return claims
}

// After judges the end once the Step is done.
func After(e Ended, c Checked) Judgement {
	lands := Before(e).Land
	switch {
	case lands && len(c.Scope.Refused) > 0:
		return failed(e, c.Scope.cause(), "changed paths were refused: "+c.Scope.text(), c.Scope.details())
	case lands && len(c.Conflicts) > 0:
		return failed(e, contract.CauseConflict, "does not merge: "+list(c.Conflicts), "these paths conflict with what landed meanwhile:\n"+strings.Join(c.Conflicts, "\n"))
	case c.Verify == VerifyRed && (lands || allUnchanged(e)):
		return failed(e, contract.CauseWork, "verification is red", c.Tail)
	}
	j := Judgement{Land: lands, Outcome: contract.OutcomeSuccess, Unverified: c.Verify == VerifyNone, Tree: TreeReleased}
	j.Friction = append(j.Friction, c.Scope.friction(e.Node)...)
	if e.Result == nil {
		j.Items = everyFinding(e, contract.ItemResolved, "")
		if !lands {
			j.Items = everyFinding(e, contract.ItemResolvedNoChange, "the truth holds the work already: nothing changed and verification is green")
		}
	} else {
		j.answer(e, c)
	}
	j.State = stateOf(j.Items, lands)
	if !lands {
		j.discard(e)
	}
	return j
}

// allUnchanged reports a claim that there is nothing to do: red verification
// refutes it. Where other findings are left, red may be about those.
func allUnchanged(e Ended) bool {
	return e.Result == nil || len(e.Result.Items) == len(e.Findings) &&
		!slices.ContainsFunc(e.Result.Items, func(r ResultItem) bool { return r.Status != AnswerNoChange })
}

// stateOf is the node's state by its items; the drive settles with it.
func stateOf(items []contract.ItemResult, lands bool) contract.NodeState {
	complete := !slices.ContainsFunc(items, func(r contract.ItemResult) bool { return !r.Status.VerifiedComplete() })
	switch {
	case lands && complete:
		return contract.NodeLanded
	case lands:
		return contract.NodePartial
	case complete:
		return contract.NodeNoChange
	}
	return contract.NodeBlocked
}

// answer fills in the items by the worker's result, each finding on its own.
func (j *Judgement) answer(e Ended, c Checked) {
	for _, f := range e.Findings {
		i := slices.IndexFunc(e.Result.Items, func(r ResultItem) bool { return r.Finding == f.ID })
		if i < 0 {
			j.Items = append(j.Items, contract.ItemResult{
				Finding: f.ID, Status: contract.ItemPending, Omitted: true, Reason: "the worker's result left it out",
			})
			continue
		}
		j.Items = append(j.Items, j.answerOne(e, c, e.Result.Items[i]))
	}
}

func (j *Judgement) answerOne(e Ended, c Checked, item ResultItem) contract.ItemResult {
	r := contract.ItemResult{Finding: item.Finding, Reason: item.Reason, Question: item.Question}
	switch item.Status {
	case AnswerResolved:
		r.Status = contract.ItemResolved
	case AnswerBlocked:
		r.Status = contract.ItemBlocked
		if r.Reason == "" {
			r.Reason = "the worker called it blocked and gave no reason"
		}
	case AnswerNeedsClarification:
		r.Status = contract.ItemNeedsClarification
	case AnswerNoChange:
		j.noChange(e, c, item, &r)
	}
	return r
}

// noChange accepts that a finding needed no change, unless its files were changed.
func (j *Judgement) noChange(e Ended, c Checked, item ResultItem, r *contract.ItemResult) {
	if touches(e, item.Finding) {
		r.Status, r.Reason = contract.ItemBlocked, cut("no_change was claimed, but its files were changed: "+item.Reason, maxReason)
		j.Friction = append(j.Friction, contract.Friction{
			Type: contract.FrictionNoChangeRefused, Discriminator: item.Finding, Severity: "warning",
			Note: "the worker claimed no_change and changed files of the finding",
		})
		return
	}
	r.Status = contract.ItemResolvedNoChange
	if slices.Contains(c.Held, item.Finding) || c.Verify == VerifyGreen && c.RedAtBase {
		return
	}
	r.Reason = cut(strings.TrimPrefix(item.Reason+"; unverified", "; "), maxReason)
	j.Friction = append(j.Friction, contract.Friction{
		Type: contract.FrictionNoChangeUnverified, Discriminator: item.Finding, Severity: "warning",
		Note: "no_change was accepted without proof: verification was not red at the base, and no evidence could be repeated",
	})
}

// touches reports whether the worker changed a file of a finding.
func touches(e Ended, finding string) bool {
	i := slices.IndexFunc(e.Findings, func(f plan.Finding) bool { return f.ID == finding })
	if i < 0 {
		return false
	}
	return slices.ContainsFunc(e.Findings[i].Files, func(file plan.Location) bool {
		path := strings.TrimSuffix(strings.TrimPrefix(file.Path, "./"), "/")
		return slices.ContainsFunc(e.Changed, func(changed string) bool {
			return changed == path || strings.HasPrefix(changed, path+"/")
		})
	})
}

func everyFinding(e Ended, status contract.ItemStatus, reason string) []contract.ItemResult {
	items := make([]contract.ItemResult, 0, len(e.Findings))
	for _, f := range e.Findings {
		items = append(items, contract.ItemResult{Finding: f.ID, Status: status, Reason: reason})
	}
	return items
}

// failed is an error: the node's findings stay open, its changes are salvaged.
func failed(e Ended, cause contract.Cause, reason, tail string) Judgement {
	j := Judgement{Outcome: contract.OutcomeError, Cause: cause, Reason: cut(oneLine(reason), maxReason), Tail: tail}
	if tail == "" {
		j.Tail = reason
	}
	j.discard(e)
	return j
}

// unanswered judges a launch that left no result, by its output.
func unanswered(e Ended) Judgement {
	c := e.Classified
	if !recognised(c) {
		reason := fmt.Sprintf("the program ended with exit code %d and no result", e.ExitCode)
		if e.ExitCode == 0 {
			reason = "the program ended without a result"
		}
		return failed(e, contract.CauseWork, reason, "")
	}
	if c.Outcome == contract.OutcomeError && c.Cause == "" {
		c.Cause = contract.CauseWork
	}
	if c.Outcome == contract.OutcomeTimeout {
		c.Cause = contract.CauseHost // charged as host (dispatch.md)
	}
	j := Judgement{Outcome: c.Outcome, Cause: c.Cause, Reason: cut(oneLine(c.Reason), maxReason)}
	switch c.Outcome {
	case contract.OutcomeError, contract.OutcomeTimeout:
		j.Tail = c.Reason
		j.discard(e)
	case contract.OutcomeModelUnavailable, contract.OutcomePacketTooLarge:
		j.discard(e)
	default: // a limit or an interruption: work goes on in the same tree
		j.Tree = TreeKept
	}
	return j
}

// discard ends a tree whose changes do not land: they are salvaged first.
func (j *Judgement) discard(e Ended) {
	j.Tree = TreeReleased
	if len(e.Changed) == 0 {
		return
	}
	j.Tree = TreeSalvaged
	j.Friction = append(j.Friction, contract.Friction{
		Type: contract.FrictionNodeSalvaged, Discriminator: e.Node, Severity: "info",
		Note: "changes of a worker did not land and were kept: " + list(e.Changed),
	})
}

// list names a few of many.
func list(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
