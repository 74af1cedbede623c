// Package claude adapts Claude Code (claude -p, stream-json output).
//
// What it reads: the final `result` event with usage, cost and outcome;
// `rate_limit_event` with the reset of a subscription's window; the synthetic
// message and `system/api_retry` with the API's own words. Anything that says
// `"subtype":"success"` may still be an error: `is_error` decides.
package claude

import (
	"fmt"
	"path/filepath"
	"strconv"

	"mendflow/internal/provider"
)

// Tested is the version that this adapter was written against.
const Tested = "2.1.332"

// Provider is the adapter. The zero value is ready for use.
type Provider struct{}

var _ provider.Provider = Provider{}

// Names of options of this adapter alone.
const (
	optionConfigDir  = "config_dir"
	optionPermission = "permission_mode"
)

// About describes the program.
func (Provider) About() provider.About {
	return provider.About{
		Agent: true, Speaks: "claude-code", Program: "claude", Tested: Tested,
		Keys:       []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		Login:      ".credentials.json",
		HomeOption: optionConfigDir, Home: ".claude",
		Options: []provider.Option{
			provider.ProgramOption(), provider.StepsOption(), provider.BaseURLOption(),
			{Name: optionConfigDir, Help: "folder with the log-in and the sessions, like ~/.claude", Own: true, Check: provider.Folder},
			{Name: optionPermission, Help: "permission mode", Check: provider.OneOf("acceptEdits", "bypassPermissions", "dontAsk")},
		},
	}
}

// Times inside the program, in milliseconds: long enough for a slow model, short
// enough that a dead connection does not take an attempt's whole time.
const (
	requestTimeout = "300000"
	streamTimeout  = "120000"
)

// Build makes the launch. The prompt goes in by stdin: it may be longer than an
// argument can be, and can never be read as an option.
func (p Provider) Build(req provider.Request) (provider.Launch, error) {
	about := p.About()
	mode := req.Pool.Options[optionPermission]
	if mode == "" {
		mode = "acceptEdits"
	}
	argv := []string{
		about.ProgramOf(req.Pool), "-p", "--output-format", "stream-json", "--verbose",
		"--permission-mode", mode, "--strict-mcp-config", "--allowedTools", "Bash",
		"--max-turns", strconv.Itoa(provider.Steps(req.Pool)),
	}
	if req.Pool.Model != "" {
		argv = append(argv, "--model="+req.Pool.Model)
	}
	if req.ResultFile != "" { // else the program refuses to write there
		argv = append(argv, "--add-dir="+filepath.Dir(req.ResultFile))
	}
	if req.Session != "" {
		argv = append(argv, "--resume="+req.Session)
	}
	home := about.HomeOf(req.Pool, req.Home)
	launch := provider.Launch{
		Argv: argv, Stdin: []byte(req.Prompt), Interrupt: true,
		Env: []string{
			"CLAUDE_CONFIG_DIR=" + home,
			"CLAUDE_CODE_MAX_RETRIES=1",
			"API_TIMEOUT_MS=" + requestTimeout,
			"CLAUDE_STREAM_IDLE_TIMEOUT_MS=" + streamTimeout,
			"CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=" + streamTimeout,
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		},
		Folders: []string{home}, Writable: []string{home},
	}
	if base := req.Pool.Options[provider.OptionBaseURL]; base != "" {
		launch.Env = append(launch.Env, "ANTHROPIC_BASE_URL="+base)
	}
	if req.Pool.OutputTokens > 0 {
		launch.Env = append(launch.Env, fmt.Sprintf("CLAUDE_CODE_MAX_OUTPUT_TOKENS=%d", req.Pool.OutputTokens))
	}
	return launch, nil
}

// Read starts reading a launch's output.
func (p Provider) Read(req provider.Request) provider.Reader {
	return &reader{Follow: provider.Follow{
		Req: req, About: p.About(), LostSession: []string{"No conversation found with session ID"},
	}}
}
