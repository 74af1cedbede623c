// Package gemini adapts the Gemini CLI (stream-json output).
//
// What it reads: the final `result` event with status, error and usage, `error`
// events, and stderr, which alone has the times of several limits. Exit code 0
// is no success: the status is.
package gemini

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"mendflow/internal/provider"
)

// Tested is the version that this adapter was written against.
const Tested = "0.61.0"

// Provider is the adapter. The zero value is ready for use.
type Provider struct{}

var _ provider.Provider = Provider{}

const optionHome = "home"

// folder is where the program keeps settings, log-in and sessions below its home.
const folder = ".gemini"

// About describes the program.
func (Provider) About() provider.About {
	return provider.About{
		Agent: true, Speaks: "gemini", Program: "gemini", Tested: Tested,
		Keys:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Login: filepath.Join(folder, "oauth_creds.json"), HomeOption: optionHome, Home: "gemini", PoolHomes: true,
		Options: []provider.Option{
			provider.ProgramOption(), provider.StepsOption(), provider.BaseURLOption(),
			{Name: optionHome, Help: "folder of the program's own, whose settings are overwritten; log in with GEMINI_CLI_HOME set to it", Own: true, Check: provider.Folder},
		},
	}
}

type object map[string]any

// Build makes the launch. The prompt goes in by stdin.
func (p Provider) Build(req provider.Request) (provider.Launch, error) {
	about := p.About()
	settings, err := p.settings(req)
	if err != nil {
		return provider.Launch{}, err
	}
	// Settings outside of its home are refused by the program where a parent folder is writable to others.
	home := about.HomeOf(req.Pool, req.Home)
	argv := []string{about.ProgramOf(req.Pool), "--approval-mode", "yolo", "--skip-trust", "--output-format", "stream-json"}
	if req.Pool.Model != "" {
		argv = append(argv, "--model="+req.Pool.Model)
	}
	if req.ResultFile != "" { // else the program refuses to write there
		argv = append(argv, "--include-directories="+filepath.Dir(req.ResultFile))
	}
	if req.Session != "" {
		argv = append(argv, "--resume="+req.Session)
	}
	launch := provider.Launch{
		Argv: argv, Stdin: []byte(req.Prompt),
		Env: []string{
			"GEMINI_CLI_HOME=" + home,
			"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false", "TERM=xterm-256color",
		},
		Folders: []string{home}, Writable: []string{home},
		Files: []provider.File{{Path: filepath.Join(home, folder, "settings.json"), Data: settings}},
	}
	if base := req.Pool.Options[provider.OptionBaseURL]; base != "" {
		launch.Env = append(launch.Env, "GOOGLE_GEMINI_BASE_URL="+base)
	}
	return launch, nil
}

// settings are the program's settings for a launch: one try per request, since
// it would sleep as long as the server says.
func (p Provider) settings(req provider.Request) ([]byte, error) {
	auth := "oauth-personal"
	switch p.About().Key(req.Pool) {
	case "":
	case "GOOGLE_API_KEY":
		auth = "vertex-ai"
	default:
		auth = "gemini-api-key"
	}
	data, err := json.MarshalIndent(object{
		"privacy":   object{"usageStatisticsEnabled": false},
		"telemetry": object{"enabled": false},
		"general":   object{"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 1},
		"security":  object{"auth": object{"selectedType": auth}},
		"model":     object{"maxSessionTurns": provider.Steps(req.Pool)},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write settings of gemini: %w", err)
	}
	return data, nil
}

// Read starts reading a launch's output.
func (p Provider) Read(req provider.Request) provider.Reader {
	return &reader{Follow: provider.Follow{Req: req, About: p.About(), LostSession: []string{"Error resuming session"}}}
}
