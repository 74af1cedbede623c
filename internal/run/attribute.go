package run

import (
	"slices"
)

// Landed is a node whose commit is on the truth, as the search and the revert
// see it. Slices of it are in the order of landing.
type Landed struct {
	Node      string   `json:"node"`
	Commit    string   `json:"commit"`
	DependsOn []string `json:"depends_on,omitempty"` // plan dependencies, direct ones suffice
	Paths     []string `json:"paths,omitempty"`      // changed paths
}

// TrialResult is what the failing command said about a tree.
type TrialResult string

// Results of a trial.
const (
	TrialGreen    TrialResult = "green"
	TrialRed      TrialResult = "red"
	TrialUnmerged TrialResult = "unmerged" // the commits do not merge there: nothing ran
)

// Trial is a tree to run the failing command on: these landed commits, by
// position from 0 and ascending, on the truth of the last green gate.
type Trial struct {
	Commits []int `json:"commits"`
	// Prefix: they are the first ones in the order of landing, so that the tree is
	// the truth as it was then.
	Prefix bool `json:"prefix"`
}

// AttributionVerdict says who turned a gate red.
type AttributionVerdict string

// Verdicts of an attribution.
const (
	Culprit        AttributionVerdict = "culprit"
	Interaction    AttributionVerdict = "interaction" // two that are green alone
	Unattributable AttributionVerdict = "unattributable"
)

// Attribution is the answer of a search.
type Attribution struct {
	Verdict AttributionVerdict `json:"verdict"`
	Culprit string             `json:"culprit,omitempty"` // the node to revert and re-open; of an interaction the later one
	Partner string             `json:"partner,omitempty"` // of an interaction the earlier one
	Textual bool               `json:"textual,omitempty"` // the culprit does not merge without the others
	Runs    int                `json:"runs"`              // trials that were run
	Reason  string             `json:"reason,omitempty"`  // of unattributable
}

// Search finds the landed commit that turned the gate red: a bisect between the
// truth of the last green gate and the red one, one more trial that tells a
// culprit from an interaction, and a second bisect for the partner. It is a
// value: Next is a function of the commits and of the answers so far, so that an
// interrupted search goes on where it was.
//
// Of n commits the bisect takes at most ⌈log2 n⌉+2 trials, its two ends
// included; a culprit takes one more, an interaction at most 2⌈log2 n⌉+3 in all.
// Ends that are known can be answered without a run (Know).
type Search struct {
	Commits []Landed      `json:"commits"`
	Answers []TrialAnswer `json:"answers,omitempty"`
	Runs    int           `json:"runs,omitempty"`
}

// TrialAnswer is a recorded trial.
type TrialAnswer struct {
	Commits []int       `json:"commits"`
	Result  TrialResult `json:"result"`
}

// NewSearch starts a search over the commits that landed since the last green
// gate and were not reverted, in the order of landing.
func NewSearch(commits []Landed) *Search { return &Search{Commits: slices.Clone(commits)} }

// Record answers a trial that was run.
func (s *Search) Record(t Trial, r TrialResult) {
	s.Runs++
	s.Know(t, r)
}

// Know answers a trial from a cache, or because the gate said it already.
func (s *Search) Know(t Trial, r TrialResult) {
	s.Answers = append(s.Answers, TrialAnswer{Commits: t.Commits, Result: r})
}

// All is the trial of the red truth itself.
func (s *Search) All() Trial { return prefix(len(s.Commits)) }

// None is the trial of the last green truth.
func (s *Search) None() Trial { return prefix(0) }

func prefix(n int) Trial {
	t := Trial{Commits: make([]int, n), Prefix: true}
	for i := range n {
		t.Commits[i] = i
	}
	return t
}

// Next returns the trial that is needed next, or the answer; exactly one is set.
func (s *Search) Next() (*Trial, *Attribution) {
	fail := func(reason string) (*Trial, *Attribution) {
		return nil, &Attribution{Verdict: Unattributable, Runs: s.Runs, Reason: reason}
	}
	if len(s.Commits) == 0 {
		return fail("nothing landed since the last green gate")
	}
	for _, end := range []struct {
		trial     Trial
		want      TrialResult
		otherwise string
	}{
		{s.All(), TrialRed, "the failing command is not red by itself"},
		{s.None(), TrialGreen, "the failing command is red before any of these landed"},
	} {
		r, ok := s.answer(end.trial)
		switch {
		case !ok:
			return &end.trial, nil
		case r != end.want:
			return fail(end.otherwise)
		}
	}
	suspect, t := s.bisect(len(s.Commits), prefix)
	if t != nil {
		return t, nil
	}
	return s.decide(suspect - 1)
}

