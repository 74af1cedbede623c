package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mendflow/internal/strictyaml"
)

// checkFindings checks each finding and returns the index of their ids. Paths
// become canonical, packages get their default.
func checkFindings(p *Plan, r *FaultReport) *idIndex {
	ids := newIDIndex(len(p.Findings))
	if len(p.Findings) == 0 {
		r.AddMissing("", "findings", "there is nothing to do: the plan has no findings", "")
	}
	for i := range p.Findings {
		f, path := &p.Findings[i], strictyaml.Index("findings", i)
		checkUniqueID(f.ID, i, ids, path, "finding", r)
		if strings.TrimSpace(f.Title) == "" {
			r.AddMissing(path, "title", "the title is missing", "say in one line what is wrong")
		}
		if f.Severity == "" {
			r.AddMissing(path, "severity", "the severity is missing", "write one of "+strings.Join(f.Severity.Values(), ", "))
		}
		for k := range f.Files {
			checkLocation(&f.Files[k], strictyaml.Index(path+".files", k), r)
		}
		if f.Package == "" {
			f.Package = defaultPackage(*f)
		}
	}
	checkFolded(p, ids, r)
	return ids
}

// checkFolded makes sure that every id of a folded duplicate names nothing else.
func checkFolded(p *Plan, ids *idIndex, r *FaultReport) {
	seen := newIDIndex(0)
	for i := range p.Findings {
		for k, id := range p.Findings[i].Folded {
			at := strictyaml.Index(strictyaml.Index("findings", i)+".folded", k)
			if err := CheckID(id); err != nil {
				r.Add(at, err.Error(), "")
				continue
			}
			_, finding := ids.index[strings.ToLower(id)]
			if finding || seen.add(id, i) >= 0 {
				r.Add(at, fmt.Sprintf("id %q is used twice (case does not count)", id), "a folded duplicate has an id of its own")
			}
		}
	}
}

func checkUniqueID(id string, i int, ids *idIndex, path, kind string, r *FaultReport) {
	err := CheckID(id)
	if err != nil {
		r.AddMissing(path, "id", err.Error(), "")
	}
	if id == "" {
		return
	}
	if first := ids.add(id, i); first >= 0 && err == nil {
		r.Add(path+".id", fmt.Sprintf("%s id %q is used twice (case does not count)", kind, id),
			fmt.Sprintf("the first is %ss[%d]", kind, first))
	}
}

func checkLocation(l *Location, path string, r *FaultReport) {
	clean, err := cleanPath(l.Path)
	if err != nil {
		r.Add(path+".path", fmt.Sprintf("path %q is not usable: %v", l.Path, err), "")
	} else {
		l.Path = clean
	}
	switch {
	case l.LineStart < 0:
		r.Add(path+".line_start", "a line number is negative", "lines count from 1; 0 means the whole file")
	case l.LineEnd < 0:
		r.Add(path+".line_end", "a line number is negative", "lines count from 1; 0 means the whole file")
	case l.LineEnd != 0 && l.LineStart == 0:
		r.Add(path+".line_end", "it has an end but no line_start", "write line_start too")
	case l.LineEnd != 0 && l.LineEnd < l.LineStart:
		r.Add(path+".line_end", fmt.Sprintf("line_end %d lies before line_start %d", l.LineEnd, l.LineStart), "")
	}
}

// checkNodes checks what a node says by itself.
func checkNodes(p *Plan, findings *idIndex, derived bool, r *FaultReport) *idIndex {
	ids := newIDIndex(len(p.Nodes))
	if derived {
		for i := range p.Nodes { // ids and scopes come from findings that are checked already
			ids.add(p.Nodes[i].ID, i)
			checkCarried(&p.Nodes[i], strictyaml.Index("findings", i)+".files", r)
		}
		return ids
	}
	for i := range p.Nodes {
		n, path := &p.Nodes[i], strictyaml.Index("nodes", i)
		checkUniqueID(n.ID, i, ids, path, "node", r)
		checkNodeFindings(p, n, path, findings, r)
		checkGlobs(n.Write, path+".write", r)
		checkGlobs(n.Read, path+".read", r)
		checkCommands(n.Verify, path+".verify", r)
		if n.Phase < 0 {
			r.Add(path+".phase", "the phase is negative", "phases count from 0")
		}
		if n.EstimateTokens < 0 {
			r.Add(path+".estimate_tokens", "the estimate is negative", "write 0 to have it estimated")
		}
		if n.SharedAppend && len(n.Write) == 0 {
			r.Add(path+".shared_append", "a node without write scope runs alone and shares nothing", "write the scope that it appends to")
		}
		checkCarried(n, path, r)
	}
	return ids
}

func checkCarried(n *Node, path string, r *FaultReport) {
	if size := carriedBytes(n); size > MaxUnitBytes {
		r.Add(path, fmt.Sprintf("findings, edges and write scope of node %s take %d bytes, at most %d can be scheduled", n.ID, size, MaxUnitBytes),
			"write nodes with wider globs, or split it")
	}
}

func checkNodeFindings(p *Plan, n *Node, path string, findings *idIndex, r *FaultReport) {
	if len(n.Findings) == 0 {
		r.AddMissing(path, "findings", "the node has no findings", "name the findings that it repairs")
	}
	for k, id := range n.Findings {
		at := strictyaml.Index(path+".findings", k)
		if _, ok := findings.find(id, func(i int) string { return p.Findings[i].ID }); ok || id == "" {
			continue
		}
		if !unreadable(r, "findings", "id") {
			r.Add(at, fmt.Sprintf("unknown finding %q", id), findings.remedy(id, "findings"))
		}
	}
}

