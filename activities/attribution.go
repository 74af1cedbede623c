package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/gitrepo"
	"mendflow/internal/run"
)

// suspectsPage is how many commits a page of suspects has, far under the limit of a payload.
const suspectsPage = 300

// Suspects lists the commits that landed after the last green gate and hold at
// the truth of the red one. The answer depends on these two commits alone, not on
// where the truth is now.
func (a *Gate) Suspects(ctx context.Context, in contract.SuspectsInput) (contract.SuspectsResult, error) {
	heart := startHeart(ctx, a.Host.ID, "suspects")
	defer heart.end()
	result, err := a.suspectsPage(ctx, in)
	return result, translate(ctx, err)
}

func (a *Gate) suspectsPage(ctx context.Context, in contract.SuspectsInput) (contract.SuspectsResult, error) {
	var result contract.SuspectsResult
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return result, err
	}
	all, _, err := a.suspects(ctx, opened, in.Run, in.Green, in.Truth)
	if err != nil {
		return result, err
	}
	from := min(in.Offset, len(all))
	for _, l := range all[from:min(from+suspectsPage, len(all))] {
		result.Commits = append(result.Commits, contract.Suspect{Node: l.Node, Commit: l.Commit})
	}
	if next := from + len(result.Commits); next < len(all) {
		result.Next = next
	}
	return result, nil
}

// suspects are the landings after green that hold at the truth; straight says
// that nothing but them lies in between.
func (a *Gate) suspects(ctx context.Context, opened *openRun, id, green, truth string) (all []gitrepo.Landing, straight bool, err error) {
	state, err := a.truth(ctx, opened, id)
	if err != nil {
		return nil, false, err
	}
	past, ok := state.At(opened.config.BaseCommit, truth)
	if !ok {
		return nil, false, fmt.Errorf("find suspects: %s is not on the truth of %s: %w", truth, id, errBranchMoved)
	}
	since := past.Landings
	if green != "" && green != opened.config.BaseCommit {
		i := slices.IndexFunc(since, func(l gitrepo.Landing) bool { return l.Commit == green })
		if i < 0 {
			return nil, false, fmt.Errorf("find suspects: %s is not on the truth of %s: %w", green, id, errBranchMoved)
		}
		since = since[i+1:]
	}
	straight = true
	for _, l := range since {
		if l.Node == "" || l.RevertedBy != "" {
			straight = false
			continue
		}
		all = append(all, l)
	}
	return all, straight, nil
}

// RunTrial runs the failing command of a red gate on a tree of some of the
// suspects. A result for the same tree counts, whoever asked for it.
func (a *Gate) RunTrial(ctx context.Context, in contract.TrialInput) (contract.TrialEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "trial")
	defer heart.end()
	ctx, stop := a.Host.untilStopped(ctx)
	defer stop()
	end, err := a.trial(ctx, in, heart)
	return end, translate(ctx, err)
}

func (a *Gate) trial(ctx context.Context, in contract.TrialInput, heart *heart) (contract.TrialEnd, error) {
	var none contract.TrialEnd
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return none, err
	}
	red, err := a.stored(ctx, &contract.GateEnd{Result: &in.Gate})
	if err != nil {
		return none, err
	}
	failing, ok := red.Failing()
	if !ok {
		return none, fmt.Errorf("run trial: no command of the gate on %s is red", red.Commit)
	}
	commit, merged, err := a.trialCommit(ctx, opened, in)
	if err != nil {
		return none, err
	}
	if !merged {
		return contract.TrialEnd{Result: string(run.TrialUnmerged)}, nil
	}
	tree, err := opened.mirror.Tree(ctx, commit)
	if err != nil {
		return none, fmt.Errorf("find tree of the trial: %w", err)
	}
	question, err := json.Marshal([]any{failing.GateCommand, failing.New})
	if err != nil {
		return none, fmt.Errorf("name trial: %w", err)
	}
	known := cacheKey(in.Run, in.Config, "trial", tree, string(question))
	var end contract.TrialEnd
	if found, err := a.recall(ctx, known, &end); err != nil || found {
		end.Cached = true
		return end, err
	}
	request := gate.Request{Commands: []contract.GateCommand{failing.GateCommand}, Commit: commit, Once: true}
	if in.Baseline == "accept" {
		if request.Baseline, err = a.stored(ctx, in.Base); err != nil {
			return none, err
		}
	}
	a.Host.reach(PointTrial)
	result, err := a.judge(ctx, opened, fmt.Sprintf("trial-%d-%d", in.Round, in.Number), request, heart)
	if err != nil {
		return none, err
	}
	end = contract.TrialEnd{Result: string(run.TrialGreen), Tree: tree, Seconds: int(result.Seconds + 0.5), Log: result.Commands[0].Log}
	if failing.Recurs(result.Commands[0]) {
		end.Result = string(run.TrialRed)
	}
	return end, a.remember(ctx, known, end)
}

