package run

import (
	"fmt"
	"slices"
)

// Link fills in what landed commits stand on: the landed nodes that their node
// depends on, directly or through nodes that landed nothing (they had nothing to
// change, and whoever depends on them depends on what was before). depends gives
// a node's direct dependencies.
func Link(landed []Landed, depends func(node string) []string) {
	nodes := make(map[string]bool, len(landed))
	for _, l := range landed {
		nodes[l.Node] = true
	}
	known := map[string][]string{}
	for i, l := range landed {
		if _, ok := known[l.Node]; !ok {
			known[l.Node] = standsOn(l.Node, nodes, depends)
		}
		landed[i].DependsOn = known[l.Node]
	}
}

func standsOn(node string, landed map[string]bool, depends func(string) []string) []string {
	var found []string
	seen := map[string]bool{node: true}
	next := slices.Clone(depends(node))
	for len(next) > 0 {
		id := next[0]
		next = next[1:]
		switch {
		case seen[id]:
		case landed[id]:
			found = append(found, id)
		default:
			next = append(next, depends(id)...)
		}
		seen[id] = true
	}
	slices.Sort(found)
	return found
}

// maxCulpritTail bounds what a prompt repeats of a red gate (contract.Admission.Tail).
const maxCulpritTail = 2000

// ForPrompt is what the next worker of a node reads about the gate that its work
// turned red: the command first, then as much of the end of its output as fits.
func (a Attribution) ForPrompt(command, tail string) string {
	head := fmt.Sprintf("What was landed for this task was taken back: `%s` fails with it, for the repository as a whole.\n", cut(command, 300))
	if a.Verdict == Interaction {
		head = fmt.Sprintf("What was landed for this task was taken back: `%s` fails with it and %s together, and passes with either alone.\n", cut(command, 300), a.Partner)
	}
	return head + tailOf(tail, maxCulpritTail-len(head))
}

// tailOf keeps the last n bytes of a text, from a character on.
func tailOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	start := len(s) - max(n, 0)
	for start < len(s) && s[start]&0xC0 == 0x80 {
		start++
	}
	return s[start:]
}

// RedForPrompt is what every worker reads when all nodes are opened again because
// of a red gate that nobody can be blamed for.
func RedForPrompt(command, tail string) string {
	head := fmt.Sprintf("`%s` fails for the repository as a whole, and it is not known by whose change. Look whether it is yours; if it is not, nothing needs to change.\n", cut(command, 300))
	return head + tailOf(tail, maxCulpritTail-len(head))
}
