package activities

import (
	"context"
	"fmt"
	"slices"

	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/report"
	"mendflow/internal/run"
)

// protectedPaths lists the protected files that stand changed on the truth. Only
// landings of nodes that may change one are looked at.
func protectedPaths(ctx context.Context, opened *openRun, state gitrepo.RunState) ([]report.ProtectedPath, error) {
	if !opened.config.Plan.AllowProtected {
		return nil, nil
	}
	sources := opened.config.GateSources
	var found []report.ProtectedPath
	for _, landing := range state.Landings {
		i, known := opened.nodes[landing.Node]
		if !known || landing.RevertedBy != "" || !namesProtected(opened.config.Plan.Nodes[i], sources) {
			continue
		}
		changed, err := opened.mirror.ChangedPaths(ctx, landing.Parent, landing.Commit)
		if err != nil {
			return nil, fmt.Errorf("list changes of %s: %w", landing.Commit, err)
		}
		for _, path := range changed {
			if run.ProtectedPath(path, sources) {
				found = append(found, report.ProtectedPath{Path: path, Node: landing.Node, Commit: landing.Commit})
			}
		}
	}
	return found, nil
}

func namesProtected(n plan.Node, sources []string) bool {
	return slices.ContainsFunc(n.Write, func(path string) bool { return run.ProtectedPath(path, sources) })
}