// unreadable reports that entries of the list, or that key of an entry, could not
// be read. References to and from them are not judged then.
func unreadable(r *FaultReport, list, key string) bool {
	for _, path := range r.unread {
		rest, ok := strings.CutPrefix(path, list)
		_, tail, _ := strings.Cut(rest, "]")
		if ok && (rest == "" || rest[0] == '[' && (tail == "" || strings.HasPrefix(tail, "."+key))) {
			return true
		}
	}
	return false
}

// checkAssignment checks that every finding is in exactly one node.
func checkAssignment(p *Plan, derived bool, r *FaultReport) {
	if derived || len(p.Nodes) == 0 {
		return
	}
	owner := make(map[string]string, len(p.Findings))
	for i := range p.Nodes {
		for k, id := range p.Nodes[i].Findings {
			at := strictyaml.Index(strictyaml.Index("nodes", i)+".findings", k)
			switch first, taken := owner[id]; {
			case taken && first == p.Nodes[i].ID:
				r.Add(at, fmt.Sprintf("finding %q is named twice in this node", id), "remove one")
			case taken:
				r.Add(at, fmt.Sprintf("finding %q is in two nodes, %s and %s", id, first, p.Nodes[i].ID), "leave it in one")
			default:
				owner[id] = p.Nodes[i].ID
			}
		}
	}
	for i := range p.Findings {
		id, path := p.Findings[i].ID, strictyaml.Index("findings", i)
		if _, taken := owner[id]; !taken && !r.Broken(path+".id") && !unreadable(r, "nodes", "findings") {
			r.Add(path, fmt.Sprintf("finding %q is in no node", id), "add it to a node, or leave it out")
		}
	}
}

// checkEdges checks dependencies: unknown nodes, higher phases, cycles.
func checkEdges(p *Plan, nodes *idIndex, r *FaultReport) {
	known := !unreadable(r, "nodes", "id")
	for i := range p.Nodes {
		n, path := &p.Nodes[i], strictyaml.Index("nodes", i)
		named := make(map[string]bool, len(n.DependsOn))
		kept := n.DependsOn[:0:0]
		for k, id := range n.DependsOn {
			at := strictyaml.Index(path+".depends_on", k)
			d, ok := nodes.find(id, func(j int) string { return p.Nodes[j].ID })
			switch {
			case !ok && id != "" && known:
				r.Add(at, fmt.Sprintf("unknown node %q", id), nodes.remedy(id, "nodes"))
			case ok && p.Nodes[d].Phase > n.Phase:
				r.Add(at, fmt.Sprintf("%s (phase %d) depends on %s of the higher phase %d", n.ID, n.Phase, id, p.Nodes[d].Phase),
					"a phase never waits for a later one: move one of the two")
			case named[id]:
				r.Warn(at, fmt.Sprintf("%s is named twice", id), "remove one")
				continue
			}
			named[id] = true
			kept = append(kept, id)
		}
		n.DependsOn = kept
	}
	for _, cycle := range Cycles(p.Nodes) {
		first, _ := nodes.find(cycle[0], func(j int) string { return p.Nodes[j].ID })
		problem := cycle[0] + " depends on itself"
		if len(cycle) > 1 {
			problem = "the nodes depend on each other: " + strings.Join(append(cycle, cycle[0]), " → ")
		}
		edge := slices.Index(p.Nodes[first].DependsOn, cycle[1%len(cycle)])
		r.Add(strictyaml.Index(strictyaml.Index("nodes", first)+".depends_on", edge), problem, "remove one of these edges")
	}
}

// checkGlobs checks the globs of a list.
func checkGlobs(globs []string, path string, r *FaultReport) {
	for i, g := range globs {
		at := strictyaml.Index(path, i)
		if _, err := compileGlob(g, false); err != nil {
			r.Add(at, fmt.Sprintf("glob %q is not usable: %v", strictyaml.Shorten(g, 60), err), "")
			continue
		}
		if hint := globHint(g); hint != "" {
			r.Warn(at, fmt.Sprintf("in %q, ** stands beside other characters and means no more than *", g), hint)
		}
		if needlessEscape.MatchString(g) {
			r.Warn(at, fmt.Sprintf("in %q, a backslash takes the next character literally and separates nothing", g), "separate folders with /")
		}
	}
}

// needlessEscape finds backslashes that were probably meant as separators.
var needlessEscape = regexp.MustCompile(`^([^\\]|\\[^A-Za-z0-9_.])*\\[A-Za-z0-9_.]`)

// globHint proposes what was meant by src/**.go.
func globHint(glob string) string {
	for part := range strings.SplitSeq(glob, "/") {
		if before, after, found := strings.Cut(part, "**"); found && part != "**" && !strings.Contains(part, `\*`) {
			return fmt.Sprintf("write %q for every depth", strings.Replace(glob, part, before+"**/*"+strings.TrimLeft(after, "*"), 1))
		}
	}
	return ""
}

func checkCommands(commands []Command, path string, r *FaultReport) {
	for i, c := range commands {
		checkCommand(c, strictyaml.Index(path, i), r)
	}
}

func checkCommand(c Command, path string, r *FaultReport) {
	switch {
	case len(c.Argv) == 0 && strings.TrimSpace(c.Shell) == "":
		r.Add(path, "the command is empty", "")
	case len(c.Argv) > 0 && strings.TrimSpace(c.Argv[0]) == "":
		r.Add(path, "the command names no program", "the first argument is the program")
	case strings.ContainsRune(c.Shell+strings.Join(c.Argv, ""), 0):
		r.Add(path, "the command contains a NUL byte", "")
	}
}
