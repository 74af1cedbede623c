package e2e

import (
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/process"
)

var (
	lands    = []try{{contract.OutcomeSuccess, "", ""}}
	timeout  = contract.OutcomeTimeout
	salvaged = []contract.FrictionType{contract.FrictionNodeSalvaged}
)

// landsCleanly is how an honest node ends, and every one whose misdeed comes to nothing.
func landsCleanly(says ...string) ending {
	return ending{state: contract.NodeLanded, tries: lands, says: says}
}

// refused is how a node ends whose worker does the same thing wrong in each of its two attempts.
func refused(reason string, keeps ...string) ending {
	e := ending{state: contract.NodeBlocked, keeps: keeps}
	for range 2 {
		e.tries = append(e.tries, try{contract.OutcomeError, contract.CauseWork, reason})
	}
	if keeps != nil {
		e.friction = salvaged
	}
	return e
}

// hostileEndings is what the design says about each misdeed.
func hostileEndings() map[string]ending {
	work := func(name string, more ...string) []string { return append(more, name+"/work.txt") }
	all := map[string]ending{
		"honest": landsCleanly(),

		// Processes: the work lands, nothing remains alive.
		"forks":            landsCleanly(),
		"setsid":           landsCleanly(),
		"clears-env":       landsCleanly(),
		"holds-stdout":     landsCleanly(),
		"ignores-term":     landsCleanly(),
		"kills-supervisor": landsCleanly("denied: kill the supervisor"),
		"fails-after-all":  landsCleanly(),
		"long-line":        landsCleanly("after the long line"),
		"fills-log":        {state: contract.NodeLanded, tries: lands, most: process.DefaultTotalCap + 4<<10},
		"runs-starter":     landsCleanly("denied: cancel the run", "inside an attempt"),
		"kills-itself":     refused("ended by SIGKILL", work("kills-itself")...),
		"silent-for-ever": {state: contract.NodeLanded, tries: []try{{timeout, contract.CauseHost, "no output for too long"}, lands[0]},
			keeps: work("silent-for-ever"), friction: salvaged},
		"prints-for-ever": {state: contract.NodeLanded, tries: []try{{timeout, contract.CauseHost, "time was over"}, lands[0]},
			keeps: work("prints-for-ever"), friction: salvaged},

		// Places that are none of its business.
		"replaces-git":     landsCleanly(),
		"nested-command":   {state: contract.NodeLanded, tries: lands, keeps: work("nested-command", "nested-command/inner/file.txt")},
		"nested-clone":     {state: contract.NodeLanded, tries: lands, keeps: work("nested-clone", "nested-clone/copy/**")},
		"commits":          landsCleanly("denied: add", "denied: commit"),
		"switches-branch":  landsCleanly("denied: make a branch", "denied: move main"),
		"edits-hub":        landsCleanly("denied: write README.md", "denied: write config", "denied: write post-update", "denied: commit in the hub"),
		"edits-mirror":     landsCleanly("denied: write config", "denied: write reference-transaction"),
		"edits-record":     landsCleanly("denied: write record.json"),
		"edits-sibling":    landsCleanly(),
		"chmods-worktree":  landsCleanly(),
		"works-elsewhere":  refused("nothing was changed"),
		"deletes-worktree": refused("changed paths were refused", everything),

		// Files that must not land.
		"edits-gate":          refused("Makefile is protected", work("edits-gate", "Makefile")...),
		"edits-ci":            refused(".github/workflows/ci.yml is protected", work("edits-ci", ".github/workflows/ci.yml")...),
		"edits-gitignore":     refused("edits-gitignore/.gitignore is protected", work("edits-gitignore", "edits-gitignore/.gitignore")...),
		"edits-forbidden":     refused("docs/rules.md must not be touched", work("edits-forbidden", "docs/rules.md")...),
		"edits-undeclared":    refused("nobody/owns.txt is outside the write scope", work("edits-undeclared", "nobody/owns.txt")...),
		"edits-verification":  refused("script/verify.sh is outside the write scope", work("edits-verification", "script/verify.sh")...),
		"writes-through-link": refused("docs/rules.md must not be touched", work("writes-through-link", "docs/rules.md", "writes-through-link/link")...),
		"edits-other-node": {state: contract.NodeBlocked, tries: []try{
			{contract.OutcomeError, contract.CauseConflict, "victim/work.txt belongs to node victim"},
			{contract.OutcomeError, contract.CauseConflict, "victim/work.txt belongs to node victim"},
			{contract.OutcomeError, contract.CauseConflict, "victim/work.txt belongs to node victim"},
		}, keeps: work("edits-other-node", "victim/work.txt"), friction: salvaged},
		"victim":         {state: contract.NodeBlocked, friction: []contract.FrictionType{contract.FrictionUnknownFinding}}, // by foreign-findings
		"hides-source":   {state: contract.NodeLanded, tries: lands, lands: work("hides-source", "hides-source/build/new.go")},
		"leaves-scratch": {state: contract.NodeLanded, tries: lands, keeps: work("leaves-scratch", "debug.log", "session.tmp", "tmp/plan.md", ".claude/notes.md")},
		"writes-crlf":    landsCleanly(),
		"special-files":  landsCleanly(),
		"odd-names": {state: contract.NodeLanded, tries: lands, lands: work("odd-names", "odd-names/-rf", "odd-names/two\nlines",
			"odd-names/tab\tand \"quotes\"", "odd-names/ünï", "odd-names/u\u0308", "odd-names/\xff\xfe", "odd-names/ ", "odd-names/a b'c", "odd-names/*",
			"odd-names/"+strings.Repeat("n", 200))},

		// Answers.
		"broken-result":   refused("is unknown: want resolved", work("broken-result")...),
		"result-link":     refused("not a regular file", work("result-link")...),
		"result-pipe":     refused("not a regular file", work("result-pipe")...),
		"result-folder":   refused("not a regular file", work("result-folder")...),
		"result-huge":     refused("more than", work("result-huge")...),
		"nothing-done":    refused("nothing was changed and no result given"),
		"asks-and-exits":  refused("nothing was changed and no result given"),
		"claims-resolved": refused("the result says resolved, but nothing was changed"),
		"old-result": {state: contract.NodeLanded, tries: []try{{contract.OutcomeError, contract.CauseWork, "nobody/owns.txt is outside"}, lands[0]},
			keeps: []string{"nobody/owns.txt"}, friction: salvaged},
		"claims-no-change": {state: contract.NodeBlocked, tries: []try{{contract.OutcomeSuccess, "", ""}},
			keeps: work("claims-no-change"), friction: []contract.FrictionType{contract.FrictionNoChangeRefused, contract.FrictionNodeSalvaged}},
		"foreign-findings": {state: contract.NodeBlocked, tries: []try{{contract.OutcomeSuccess, "", ""}, {contract.OutcomeSuccess, "", ""}},
			keeps: work("foreign-findings"), friction: salvaged},
	}
	secret := landsCleanly("my key is [masked]")
	secret.hides = []string{secretValue}
	all["prints-the-secret"] = secret
	return all
}
