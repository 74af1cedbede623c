package workflows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// hubModel is the truth of a run as far as gates are concerned: what landed and
// was not taken back, at every moment that a gate looked at.
type hubModel struct {
	// red says what the gate thinks of what is on the truth, as NODE/OPENING in the
	// order of landing; nil: there is no model and every gate is green.
	red func(landed []string) bool
	// refuse says why a culprit cannot be taken back; nil: it can.
	refuse func(culprit string) string
	// reverify scripts what is verified again; nil: nothing is repaired.
	reverify func(in contract.ReverifyInput) contract.ReverifyEnd

	mu      sync.Mutex
	now     []string
	truths  map[string][]string // by the name of the truth
	trials  [][]string
	reverts []contract.RevertInput
}

func (h *host) registerGates(registry worker.ActivityRegistry) {
	for name, code := range map[string]any{"Suspects": h.Suspects, "RunTrial": h.RunTrial, "RevertCulprit": h.RevertCulprit, "Reverify": h.Reverify} {
		registry.RegisterActivityWithOptions(code, activity.RegisterOptions{Name: name})
	}
}

func (f *farm) registerGates(w worker.Worker) {
	for name, code := range map[string]any{
		"Suspects": func(ctx context.Context, in contract.SuspectsInput) (contract.SuspectsResult, error) {
			return f.of(in.Run).Suspects(ctx, in)
		},
		"RunTrial": func(ctx context.Context, in contract.TrialInput) (contract.TrialEnd, error) {
			return f.of(in.Run).RunTrial(ctx, in)
		},
		"RevertCulprit": func(ctx context.Context, in contract.RevertInput) (contract.RevertEnd, error) {
			return f.of(in.Run).RevertCulprit(ctx, in)
		},
		"Reverify": func(ctx context.Context, in contract.ReverifyInput) (contract.ReverifyEnd, error) {
			return f.of(in.Run).Reverify(ctx, in)
		},
	} {
		w.RegisterActivityWithOptions(code, activity.RegisterOptions{Name: name})
	}
}

func (m *hubModel) land(in contract.NodeInput) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = append(m.now, fmt.Sprintf("%s/%d", in.Node, in.Opening))
}

func nodeOf(landing string) string { return landing[:strings.LastIndex(landing, "/")] }

// truth names the present state.
func (m *hubModel) truth() string {
	name := fmt.Sprintf("truth-%d", len(m.truths))
	if m.truths == nil {
		m.truths = map[string][]string{}
	}
	m.truths[name] = slices.Clone(m.now)
	return name
}

func (m *hubModel) gate(in contract.GateInput) contract.GateEnd {
	end := contract.GateEnd{Kind: "executed", Verdict: "green", Commit: "base", Seconds: 1}
	if in.Purpose == gateBaseline {
		return end
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	end.Commit = m.truth()
	if m.red(m.now) {
		end.Verdict, end.Failing, end.Tail = gateRed, "go test ./...", "--- FAIL: TestWhole"
		end.Result = &contract.Artifact{URI: "gate.json"}
	}
	return end
}

func (m *hubModel) suspects(green, truth string) []string {
	return slices.DeleteFunc(slices.Clone(m.truths[truth]), func(l string) bool { return slices.Contains(m.truths[green], l) })
}

func (h *host) Suspects(ctx context.Context, in contract.SuspectsInput) (contract.SuspectsResult, error) {
	if err := h.begin(ctx, "Suspects"); err != nil {
		return contract.SuspectsResult{}, err
	}
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	const page = 2 // so that tests see several
	all := h.hub.suspects(in.Green, in.Truth)
	var result contract.SuspectsResult
	for _, l := range all[in.Offset:min(in.Offset+page, len(all))] {
		result.Commits = append(result.Commits, contract.Suspect{Node: nodeOf(l), Commit: "commit-of-" + l})
	}
	if next := in.Offset + page; next < len(all) {
		result.Next = next
	}
	return result, nil
}

func (h *host) RunTrial(ctx context.Context, in contract.TrialInput) (contract.TrialEnd, error) {
	if err := h.begin(ctx, "RunTrial"); err != nil {
		return contract.TrialEnd{}, err
	}
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	tree := slices.Clone(h.hub.truths[in.Green])
	all := h.hub.suspects(in.Green, in.Truth)
	for _, at := range in.Commits {
		tree = append(tree, all[at])
	}
	h.hub.trials = append(h.hub.trials, tree)
	if h.hub.red(tree) {
		return contract.TrialEnd{Result: string(run.TrialRed)}, nil
	}
	return contract.TrialEnd{Result: string(run.TrialGreen)}, nil
}

func (h *host) RevertCulprit(ctx context.Context, in contract.RevertInput) (contract.RevertEnd, error) {
	if err := h.begin(ctx, "RevertCulprit"); err != nil {
		return contract.RevertEnd{}, err
	}
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	h.hub.reverts = append(h.hub.reverts, in)
	if h.hub.refuse != nil {
		if why := h.hub.refuse(in.Culprit); why != "" {
			return contract.RevertEnd{Refused: why}, nil
		}
	}
	landed := make([]run.Landed, len(h.hub.now))
	for i, l := range h.hub.now {
		landed[i] = run.Landed{Node: nodeOf(l), Commit: "commit-of-" + l}
	}
	run.Link(landed, func(node string) []string {
		for _, u := range h.units {
			if u.ID == node {
				return u.DependsOn
			}
		}
		return nil
	})
	gone, _ := run.Reverts(landed, in.Culprit, false)
	end := contract.RevertEnd{Commit: fmt.Sprintf("revert-%d", len(h.hub.reverts))}
	var left []string
	for i, l := range h.hub.now {
		if !slices.Contains(gone, i) {
			left = append(left, l)
		} else if !slices.Contains(end.Nodes, nodeOf(l)) {
			end.Nodes = append(end.Nodes, nodeOf(l))
		}
	}
	h.hub.now = left
	return end, nil
}

func (h *host) Reverify(ctx context.Context, in contract.ReverifyInput) (contract.ReverifyEnd, error) {
	if err := h.begin(ctx, "Reverify"); err != nil {
		return contract.ReverifyEnd{}, err
	}
	if h.hub.reverify != nil {
		return h.hub.reverify(in), nil
	}
	return contract.ReverifyEnd{Truth: "truth", Reason: "still red"}, nil
}
