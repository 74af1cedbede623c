// Package opencode adapts opencode (opencode run --format json).
//
// What it reads: the steps with their tokens and cost, and `error` events with
// the server's response headers. There is no final event: a last step that
// finished with reason `stop` is the end. While the program retries, which
// nothing bounds, it prints only a line of its log: the launch ends there.
package opencode

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"mendflow/internal/contract"
	"mendflow/internal/provider"
)

// Tested is the version that this adapter was written against.
const Tested = "1.18.33"

// Provider is the adapter. The zero value is ready for use.
type Provider struct{}

var _ provider.Provider = Provider{}

// Names of options of this adapter alone.
const (
	optionAPI  = "api"
	optionHome = "home"

	apiOpenAI    = "openai"
	apiAnthropic = "anthropic"
)

// About describes the program.
func (Provider) About() provider.About {
	return provider.About{
		Agent: true, Speaks: "opencode", Program: "opencode", Tested: Tested,
		Keys:  []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"},
		Login: filepath.Join("opencode", "auth.json"), HomeOption: optionHome, Home: filepath.Join(".local", "share"),
		Options: []provider.Option{
			provider.ProgramOption(), provider.StepsOption(), provider.BaseURLOption(), provider.KeyOption(),
			{Name: optionHome, Help: "folder with opencode/auth.json and the sessions, like ~/.local/share", Own: true, Check: provider.Folder},
			{Name: optionAPI, Help: "what the address in base_url speaks", Check: provider.OneOf(apiOpenAI, apiAnthropic)},
		},
	}
}

// requestTimeout bounds a silent server, in milliseconds; six tries of it come
// before the program gives up.
const requestTimeout = 60000

// ownProvider is the name of our entry in the program's configuration.
const ownProvider = "mendflow"

// Build makes the launch.
func (p Provider) Build(req provider.Request) (provider.Launch, error) {
	about := p.About()
	config, err := p.config(req)
	if err != nil {
		return provider.Launch{}, err
	}
	file := filepath.Join(req.Folder, "opencode.json")
	data := filepath.Join(about.HomeOf(req.Pool, req.Home), "opencode")
	argv := []string{about.ProgramOf(req.Pool), "run", "--format", "json", "--print-logs", "--log-level", "WARN"}
	if req.Session != "" {
		argv = append(argv, "--session="+req.Session)
	}
	return provider.Launch{
		Argv: argv, Stdin: []byte(req.Prompt),
		Env: []string{
			"OPENCODE_CONFIG=" + file,
			"XDG_DATA_HOME=" + about.HomeOf(req.Pool, req.Home),
			"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			"OPENCODE_DISABLE_SHARE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		},
		Folders: []string{data}, Writable: []string{data},
		Files: []provider.File{{Path: file, Data: config}},
	}, nil
}

type object map[string]any

// config is the program's configuration for a launch.
func (p Provider) config(req provider.Request) ([]byte, error) {
	model := req.Pool.Model
	config := object{
		"$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
		"permission": object{"edit": "allow", "bash": "allow", "webfetch": "deny", "external_directory": "deny"},
	}
	if base := req.Pool.Options[provider.OptionBaseURL]; base != "" {
		if model == "" {
			return nil, fmt.Errorf("build launch: pool %s has a base_url and no model: add `model:` to it", req.Pool.ID)
		}
		config["provider"] = object{ownProvider: p.entry(req.Pool, base)}
		model = ownProvider + "/" + model
	}
	if model != "" {
		config["model"], config["small_model"] = model, model
	}
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write configuration of opencode: %w", err)
	}
	return data, nil
}

// entry describes a server and its model.
func (p Provider) entry(pool contract.Pool, base string) object {
	npm := "@ai-sdk/openai-compatible"
	if pool.Options[optionAPI] == apiAnthropic {
		npm = "@ai-sdk/anthropic"
	}
	options := object{"baseURL": base, "headerTimeout": requestTimeout, "chunkTimeout": requestTimeout}
	if key := p.About().Key(pool); key != "" {
		options["apiKey"] = "{env:" + key + "}"
	}
	model := object{"limit": object{
		"context": orDefault(pool.ContextTokens, 200000), "output": orDefault(pool.OutputTokens, 32000),
	}}
	if pool.Cost != nil {
		model["cost"] = object{"input": float64(pool.Cost.InputMicros) / 1e6, "output": float64(pool.Cost.OutputMicros) / 1e6}
	}
	return object{"npm": npm, "options": options, "models": object{pool.Model: model}}
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Read starts reading a launch's output.
func (p Provider) Read(req provider.Request) provider.Reader {
	return &reader{Follow: provider.Follow{Req: req, About: p.About(), LostSession: []string{"Session not found"}}}
}