// trialCommit makes the commit that a trial runs on; merged is false when the suspects do not apply there.
func (a *Gate) trialCommit(ctx context.Context, opened *openRun, in contract.TrialInput) (commit string, merged bool, err error) {
	all, straight, err := a.suspects(ctx, opened, in.Run, in.Green, in.Truth)
	if err != nil {
		return "", false, err
	}
	green := in.Green
	if green == "" {
		green = opened.config.BaseCommit
	}
	n := len(in.Commits)
	switch {
	case n > 0 && in.Commits[n-1] >= len(all):
		return "", false, fmt.Errorf("make tree of the trial: there is no suspect %d", in.Commits[n-1])
	case n == 0:
		return green, true, nil
	case n == len(all):
		return in.Truth, true, nil
	case in.Prefix && straight: // the truth as it was then
		return all[n-1].Commit, true, nil
	}
	picks := make([]string, n)
	for i, at := range in.Commits {
		picks[i] = all[at].Commit
	}
	picked, err := opened.mirror.Pick(ctx, green, picks, opened.config.OpenedAt)
	if err != nil {
		return "", false, fmt.Errorf("make tree of the trial: %w", err)
	}
	return picked.Commit.OID, len(picked.Conflicts) == 0, nil
}

// RevertCulprit takes a culprit's commits back, and those of what stands on it,
// as one commit on the truth. What an execution did before it was killed is found there.
func (a *Gate) RevertCulprit(ctx context.Context, in contract.RevertInput) (contract.RevertEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "revert")
	defer heart.end()
	end, err := a.revert(ctx, in)
	return end, translate(ctx, err)
}

func (a *Gate) revert(ctx context.Context, in contract.RevertInput) (contract.RevertEnd, error) {
	var none contract.RevertEnd
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return none, err
	}
	landings, _, err := a.suspects(ctx, opened, in.Run, "", in.Truth)
	if err != nil {
		return none, err
	}
	landed := linked(opened, landings)
	a.Host.reach(PointBeforeRevert)
	refused := ""
	for _, sharing := range []bool{false, true} {
		if sharing {
			if err := fillPaths(ctx, opened, landings, landed); err != nil {
				return none, err
			}
		}
		positions, few := run.Reverts(landed, in.Culprit, sharing)
		if !few {
			refused = fmt.Sprintf("taking %s back takes %d of %d landed commits with it", in.Culprit, len(positions), len(landed))
			break
		}
		request := gitrepo.RevertRequest{
			Run: in.Run, Base: opened.config.BaseCommit, ExpectTruth: in.Truth, When: opened.config.OpenedAt,
			Message: revertMessage(in, landed, positions),
		}
		for _, at := range positions {
			request.Commits = append(request.Commits, landed[at].Commit)
		}
		done, err := opened.mirror.Revert(ctx, request)
		if err != nil {
			return none, fmt.Errorf("take %s back: %w", in.Culprit, err)
		}
		switch done.Status {
		case gitrepo.Landed:
			a.Host.reach(PointReverted)
			return a.reverted(ctx, opened, in.Run, done.Commit)
		case gitrepo.Conflicted:
			refused = fmt.Sprintf("taking %s back conflicts in %s", in.Culprit, strings.Join(done.Conflicts[:min(len(done.Conflicts), 3)], ", "))
		default:
			return none, fmt.Errorf("take %s back: the truth is at %s: %w", in.Culprit, done.Truth, errBranchMoved)
		}
	}
	return contract.RevertEnd{Refused: clip(refused, 500)}, nil
}

// linked are landings as the search and the revert see them, without their paths.
func linked(opened *openRun, landings []gitrepo.Landing) []run.Landed {
	landed := make([]run.Landed, len(landings))
	for i, l := range landings {
		landed[i] = run.Landed{Node: l.Node, Commit: l.Commit}
	}
	run.Link(landed, func(node string) []string {
		if i, ok := opened.units[node]; ok {
			return opened.config.Units[i].DependsOn
		}
		return nil
	})
	return landed
}

// fillPaths adds what each landing changed.
func fillPaths(ctx context.Context, opened *openRun, landings []gitrepo.Landing, landed []run.Landed) error {
	for i, l := range landings {
		paths, err := opened.mirror.ChangedPaths(ctx, l.Parent, l.Commit)
		if err != nil {
			return fmt.Errorf("list paths of %s: %w", l.Commit, err)
		}
		landed[i].Paths = paths
	}
	return nil
}

// reverted says which nodes a commit took back, in the order of landing.
func (a *Gate) reverted(ctx context.Context, opened *openRun, id, commit string) (contract.RevertEnd, error) {
	state, err := a.truth(ctx, opened, id)
	if err != nil {
		return contract.RevertEnd{}, err
	}
	end := contract.RevertEnd{Commit: commit}
	for _, l := range state.Landings {
		if l.RevertedBy == commit && !slices.Contains(end.Nodes, l.Node) {
			end.Nodes = append(end.Nodes, l.Node)
		}
	}
	return end, nil
}

func revertMessage(in contract.RevertInput, landed []run.Landed, positions []int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", clip("Take back "+in.Culprit, 100), clip(foldSpace(in.Why), 1000))
	for _, at := range positions {
		fmt.Fprintf(&b, "\n- %s %s", landed[at].Node, landed[at].Commit)
	}
	return b.String()
}
