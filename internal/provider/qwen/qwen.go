// Package qwen adapts Qwen Code (stream-json output) with any API that speaks
// OpenAI's chat completions.
//
// What it reads: the final `result` event, and stderr, which alone says why the
// program waits: it sleeps a minute and more after a limit, ten times, so the
// launch ends at the first announced wait.
package qwen

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"

	"mendflow/internal/provider"
)

// Tested is the version that this adapter was written against.
const Tested = "0.24.4"

// Provider is the adapter. The zero value is ready for use.
type Provider struct{}

var _ provider.Provider = Provider{}

// About describes the program.
func (Provider) About() provider.About {
	return provider.About{
		Agent: true, Speaks: "qwen", Program: "qwen", Tested: Tested,
		Keys: []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY"}, Home: ".qwen",
		Options: []provider.Option{
			provider.ProgramOption(), provider.StepsOption(), provider.BaseURLOption(),
		},
	}
}

// requestTimeout bounds a try, in milliseconds.
const requestTimeout = 120000

type object map[string]any

// Build makes the launch. The prompt goes in by stdin.
func (p Provider) Build(req provider.Request) (provider.Launch, error) {
	about := p.About()
	settings, err := json.MarshalIndent(object{
		"privacy":  object{"usageStatisticsEnabled": false},
		"general":  object{"enableAutoUpdate": false},
		"security": object{"auth": object{"selectedType": "openai"}},
		"model":    object{"generationConfig": object{"maxRetries": 0, "timeout": requestTimeout}},
	}, "", "  ")
	if err != nil {
		return provider.Launch{}, fmt.Errorf("write settings of qwen: %w", err)
	}
	file := filepath.Join(req.Folder, "qwen-settings.json")
	argv := []string{
		about.ProgramOf(req.Pool), "--auth-type", "openai", "--approval-mode", "yolo", "--output-format", "stream-json",
		"--max-session-turns", strconv.Itoa(provider.Steps(req.Pool)),
	}
	if req.Pool.Model != "" {
		argv = append(argv, "--model="+req.Pool.Model)
	}
	if req.Session != "" {
		argv = append(argv, "--resume="+req.Session)
	}
	launch := provider.Launch{
		Argv: argv, Stdin: []byte(req.Prompt),
		Env: []string{
			"QWEN_CODE_SYSTEM_SETTINGS_PATH=" + file,
			"QWEN_TELEMETRY_ENABLED=false", "QWEN_CODE_SUPPRESS_YOLO_WARNING=1",
		},
		Files: []provider.File{{Path: file, Data: settings}},
	}
	if req.Pool.Model != "" {
		launch.Env = append(launch.Env, "OPENAI_MODEL="+req.Pool.Model)
	}
	if base := req.Pool.Options[provider.OptionBaseURL]; base != "" {
		launch.Env = append(launch.Env, "OPENAI_BASE_URL="+base)
	}
	return launch, nil
}

// Read starts reading a launch's output.
func (p Provider) Read(req provider.Request) provider.Reader {
	return &reader{Follow: provider.Follow{Req: req, About: p.About(), LostSession: []string{"No saved session found with ID"}}}
}
