package dispatch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/strictyaml"
)

// poolsFileVersion is the only version of pools files that this build reads.
const poolsFileVersion = 1

// maxPoolConcurrency bounds max_concurrent; more is a slip of the pen.
const maxPoolConcurrency = 1000

// poolsFileDoc is a pools file as people write it.
type poolsFileDoc struct {
	Version       int              `json:"version"`
	Pools         []poolsFilePool  `json:"pools"`
	LimitPatterns []poolsFileLimit `json:"limit_patterns"`
	Exclude       []string         `json:"exclude"`
}

type poolsFilePool struct {
	ID            string            `json:"id"`
	Provider      poolsFileProvider `json:"provider"`
	Account       string            `json:"account"`
	Model         string            `json:"model"`
	Tier          plan.Tier         `json:"tier"`
	Rank          int               `json:"rank"`
	MaxConcurrent *int              `json:"max_concurrent"`
	ContextTokens int               `json:"context_tokens"`
	OutputTokens  int               `json:"output_tokens"`
	Cost          *poolsFileCost    `json:"cost"`
	Env           []string          `json:"env"`
	Writable      []string          `json:"writable"`
	Command       *plan.Command     `json:"command"`
	Options       map[string]string `json:"options"`
}

// poolsFileCost is USD per million tokens, which as millionths of a dollar is
// micros per million tokens.
type poolsFileCost struct {
	Input  *plan.Micros `json:"input"`
	Output *plan.Micros `json:"output"`
}

type poolsFileLimit struct {
	Match   string           `json:"match"`
	Outcome poolsFileOutcome `json:"outcome"`
	Reset   string           `json:"reset"`
}

type poolsFileProvider string

// Values lists the providers (interface.md, Pools).
func (poolsFileProvider) Values() []string {
	return []string{
		string(contract.ProviderClaude), string(contract.ProviderCodex), string(contract.ProviderOpencode),
		string(contract.ProviderGemini), string(contract.ProviderQwen), string(contract.ProviderOpenAI),
		string(contract.ProviderCommand), string(contract.ProviderHost),
	}
}

type poolsFileOutcome string

// Values lists the outcomes that a text of a provider can mean.
func (poolsFileOutcome) Values() []string {
	return []string{
		string(contract.OutcomeRateLimited), string(contract.OutcomeOverloaded), string(contract.OutcomeCreditExhausted),
		string(contract.OutcomeAuthFailed), string(contract.OutcomeModelUnavailable), string(contract.OutcomePacketTooLarge),
		string(contract.OutcomeQuotaUnclassified),
	}
}

// ParsePools reads a pools file, YAML or JSON, applies the defaults and reports
// all faults at once. The result is nil when there are errors. A host pool that
// names the account of another kind of pool is left out with a warning; excluded
// pools stay in the list, with their ids in Exclude.
func ParsePools(name string, data []byte) (*contract.PoolsFile, plan.Faults) {
	root, found := strictyaml.Parse(data)
	r := plan.NewFaultReport(name, root)
	r.AddFound(found)
	if root == nil {
		return nil, r.Faults()
	}
	var doc poolsFileDoc
	r.AddFound(strictyaml.Decode(root, &doc))
	if root.Kind != strictyaml.Map {
		return nil, r.Faults()
	}
	if doc.Version != poolsFileVersion {
		r.AddMissing("", "version", fmt.Sprintf("version %d is not supported", doc.Version), fmt.Sprintf("write version: %d", poolsFileVersion))
	}
	out := &contract.PoolsFile{Version: poolsFileVersion}
	checkPoolIDs(doc.Pools, r)
	for i := range doc.Pools {
		out.Pools = append(out.Pools, doc.Pools[i].pool(strictyaml.Index("pools", i), r))
	}
	checkPoolAccounts(out.Pools, r)
	for i, p := range doc.LimitPatterns {
		out.LimitPatterns = append(out.LimitPatterns, p.pattern(strictyaml.Index("limit_patterns", i), r))
	}
	out.Exclude = checkPoolExclude(doc.Exclude, out.Pools, r)
	out.Pools = dropHostTwins(out.Pools, out.Exclude, r)
	checkPoolLeft(out, r)
	faults := r.Faults()
	if faults.Err() != nil {
		return nil, faults
	}
	return out, faults
}

func checkPoolIDs(pools []poolsFilePool, r *plan.FaultReport) {
	if len(pools) == 0 {
		r.AddMissing("", "pools", "the file has no pools", "declare at least one")
	}
	first := make(map[string]int, len(pools))
	for i, p := range pools {
		path := strictyaml.Index("pools", i)
		if err := plan.CheckID(p.ID); err != nil {
			r.AddMissing(path, "id", err.Error(), "")
			continue
		}
		key := strings.ToLower(p.ID)
		if j, twice := first[key]; twice {
			r.Add(path+".id", fmt.Sprintf("pool id %q is used twice (case does not count)", p.ID), fmt.Sprintf("the first is pools[%d]", j))
			continue
		}
		first[key] = i
	}
}

