package run

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Caps on undeclared paths under `policy.scope: widen`.
const (
	MaxWidenedPaths = 10
	MaxWidenedBytes = 256 << 10
)

// Change is one path that differs between the attempt's base and its commit.
// A rename is two: the path that went and the path that came.
type Change struct {
	Path  string
	Bytes int64 // size of what is there now; 0 where the path went
}

// Owner is another node that is pending or running, with its write scope.
type Owner struct {
	Node  string
	Scope *plan.Scope
}

// ScopeRules are what decides which changed paths of a node may land.
type ScopeRules struct {
	Scope          *plan.Scope // the node's own
	Others         []Owner     // pending and running nodes but this one
	MustNotTouch   *plan.Scope // nil: nothing
	Protected      []string    // files from which gate commands were read, besides those known by name
	AllowProtected bool        // plan: allow_protected
	Policy         plan.ScopePolicy
}

// RefusalKind says why a path may not land.
type RefusalKind string

// Kinds of refusals, gravest first.
const (
	RefusedMustNotTouch RefusalKind = "must_not_touch"
	RefusedProtected    RefusalKind = "protected"
	RefusedSeam         RefusalKind = "seam" // belongs to another pending or running node
	RefusedUndeclared   RefusalKind = "undeclared"
	RefusedTooMuch      RefusalKind = "too_much" // undeclared, beyond the caps of widen
)

// Refusal is a path that may not land.
type Refusal struct {
	Path string
	Kind RefusalKind
	Node string // owner, of a seam
}

// String says the refusal as a sentence.
func (r Refusal) String() string {
	switch r.Kind {
	case RefusedMustNotTouch:
		return r.Path + " must not be touched"
	case RefusedProtected:
		return r.Path + " is protected: the node's write scope must name it literally and the plan must say allow_protected"
	case RefusedSeam:
		return fmt.Sprintf("%s belongs to node %s", r.Path, r.Node)
	case RefusedTooMuch:
		return fmt.Sprintf("%s is outside the write scope, beyond what widening allows (%d files, %d KiB)",
			r.Path, MaxWidenedPaths, MaxWidenedBytes>>10)
	default:
		return r.Path + " is outside the write scope"
	}
}

// ScopeVerdict says which changed paths were refused; none means that all may
// land. Paths are sorted.
type ScopeVerdict struct {
	Refused   []Refusal
	Widened   []string // undeclared ones that policy widen lets pass
	Protected []string // protected ones that the node may change: listed in the report
}

// CheckScope applies step 2 of LandWork (landing.md) to what a worker changed.
func CheckScope(changes []Change, rules ScopeRules) ScopeVerdict {
	var v ScopeVerdict
	var undeclared []Change
	for _, c := range changes {
		switch {
		case rules.MustNotTouch.Match(c.Path):
			v.Refused = append(v.Refused, Refusal{Path: c.Path, Kind: RefusedMustNotTouch})
		case ProtectedPath(c.Path, rules.Protected):
			if !rules.AllowProtected || !rules.Scope.NamesLiterally(c.Path) {
				v.Refused = append(v.Refused, Refusal{Path: c.Path, Kind: RefusedProtected})
				continue
			}
			v.Protected = append(v.Protected, c.Path)
		case rules.Scope.Exclusive() || rules.Scope.Match(c.Path):
		default:
			if owner, ok := ownerOf(c.Path, rules.Others); ok {
				v.Refused = append(v.Refused, Refusal{Path: c.Path, Kind: RefusedSeam, Node: owner})
				continue
			}
			undeclared = append(undeclared, c)
		}
	}
	v.undeclared(undeclared, rules.Policy)
	slices.SortFunc(v.Refused, func(a, b Refusal) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(v.Protected)
	return v
}

// undeclared passes paths that nobody owns when the policy widens and they are few.
func (v *ScopeVerdict) undeclared(changes []Change, policy plan.ScopePolicy) {
	kind := RefusedUndeclared
	if policy == plan.ScopeWiden {
		var size int64
		for _, c := range changes {
			size += c.Bytes
		}
		if len(changes) <= MaxWidenedPaths && size <= MaxWidenedBytes {
			for _, c := range changes {
				v.Widened = append(v.Widened, c.Path)
			}
			slices.Sort(v.Widened)
			return
		}
		kind = RefusedTooMuch
	}
	for _, c := range changes {
		v.Refused = append(v.Refused, Refusal{Path: c.Path, Kind: kind})
	}
}

// ownerOf finds the node in whose declared scope a path lies. An empty scope
// declares nothing: its node runs alone, and takes what is there.
func ownerOf(path string, others []Owner) (string, bool) {
	for _, o := range others {
		if !o.Scope.Exclusive() && o.Scope.Match(path) {
			return o.Node, true
		}
	}
	return "", false
}

// cause is what an error by this verdict is charged to: a seam may be free again
// once the other node is through, everything else the worker has to do otherwise.
func (v ScopeVerdict) cause() contract.Cause {
	if slices.ContainsFunc(v.Refused, func(r Refusal) bool { return r.Kind != RefusedSeam }) {
		return contract.CauseWork
	}
	return contract.CauseConflict
}

func (v ScopeVerdict) text() string {
	texts := make([]string, len(v.Refused))
	for i, r := range v.Refused {
		texts[i] = r.String()
	}
	return list(texts)
}

// details names more of the refused paths than one line can, for the next prompt.
func (v ScopeVerdict) details() string {
	const most = 20
	var b strings.Builder
	b.WriteString("These changes were refused and did not land:\n")
	for _, r := range v.Refused[:min(len(v.Refused), most)] {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

func (v ScopeVerdict) friction(node string) []contract.Friction {
	if len(v.Widened) == 0 {
		return nil
	}
	return []contract.Friction{{
		Type: contract.FrictionScopeWidened, Discriminator: node, Severity: "warning",
		Note: "undeclared paths landed (policy.scope: widen): " + list(v.Widened),
	}}
}

// ciNames are CI definitions by the name of a file or folder at the root,
// ciFiles by the name of a file anywhere.
var (
	ciNames = []string{
		".ci", ".circleci", ".buildkite", ".woodpecker", ".teamcity", ".semaphore", ".azure-pipelines", ".builds", ".forgejo", ".gitea",
	}
	ciFiles = []string{
		"jenkinsfile", "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml",
		".travis.yml", ".drone.yml", ".drone.yaml", ".woodpecker.yml", ".woodpecker.yaml", ".cirrus.yml", ".build.yml",
		"cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "buildspec.yaml", "codemagic.yaml", "bitrise.yml", ".semaphore.yml",
	}
)

// ProtectedPath reports whether a path may only be changed by a node that names
// it: CI definitions, everything whose first part or name begins with ".git", and
// the given files from which gate commands were read. Case never hides a path.
func ProtectedPath(file string, gateFiles []string) bool {
	lower := strings.ToLower(path.Clean(file))
	first, _, _ := strings.Cut(lower, "/")
	if slices.Contains(ciNames, first) || slices.Contains(ciFiles, path.Base(lower)) {
		return true
	}
	for part := range strings.SplitSeq(lower, "/") {
		if strings.HasPrefix(part, ".git") {
			return true
		}
	}
	return slices.ContainsFunc(gateFiles, func(g string) bool { return strings.ToLower(path.Clean(g)) == lower })
}
