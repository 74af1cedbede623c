package plan

import (
	"fmt"
	"time"

	"mendflow/internal/strictyaml"
)

// planFile is a plan as people write it: keys and shapes of the published format.
// What needs no other shape than the stored plan has the model's own types.
type planFile struct {
	Version        int            `json:"version"`
	ID             string         `json:"id"`
	Goal           string         `json:"goal"`
	Base           string         `json:"base"`
	Findings       []Finding      `json:"findings"`
	Nodes          []Node         `json:"nodes"`
	Setup          []Command      `json:"setup"`
	Env            []string       `json:"env"`
	Git            Git            `json:"git"`
	Link           []string       `json:"link"`
	Keep           []string       `json:"keep"`
	Gate           gateFile       `json:"gate"`
	Intent         Intent         `json:"intent"`
	AllowProtected bool           `json:"allow_protected"`
	Policy         Policy         `json:"policy"`
	Budget         budgetFile     `json:"budget"`
	Close          Close          `json:"close"`
	Notify         []Notification `json:"notify"`
}

type gateFile struct {
	Commands gateCommands `json:"commands"`
	Baseline Baseline     `json:"baseline"`
	OnRed    OnRed        `json:"on_red"`
}

// gateCommands is a list of commands, or the word none.
type gateCommands struct {
	list []Command
	none bool
}

// UnmarshalStrict reads a list or the word none.
func (g *gateCommands) UnmarshalStrict(c *strictyaml.Context, n *strictyaml.Node, path string) {
	if n.Kind == strictyaml.Text {
		if g.none = n.Text == "none"; !g.none {
			c.Fault(n, path, fmt.Sprintf("it is the text %q", strictyaml.Shorten(n.Text, 40)),
				"write a list of commands, or the word none for no gate")
		}
		return
	}
	c.Decode(n, path, &g.list)
}

type budgetFile struct {
	Tokens int64  `json:"tokens"`
	USD    Micros `json:"usd"`
}

// Micros are millionths of a dollar, written as a decimal number of dollars.
type Micros int64

// UnmarshalStrict reads a decimal number exactly, without floats.
func (m *Micros) UnmarshalStrict(c *strictyaml.Context, n *strictyaml.Node, path string) {
	if n.Kind != strictyaml.Int && n.Kind != strictyaml.Float {
		c.Fault(n, path, "it is no number", "write dollars as a decimal number, like 2.50")
		return
	}
	micros, err := ParseMicros(n.Text)
	if err != nil {
		c.Fault(n, path, err.Error(), "write dollars as a decimal number, like 2.50")
		return
	}
	*m = Micros(micros)
}

// UnmarshalStrict reads a list of arguments, or a line for the shell.
func (c *Command) UnmarshalStrict(ctx *strictyaml.Context, n *strictyaml.Node, path string) {
	switch n.Kind {
	case strictyaml.Text:
		c.Shell = n.Text
	case strictyaml.List:
		ctx.Decode(n, path, &c.Argv)
	default:
		ctx.Fault(n, path, "it is no command", `write a list of arguments like ["go", "test", "./..."], or one text for the shell`)
	}
}

// defaults is a file in which nothing is written (interface.md, Plan).
func defaults() planFile {
	return planFile{
		Git:  Git{Author: "Mendflow <mendflow@localhost>"},
		Gate: gateFile{Baseline: BaselineRequire, OnRed: OnRedAttribute},
		Policy: Policy{
			Landing: LandingOptimistic, Scope: ScopeStrict, Spill: SpillSameTier,
			AttemptMinutes: 30, IdleMinutes: 10, SetupMinutes: 10, VerifyMinutes: 10, GateMinutes: 30,
			ResumeMargin: Duration(5 * time.Second), ResumeJitter: Duration(30 * time.Second),
		},
		Close: Close{Action: CloseNone},
	}
}

// plan turns the file into the model; Parse normalises it further.
func (f *planFile) plan() *Plan {
	return &Plan{
		Version: f.Version, ID: f.ID, Goal: f.Goal, Base: f.Base,
		Findings: f.Findings, Nodes: f.Nodes, Setup: f.Setup, Env: f.Env, Git: f.Git, Link: f.Link, Keep: f.Keep,
		Gate:   Gate{Commands: f.Gate.Commands.list, Disabled: f.Gate.Commands.none, Baseline: f.Gate.Baseline, OnRed: f.Gate.OnRed},
		Intent: f.Intent, AllowProtected: f.AllowProtected, Policy: f.Policy,
		Budget: Budget{Tokens: f.Budget.Tokens, USDMicros: int64(f.Budget.USD)},
		Close:  f.Close, Notify: f.Notify,
	}
}