// pool checks one pool and applies its defaults.
func (p *poolsFilePool) pool(path string, r *plan.FaultReport) contract.Pool {
	out := contract.Pool{
		ID: p.ID, Provider: contract.Provider(p.Provider), Account: p.Account, Model: p.Model, Tier: p.Tier, Rank: p.Rank,
		MaxConcurrent: 1, ContextTokens: p.ContextTokens, OutputTokens: p.OutputTokens, Cost: p.cost(path, r),
		Env: p.Env, Writable: p.Writable, Command: p.Command, Options: p.Options,
	}
	if p.Provider == "" {
		r.AddMissing(path, "provider", "the provider is missing", "write one of "+strings.Join(p.Provider.Values(), ", "))
	}
	if out.Account == "" {
		out.Account = p.ID
	} else if err := plan.CheckID(out.Account); err != nil {
		r.Add(path+".account", err.Error(), "")
	}
	if out.Tier == "" {
		out.Tier = plan.TierStandard
	}
	if p.MaxConcurrent != nil {
		if out.MaxConcurrent = *p.MaxConcurrent; out.MaxConcurrent < 1 || out.MaxConcurrent > maxPoolConcurrency {
			r.Add(path+".max_concurrent", fmt.Sprintf("%d attempts at once is out of range", out.MaxConcurrent),
				fmt.Sprintf("write 1 to %d; exclude the pool to turn it off", maxPoolConcurrency))
		}
	}
	for _, limit := range []struct {
		key    string
		tokens int
	}{{"context_tokens", p.ContextTokens}, {"output_tokens", p.OutputTokens}} {
		if limit.tokens < 0 {
			r.Add(path+"."+limit.key, "the number of tokens is negative", "write 0 when it is unknown")
		}
	}
	for i, name := range p.Env {
		if err := plan.CheckEnvName(name); err != nil {
			r.Add(strictyaml.Index(path+".env", i), err.Error(), "name variables only, not values")
		}
	}
	for i, folder := range p.Writable {
		if !strings.HasPrefix(folder, "/") && folder != "~" && !strings.HasPrefix(folder, "~/") {
			r.Add(strictyaml.Index(path+".writable", i), fmt.Sprintf("folder %q is relative", folder), "begin with / or ~/")
		}
	}
	p.checkCommand(path, r)
	return out
}

func (p *poolsFilePool) cost(path string, r *plan.FaultReport) *contract.Cost {
	if p.Cost == nil {
		return nil
	}
	for _, side := range []struct {
		key   string
		price *plan.Micros
	}{{"input", p.Cost.Input}, {"output", p.Cost.Output}} {
		if side.price == nil {
			r.AddMissing(path+".cost", side.key, "the price of "+side.key+" tokens is missing", "write both prices, or leave cost out when it is unknown")
			return nil
		}
	}
	return &contract.Cost{InputMicros: int64(*p.Cost.Input), OutputMicros: int64(*p.Cost.Output)}
}

// poolPlaceholder finds {word}; other braces belong to the command itself.
var poolPlaceholder = regexp.MustCompile(`\{[a-z_]+\}`)

// poolPlaceholders are what a command may hold (interface.md, Pools).
func poolPlaceholders() []string {
	return []string{"{prompt}", "{result}", "{worktree}", "{node}", "{model}"}
}

func (p *poolsFilePool) checkCommand(path string, r *plan.FaultReport) {
	if contract.Provider(p.Provider) != contract.ProviderCommand {
		if p.Command != nil && p.Provider != "" {
			r.Add(path+".command", fmt.Sprintf("provider %s takes no command", p.Provider), "leave it out, or write provider: command")
		}
		return
	}
	switch c := p.Command; {
	case c == nil:
		r.AddMissing(path, "command", "provider command needs a command", `write it as a list of arguments, like ["go", "fix", "./..."]`)
	case len(c.Argv) == 0 && strings.TrimSpace(c.Shell) == "", len(c.Argv) > 0 && strings.TrimSpace(c.Argv[0]) == "":
		r.Add(path+".command", "the command names no program", "the first argument is the program")
	default:
		for i, argument := range c.Argv {
			checkPlaceholders(argument, strictyaml.Index(path+".command", i), false, r)
		}
		checkPlaceholders(c.Shell, path+".command", true, r)
	}
}

// checkPlaceholders refuses unknown placeholders. In a line for the shell braces
// have other uses, so that only misspelt ones are refused there.
func checkPlaceholders(text, path string, shell bool, r *plan.FaultReport) {
	known := poolPlaceholders()
	for _, at := range poolPlaceholder.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		variable := at[0] > 0 && text[at[0]-1] == '$'
		if slices.Contains(known, word) || shell && variable {
			continue
		}
		remedy := "known ones are " + strings.Join(known, " ")
		near, ok := strictyaml.Nearest(word, known)
		if ok {
			remedy = strictyaml.DidYouMean(near)
		}
		if ok || !shell {
			r.Add(path, fmt.Sprintf("unknown placeholder %s", word), remedy)
		}
	}
}

