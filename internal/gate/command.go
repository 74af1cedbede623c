package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Layers of a gate, in the order in which they run.
const (
	LayerBuild = "build"
	LayerCheck = "check"
	LayerTest  = "test"
	// LayerPlan marks a command that the plan names: it runs where the plan has
	// it and is a layer of its own, because only the author knows what depends on what.
	LayerPlan = "plan"
	// LayerSetup marks a command that prepares a fresh tree; it is never part of a gate.
	LayerSetup = "setup"
)

func layerRank(layer string) int {
	return slices.Index([]string{LayerSetup, LayerBuild, LayerCheck, LayerTest, LayerPlan}, layer)
}

// FromPlan makes gate commands of those that a plan names, in its order, run from the root.
func FromPlan(commands []plan.Command) []contract.GateCommand {
	out := make([]contract.GateCommand, len(commands))
	for i, c := range commands {
		out[i] = contract.GateCommand{Command: c, Layer: LayerPlan}
	}
	return out
}

// Name is how texts name a command: the command line, and its folder when that is not the root.
func Name(c contract.GateCommand) string {
	if c.Dir == "" || c.Dir == "." {
		return c.Command.String()
	}
	return c.Command.String() + " (in " + c.Dir + ")"
}

// layers groups commands that run together: neighbours of one layer, each plan command alone.
func layers(commands []contract.GateCommand) [][]int {
	var out [][]int
	for i, c := range commands {
		if i > 0 && c.Layer != LayerPlan && c.Layer == commands[i-1].Layer {
			out[len(out)-1] = append(out[len(out)-1], i)
			continue
		}
		out = append(out, []int{i})
	}
	return out
}

// program is the argv of a command without a leading `env NAME=VALUE …`; nil for a shell line.
func program(c plan.Command) []string {
	argv := c.Argv
	if len(argv) == 0 || path.Base(argv[0]) != "env" {
		return argv
	}
	for i, word := range argv[1:] {
		if !strings.Contains(word, "=") {
			return argv[i+1:]
		}
	}
	return nil
}

// Probe is a command whose output identifies a tool.
type Probe []string

// Probes lists the commands whose outputs say which tools the gate uses, sorted,
// for BaselineKey. A shell line and an unknown program have none.
func Probes(commands []contract.GateCommand) []Probe {
	known := map[string][]Probe{
		"go": {{"go", "version"}}, "node": {{"node", "--version"}},
		"npm": {{"node", "--version"}, {"npm", "--version"}}, "npx": {{"node", "--version"}},
		"pnpm": {{"node", "--version"}, {"pnpm", "--version"}}, "yarn": {{"node", "--version"}, {"yarn", "--version"}},
		"bun": {{"bun", "--version"}}, "cargo": {{"cargo", "--version"}, {"rustc", "--version"}},
		"python": {{"python", "--version"}}, "python3": {{"python3", "--version"}},
		"uv": {{"uv", "--version"}}, "poetry": {{"poetry", "--version"}}, "pdm": {{"pdm", "--version"}},
		"pipenv": {{"pipenv", "--version"}}, "mvn": {{"mvn", "--version"}}, "mvnw": {{"java", "--version"}},
		"gradle": {{"gradle", "--version"}}, "gradlew": {{"java", "--version"}}, "make": {{"make", "--version"}},
	}
	var out []Probe
	for _, c := range commands {
		if argv := program(c.Command); len(argv) > 0 {
			out = append(out, known[path.Base(argv[0])]...)
		}
	}
	slices.SortFunc(out, func(a, b Probe) int { return slices.Compare(a, b) })
	return slices.CompactFunc(out, func(a, b Probe) bool { return slices.Equal(a, b) })
}

// BaselineKey names the cached baseline of a base commit: the same commit,
// commands (with their folders and order), setup and tool versions give the same
// key. Tools holds one line per Probe, in their order.
func BaselineKey(base string, commands, setup []contract.GateCommand, tools []string) string {
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for _, part := range []any{"mendflow baseline 1", base, commands, setup, tools} {
		if err := enc.Encode(part); err != nil {
			panic("encode baseline key: " + err.Error()) // strings and slices of strings always encode
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