// answer looks a trial up.
func (s *Search) answer(t Trial) (TrialResult, bool) {
	i := slices.IndexFunc(s.Answers, func(a TrialAnswer) bool { return slices.Equal(a.Commits, t.Commits) })
	if i < 0 {
		return "", false
	}
	return s.Answers[i].Result, true
}

// bisect finds the least k in 1..n whose trial is red, where that of 0 is not and
// that of n is; or it returns the trial that it needs. What does not merge is not
// red: more commits are needed for it to merge.
func (s *Search) bisect(n int, trial func(k int) Trial) (int, *Trial) {
	low, high := 0, n
	for high-low > 1 {
		mid := (low + high) / 2
		t := trial(mid)
		switch r, ok := s.answer(t); {
		case !ok:
			return 0, &t
		case r == TrialRed:
			high = mid
		default:
			low = mid
		}
	}
	return high, nil
}

// decide tells a culprit from an interaction: the suspect with its dependencies
// alone on the last green truth.
func (s *Search) decide(suspect int) (*Trial, *Attribution) {
	alone := s.withDependencies(suspect)
	found := &Attribution{Verdict: Culprit, Culprit: s.Commits[suspect].Node, Runs: s.Runs}
	var others []int // landed before it and not its dependencies
	for i := range suspect {
		if !slices.Contains(alone, i) {
			others = append(others, i)
		}
	}
	t := trialOf(alone) // without others it is the bisect's own red trial
	switch r, ok := s.answer(t); {
	case !ok:
		return &t, nil
	case r == TrialRed:
		return nil, found
	case r == TrialUnmerged:
		found.Textual = true
		return nil, found
	}
	k, next := s.bisect(len(others), func(k int) Trial {
		return trialOf(append(slices.Clone(alone), others[:k]...))
	})
	if next != nil {
		return next, nil
	}
	found.Verdict, found.Partner = Interaction, s.Commits[others[k-1]].Node
	return nil, found
}

func trialOf(commits []int) Trial {
	slices.Sort(commits)
	return Trial{Commits: commits, Prefix: len(commits) == 0 || commits[len(commits)-1] == len(commits)-1}
}

// withDependencies returns a commit with those that landed before it of its own
// node and of the nodes that it depends on, directly or further on.
func (s *Search) withDependencies(commit int) []int {
	set := []int{commit}
	for i := 0; i < len(set); i++ {
		from := s.Commits[set[i]]
		for at, c := range s.Commits[:commit] {
			if (c.Node == from.Node || slices.Contains(from.DependsOn, c.Node)) && !slices.Contains(set, at) {
				set = append(set, at)
			}
		}
	}
	slices.Sort(set)
	return set
}

// Reverts returns the positions of the commits to revert with a culprit, latest
// first: its own and those of its landed plan dependants; with sharing, for where
// these conflict, also later ones that share a path with one of them. ok is false
// when others than the culprit have to go and it is more than a third of what
// landed: then reverting does more harm than driving again.
func Reverts(landed []Landed, culprit string, sharing bool) (commits []int, ok bool) {
	gone := make([]bool, len(landed))
	nodes, paths := map[string]bool{culprit: true}, map[string]bool{}
	own := 0
	for i, l := range landed { // dependants land after what they depend on
		depends := slices.ContainsFunc(l.DependsOn, func(id string) bool { return nodes[id] })
		shares := sharing && slices.ContainsFunc(l.Paths, func(p string) bool { return paths[p] })
		if l.Node != culprit && !depends && !shares {
			continue
		}
		gone[i] = true
		nodes[l.Node] = true
		if l.Node == culprit {
			own++
		}
		for _, p := range l.Paths {
			paths[p] = true
		}
	}
	for i := range slices.Backward(landed) {
		if gone[i] {
			commits = append(commits, i)
		}
	}
	return commits, own > 0 && (len(commits) == own || 3*len(commits) <= len(landed))
}
