package activities

import (
	"cmp"
	"context"
	"slices"

	"mendflow/internal/contract"
	"mendflow/internal/report"
)

// rounds reads back every gate of a run, with what the red ones were attributed
// to. A run with one gate keeps only that.
func (a *Publication) rounds(ctx context.Context, record contract.RunRecord) ([]report.Gate, error) {
	told := record.Gates
	if len(told) == 0 && record.Gate != nil {
		told = []contract.GateRound{{Purpose: report.PurposeFinal, Round: 1, End: *record.Gate}}
	}
	var gates []report.Gate
	for _, round := range told {
		shown, err := a.gate(ctx, round.Purpose, round.Round, &round.End)
		if err != nil {
			return nil, err
		}
		if t := round.Attribution; t != nil {
			nodes := slices.DeleteFunc([]string{t.Culprit, t.Partner}, func(id string) bool { return id == "" })
			shown.Attribution = &report.Attribution{
				Verdict: t.Verdict, Nodes: nodes, Reverted: t.Reverted, Runs: t.Runs, Detail: cmp.Or(t.Detail, t.Commit),
			}
		}
		gates = append(gates, *shown)
	}
	return gates, nil
}
