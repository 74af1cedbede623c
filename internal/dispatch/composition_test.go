package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func TestCheckCompositionRefusesWhatNoFileGives(t *testing.T) {
	t.Parallel()
	good := contract.Pool{ID: "p", Account: "a", MaxConcurrent: 1}
	require.NoError(t, CheckComposition([]contract.Pool{good}))
	twin, closed, nameless := good, good, good
	twin.ID, closed.MaxConcurrent, nameless.ID = "P", 0, ""
	for name, pools := range map[string][]contract.Pool{
		"none": nil, "twice": {good, twin}, "no slot": {closed}, "no id": {nameless},
	} {
		require.Error(t, CheckComposition(pools), name)
	}
}

func TestRedefinedIsWhatRunsSomethingElse(t *testing.T) {
	t.Parallel()
	old := []contract.Pool{{ID: "same", Model: "m"}, {ID: "other", Model: "m"}, {ID: "gone"}}
	next := []contract.Pool{{ID: "other", Model: "n"}, {ID: "same", Model: "m", MaxConcurrent: 7, Rank: 2}, {ID: "new"}}
	require.Equal(t, []string{"other"}, Redefined(old, next))
}

func TestDisownedTreeIsReleasedNotContinued(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{{ID: "a", Findings: []string{"fa"}, Write: []string{"a"}}, {ID: "b", Findings: []string{"fb"}, Write: []string{"b"}}}, FrontierOptions{})
	for _, a := range f.Admissions(t0, 2) {
		f.Strand(contract.Stranding{
			Node: a.Admission.Node, Opening: 1, NextAttempt: 2, Cause: contract.StrandQuotaPaused,
			Kept: &contract.Kept{Attempt: 1, Host: "h", Pool: "pool-" + a.Admission.Node},
		}, t0)
	}
	require.Equal(t, []string{"b"}, f.Disown([]string{"pool-b", "pool-c"}))
	require.Empty(t, f.Disown([]string{"pool-b"}), "once")
	f.Rearm(contract.StrandQuotaPaused)
	again := f.Admissions(t0, 2)
	require.Equal(t, "pool-a", again[0].Admission.Kept.Pool)
	require.Equal(t, &contract.Kept{Attempt: 1, Host: "h"}, again[1].Admission.Kept, "the tree is still there to be released")
}

func TestDroppedTreesAreReleasedNotContinued(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{{ID: "a", Findings: []string{"fa"}, Write: []string{"a"}}, {ID: "b", Findings: []string{"fb"}, Write: []string{"b"}}}, FrontierOptions{})
	for _, a := range f.Admissions(t0, 2) {
		kept := &contract.Kept{Attempt: 1, Host: "h", Pool: "p"}
		if a.Admission.Node == "b" {
			kept = nil
		}
		f.Strand(contract.Stranding{Node: a.Admission.Node, Opening: 1, NextAttempt: 2, Cause: contract.StrandHeld, Kept: kept}, t0)
	}
	require.Equal(t, []string{"a"}, f.DropKept())
	require.Empty(t, f.DropKept(), "once")
	f.Rearm(contract.StrandHeld)
	again := f.Admissions(t0, 2)
	require.Equal(t, &contract.Kept{Attempt: 1, Host: "h"}, again[0].Admission.Kept, "the tree is still there to be released")
	require.Nil(t, again[1].Admission.Kept)
}
