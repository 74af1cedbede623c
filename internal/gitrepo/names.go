package gitrepo

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Ref prefixes of design/landing.md. Everything that Mendflow writes to a hub is under the first, but the branch.
const (
	refRoot       = "refs/mendflow/"
	truthPrefix   = refRoot + "run/"
	fencePrefix   = refRoot + "fence/"
	salvagePrefix = refRoot + "salvage/"
	probePrefix   = refRoot + "probe/"
	hubPrefix     = refRoot + "hub/" // in mirrors only: the hub's branches and tags
	keepPrefix    = refRoot + "keep/"
	branchPrefix  = "refs/heads/mendflow/"
)

// namePattern admits what can stand in a ref and a path on every system: no leading or trailing dot, no two dots.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// nameLimit leaves room for the suffixes that run ids get beyond the 64 characters of a plan id.
const nameLimit = 100

func checkName(kind, name string) error {
	if len(name) > nameLimit || !namePattern.MatchString(name) || strings.HasSuffix(strings.ToLower(name), ".lock") {
		return fmt.Errorf("use %s %q: %w", kind, name, ErrInvalidName)
	}
	return nil
}

// TruthRef is the ref that holds the landed state of a run.
func TruthRef(run string) string { return truthPrefix + run }

// BranchRef is the branch that follows the truth.
func BranchRef(run string) string { return branchPrefix + run }

// FenceRef is the ref whose blob names the attempt that may land.
func FenceRef(run, node string) string { return fencePrefix + run + "/" + node }

// SalvageRef is the ref that keeps what an attempt left and did not land.
func SalvageRef(run, node string, attempt int) string {
	return salvagePrefix + path.Join(run, node, strconv.Itoa(attempt))
}

// An Attempt is one launch of a worker for a node. Its identity is (Run, Node, Opening, Number).
type Attempt struct {
	Run      string
	Node     string
	Opening  int      // from 1; raised by every re-opening
	Number   int      // from 1; counts the node's launches over the whole run
	Findings []string // what a landing of this attempt is for
}

func (a Attempt) check() error {
	if err := checkName("run", a.Run); err != nil {
		return err
	}
	if err := checkName("node", a.Node); err != nil {
		return err
	}
	if a.Opening < 1 || a.Number < 1 {
		return fmt.Errorf("use opening %d, attempt %d of node %s: %w", a.Opening, a.Number, a.Node, ErrInvalidName)
	}
	for _, f := range a.Findings {
		if err := checkName("finding", f); err != nil {
			return err
		}
	}
	return nil
}

func (a Attempt) String() string {
	return fmt.Sprintf("%s/%s opening %d attempt %d", a.Run, a.Node, a.Opening, a.Number)
}
