// Package codex adapts OpenAI's Codex CLI (codex exec --json).
//
// What it reads: `turn.completed` and `turn.failed` on stdout, and the rollout
// file of the session, which alone has the account's windows with their resets
// and the usage of a turn that failed. A top-level `error` event is no end, an
// item of type `error` a warning.
package codex

import (
	"fmt"
	"path/filepath"
	"strconv"

	"mendflow/internal/provider"
)

// Tested is the version that this adapter was written against.
const Tested = "0.171.0"

// Provider is the adapter. The zero value is ready for use.
type Provider struct{}

var _ provider.Provider = Provider{}

// Names of options of this adapter alone.
const (
	optionHome    = "home"
	optionSandbox = "sandbox"
	optionEffort  = "effort"

	sandboxOurs = "mendflow"
	sandboxOwn  = "codex"
)

// About describes the program.
func (Provider) About() provider.About {
	return provider.About{
		Agent: true, Speaks: "codex", Program: "codex", Tested: Tested,
		Keys:       []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		Login:      "auth.json",
		HomeOption: optionHome, Home: ".codex",
		Options: []provider.Option{
			provider.ProgramOption(), provider.StepsOption(), provider.BaseURLOption(), provider.KeyOption(),
			{Name: optionHome, Help: "folder with the log-in and the sessions, like ~/.codex", Own: true, Check: provider.Folder},
			{Name: optionSandbox, Help: "whose sandbox holds the program", Own: true, Check: provider.OneOf(sandboxOurs, sandboxOwn)},
			{Name: optionEffort, Help: "reasoning effort", Check: provider.OneOf("minimal", "low", "medium", "high", "xhigh")},
		},
	}
}

// streamTimeout bounds a silent stream, in milliseconds. Nothing bounds the wait
// for the first header: the idle clock of the attempt does.
const streamTimeout = 120000

// modelProvider is the name of our entry among the program's model providers:
// retries can only be turned off in an entry of one's own.
const modelProvider = "mendflow"

// Build makes the launch. The prompt goes in by stdin ("-"): it may be longer
// than an argument can be, and can never be read as an option.
func (p Provider) Build(req provider.Request) (provider.Launch, error) {
	about := p.About()
	home := about.HomeOf(req.Pool, req.Home)
	own := req.Pool.Options[optionSandbox] == sandboxOwn || !req.Confined
	mode := "danger-full-access" // our sandbox holds it; its own mounts, which cannot nest
	if own {
		mode = "workspace-write"
	}
	argv := []string{
		about.ProgramOf(req.Pool), "exec", "--json", "--sandbox", mode, "-C", req.Worktree, "--skip-git-repo-check",
	}
	if req.Pool.Model != "" {
		argv = append(argv, "--model="+req.Pool.Model)
	}
	for _, setting := range p.settings(req, own) {
		argv = append(argv, "-c", setting)
	}
	if req.Session != "" {
		argv = append(argv, "resume", req.Session)
	}
	return provider.Launch{
		Argv: append(argv, "-"), Stdin: []byte(req.Prompt), Interrupt: true, OwnSandbox: own && req.Confined,
		Env:     []string{"CODEX_HOME=" + home},
		Folders: []string{home}, Writable: []string{home},
	}, nil
}

// settings are the lines of configuration of a launch.
func (p Provider) settings(req provider.Request, own bool) []string {
	set := []string{
		`approval_policy="never"`,
		"check_for_update_on_startup=false",
		"analytics.enabled=false",
	}
	if own {
		set = append(set,
			"sandbox_workspace_write.exclude_slash_tmp=true",
			"sandbox_workspace_write.exclude_tmpdir_env_var=true")
		if req.ResultFile != "" {
			set = append(set, "sandbox_workspace_write.writable_roots=["+strconv.Quote(filepath.Dir(req.ResultFile))+"]")
		}
	}
	if effort := req.Pool.Options[optionEffort]; effort != "" {
		set = append(set, "model_reasoning_effort="+strconv.Quote(effort))
	}
	if req.Pool.ContextTokens > 0 {
		set = append(set, fmt.Sprintf("model_context_window=%d", req.Pool.ContextTokens))
	}
	entry := "model_providers." + modelProvider + "."
	set = append(set,
		"model_provider="+strconv.Quote(modelProvider),
		entry+`name="OpenAI"`,
		entry+`wire_api="responses"`,
		entry+"request_max_retries=0",
		entry+"stream_max_retries=0",
		entry+"stream_idle_timeout_ms="+strconv.Itoa(streamTimeout))
	key, base := p.About().Key(req.Pool), req.Pool.Options[provider.OptionBaseURL]
	if key == "" {
		set = append(set, entry+"requires_openai_auth=true") // the log-in in the program's home
	} else {
		set = append(set, entry+"env_key="+strconv.Quote(key))
		if base == "" {
			base = "https://api.openai.com/v1"
		}
	}
	if base != "" {
		set = append(set, entry+"base_url="+strconv.Quote(base))
	}
	return set
}

// Read starts reading a launch's output; it notes what the session's rollout
// files hold already.
func (p Provider) Read(req provider.Request) provider.Reader {
	about := p.About()
	r := &reader{home: about.HomeOf(req.Pool, req.Home), Follow: provider.Follow{
		Req: req, About: about, ID: req.Session,
		LostSession: []string{"no rollout found for thread id", "thread/resume failed"},
	}}
	r.before = r.rollouts()
	return r
}
