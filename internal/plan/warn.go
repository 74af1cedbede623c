package plan

import (
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/strictyaml"
)

// checkSelection checks what is left of the plan after its intent.
func checkSelection(p *Plan, s Selection, r *FaultReport) {
	if len(s.Nodes) == 0 {
		r.Add("intent", "nothing is left to do: "+s.causes(), "widen the intent, or give the findings files or evidence")
		return
	}
	warnDropped(p, s, r)
	touch := CompileScope(p.Intent.MustNotTouch, false)
	if touch.Exclusive() {
		return
	}
	position := positions(p)
	for _, n := range s.Nodes {
		i := position[n.ID]
		for k, glob := range p.Nodes[i].Write {
			scope := CompileScope([]string{glob}, false)
			pairs := scope.OverlappingGlobs(touch, 1)
			if len(pairs) == 0 {
				continue
			}
			at := strictyaml.Index(strictyaml.Index("nodes", i)+".write", k)
			if scope.within(touch) {
				r.Add(at, fmt.Sprintf("%q lies wholly in must_not_touch %q: nothing that the node writes there can land", glob, pairs[0].B),
					"remove one of the two")
				continue
			}
			r.Warn(at, fmt.Sprintf("%q overlaps must_not_touch %q: changes there are refused", glob, pairs[0].B), "narrow the write scope")
		}
	}
}

// causes counts the findings that were dropped, per disposition.
func (s Selection) causes() string {
	var parts []string
	for _, c := range s.Counts() {
		example := ""
		for _, f := range s.Findings {
			if f.Disposition == c.Disposition {
				example = fmt.Sprintf(" (%s: %s)", f.Finding, f.Cause)
				break
			}
		}
		parts = append(parts, fmt.Sprintf("%d %s%s", c.Count, c.Disposition, example))
	}
	return strings.Join(parts, ", ")
}

func warnDropped(p *Plan, s Selection, r *FaultReport) {
	position := positions(p)
	edges := make(map[string][]string, len(s.Nodes))
	for _, n := range s.Nodes {
		edges[n.ID] = n.DependsOn
	}
	for _, d := range s.Dropped {
		for _, id := range d.Dependants {
			waits := "nothing in its place"
			if left := edges[id]; len(left) > 0 {
				waits = enumerate(left)
			}
			r.Warn(strictyaml.Index("nodes", position[id])+".depends_on",
				fmt.Sprintf("node %s is dropped with all its findings; %s, which depends on it, waits for %s", d.ID, id, waits), "")
		}
	}
}

func positions(p *Plan) map[string]int {
	position := make(map[string]int, len(p.Nodes))
	for i := range p.Nodes {
		position[p.Nodes[i].ID] = i
	}
	return position
}

// warnVerification warns about nodes without verification and about whole suites
// on nodes. Each kind is one warning, since it mostly concerns many nodes.
func warnVerification(p *Plan, s Selection, r *FaultReport) {
	position := positions(p)
	var bare []string
	for _, n := range s.Nodes {
		if len(p.Nodes[position[n.ID]].Verify) == 0 {
			bare = append(bare, n.ID)
		}
	}
	if len(bare) > 0 {
		r.Warn("nodes", fmt.Sprintf("%s no verify command, only the gate judges them: %s", count(len(bare), "node has", "nodes have"), enumerate(bare)),
			"give each node a command that fails while its findings are there")
	}
	warnSuites(p, s, r, func(c Command) bool { return wholeSuite(c) || isGateCommand(p.Gate.Commands, c) })
}

func isGateCommand(gate []Command, c Command) bool {
	return slices.ContainsFunc(gate, func(g Command) bool { return c.line() == g.line() })
}

// warnSuites warns about nodes that verify with what runs everything, a gate
// command or a known one: it makes every node depend on all others.
func warnSuites(p *Plan, s Selection, r *FaultReport, everything func(Command) bool) {
	position := positions(p)
	var nodes []string
	at, example := "", ""
	for _, n := range s.Nodes {
		i := position[n.ID]
		for k, c := range p.Nodes[i].Verify {
			if !everything(c) {
				continue
			}
			if at == "" {
				at, example = strictyaml.Index(strictyaml.Index("nodes", i)+".verify", k), c.String()
			}
			nodes = append(nodes, n.ID)
			break
		}
	}
	if len(nodes) > 0 {
		r.Warn(at, fmt.Sprintf("%s with a command that runs everything (%s), so that each fails on the others' faults: %s",
			count(len(nodes), "node verifies", "nodes verify"), example, enumerate(nodes)),
			"verify only what the node repairs; the whole belongs to the gate")
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// line is the command as words joined by one space, for comparison.
func (c Command) line() string {
	if c.Shell != "" {
		return strings.Join(strings.Fields(c.Shell), " ")
	}
	return strings.Join(c.Argv, " ")
}

// wholeSuite knows the common commands that build or test all of a repository.
func wholeSuite(c Command) bool {
	words := slices.DeleteFunc(strings.Fields(c.line()), func(w string) bool { return strings.HasPrefix(w, "-") })
	switch line := strings.Join(words, " "); line {
	case "go test ./...", "go build ./...", "go vet ./...", "cargo test", "cargo build", "cargo check",
		"npm test", "npm t", "npm run test", "npm run build", "npm run lint", "yarn test", "yarn run test", "yarn build", "yarn lint",
		"pnpm test", "pnpm run test", "pnpm build", "bun test", "pytest", "python pytest", "python3 pytest", "tox", "nox",
		"mypy .", "ruff check", "ruff check .", "make", "make test", "make check", "make all",
		"mvn test", "mvn verify", "./mvnw test", "./mvnw verify", "gradle test", "gradle check", "gradle build",
		"./gradlew test", "./gradlew check", "./gradlew build", "dotnet test", "mix test", "bundle exec rspec", "rspec":
		return true
	}
	return false
}