// checkPoolAccounts refuses accounts that differ in case only: their brokers would
// be two, their quota is one.
func checkPoolAccounts(pools []contract.Pool, r *plan.FaultReport) {
	spelling := make(map[string]string, len(pools))
	for i, p := range pools {
		key := strings.ToLower(p.Account)
		if p.Account == p.ID && r.Broken(strictyaml.Index("pools", i)+".id") {
			continue // the id is at fault already
		}
		if first, seen := spelling[key]; seen && first != p.Account {
			r.Add(strictyaml.Index("pools", i)+".account", fmt.Sprintf("accounts %q and %q differ in case only", first, p.Account), "spell them alike")
			continue
		}
		spelling[key] = p.Account
	}
}

func (l poolsFileLimit) pattern(path string, r *plan.FaultReport) contract.LimitPattern {
	out := contract.LimitPattern{Match: l.Match, Outcome: string(l.Outcome), Reset: l.Reset}
	if l.Outcome == "" {
		r.AddMissing(path, "outcome", "the outcome is missing", "write one of "+strings.Join(l.Outcome.Values(), ", "))
	}
	switch hard := contract.Outcome(l.Outcome); hard {
	case contract.OutcomeCreditExhausted, contract.OutcomeAuthFailed, contract.OutcomeModelUnavailable:
		if l.Reset != "" {
			r.Add(path+".reset", fmt.Sprintf("%s has no reset: only an operator ends it", hard), "leave reset out, or write rate_limited")
		}
	default:
	}
	if l.Match == "" {
		r.AddMissing(path, "match", "the pattern is missing", "write a regular expression (RE2)")
		return out
	}
	re, err := regexp.Compile(l.Match)
	switch {
	case err != nil:
		r.Add(path+".match", fmt.Sprintf("the pattern does not compile: %v", err), "write a regular expression (RE2)")
	case re.MatchString(""):
		r.Add(path+".match", "the pattern matches an empty text, so it would match everything", "")
	case l.Reset != "" && re.SubexpIndex(l.Reset) < 0:
		if new(plan.Duration).UnmarshalText([]byte(l.Reset)) != nil {
			r.Add(path+".reset", fmt.Sprintf("%q is neither a group of the pattern nor a duration", l.Reset),
				"write the name of a group (?P<name>…), or a duration like 15m")
		}
	}
	return out
}

// checkPoolExclude returns the excluded ids as the pools spell them.
func checkPoolExclude(exclude []string, pools []contract.Pool, r *plan.FaultReport) []string {
	ids := make([]string, len(pools))
	for i, p := range pools {
		ids[i] = p.ID
	}
	var out []string
	for i, id := range exclude {
		known := slices.IndexFunc(ids, func(k string) bool { return strings.EqualFold(k, id) })
		if known < 0 {
			remedy := "known pools are " + strings.Join(ids, ", ")
			if near, ok := strictyaml.Nearest(id, ids); ok {
				remedy = strictyaml.DidYouMean(near)
			}
			r.Add(strictyaml.Index("exclude", i), fmt.Sprintf("unknown pool %q", id), remedy)
			continue
		}
		if !slices.Contains(out, ids[known]) {
			out = append(out, ids[known])
		}
	}
	return out
}

// dropHostTwins keeps the source pool where a host pool names the same account
// (dispatch.md, Pools), unless the source pool is excluded.
func dropHostTwins(pools []contract.Pool, exclude []string, r *plan.FaultReport) []contract.Pool {
	source := make(map[string]string, len(pools))
	for _, p := range pools {
		if _, seen := source[p.Account]; !seen && p.Provider != contract.ProviderHost && !slices.Contains(exclude, p.ID) {
			source[p.Account] = p.ID
		}
	}
	var out []contract.Pool
	for i, p := range pools {
		if twin, ok := source[p.Account]; ok && p.Provider == contract.ProviderHost {
			r.Warn(strictyaml.Index("pools", i), fmt.Sprintf("host pool %s is left out: pool %s uses its account %s", p.ID, twin, p.Account), "")
			continue
		}
		out = append(out, p)
	}
	return out
}

func checkPoolLeft(file *contract.PoolsFile, r *plan.FaultReport) {
	file.Exclude = slices.DeleteFunc(file.Exclude, func(id string) bool {
		return !slices.ContainsFunc(file.Pools, func(p contract.Pool) bool { return p.ID == id })
	})
	left := slices.ContainsFunc(file.Pools, func(p contract.Pool) bool { return !slices.Contains(file.Exclude, p.ID) })
	if !left && len(file.Pools) > 0 {
		r.Add("exclude", "no pool is left", "exclude fewer")
	}
}
