package dispatch

import (
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/contract"
)

// CheckComposition refuses a composition that no pools file could give: an
// order may come from any client.
func CheckComposition(pools []contract.Pool) error {
	if len(pools) == 0 {
		return fmt.Errorf("check pools: the order names none")
	}
	seen := map[string]bool{}
	for _, p := range pools {
		key := strings.ToLower(p.ID)
		switch {
		case p.ID == "" || p.Account == "":
			return fmt.Errorf("check pools: pool %q has no id or no account", p.ID)
		case seen[key]:
			return fmt.Errorf("check pools: pool id %q is used twice", p.ID)
		case p.MaxConcurrent < 1:
			return fmt.Errorf("check pools: pool %s has no slot", p.ID)
		}
		seen[key] = true
	}
	return nil
}

// Redefined lists, in the order of the old composition, the pools that are in
// both and run something else now: trees made there are not continued.
func Redefined(old, next []contract.Pool) []string {
	var ids []string
	for _, was := range old {
		at := slices.IndexFunc(next, func(p contract.Pool) bool { return p.ID == was.ID })
		if at >= 0 && !sameWorker(was, next[at]) {
			ids = append(ids, was.ID)
		}
	}
	return ids
}

// Disown takes the kept trees of these pools from the nodes that wait for their
// next attempt, which starts fresh then and releases the tree. It returns these
// nodes in plan order. Nodes that run are their drives' to deal with.
func (f *Frontier) Disown(pools []string) []string {
	return f.disown(func(kept contract.Kept) bool { return slices.Contains(pools, kept.Pool) })
}

// DropKept does so with the kept trees of every pool.
func (f *Frontier) DropKept() []string {
	return f.disown(func(kept contract.Kept) bool { return kept.Pool != "" })
}

func (f *Frontier) disown(which func(contract.Kept) bool) []string {
	var nodes []string
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		if st.Kept == nil || st.State == contract.NodeRunning || !which(*st.Kept) {
			continue
		}
		kept := *st.Kept
		kept.Pool = ""
		st.Kept = &kept
		nodes = append(nodes, f.s.Units[n].ID)
	}
	return nodes
}
