package workercmd

import (
	"errors"
	"fmt"

	"mendflow/internal/contract"
	"mendflow/internal/provider"
	"mendflow/internal/provider/claude"
	"mendflow/internal/provider/codex"
	"mendflow/internal/provider/command"
	"mendflow/internal/provider/gemini"
	"mendflow/internal/provider/host"
	"mendflow/internal/provider/openai"
	"mendflow/internal/provider/opencode"
	"mendflow/internal/provider/qwen"
)

// Providers wires the adapters in. It is the only place that does: a new
// provider is its folder and a line here.
func Providers() *provider.Registry {
	var registry provider.Registry
	registry.Register(contract.ProviderCommand, command.Provider{})
	registry.Register(contract.ProviderClaude, claude.Provider{})
	registry.Register(contract.ProviderCodex, codex.Provider{})
	registry.Register(contract.ProviderOpencode, opencode.Provider{})
	registry.Register(contract.ProviderGemini, gemini.Provider{})
	registry.Register(contract.ProviderQwen, qwen.Provider{})
	registry.Register(contract.ProviderOpenAI, openai.Provider{})
	registry.Register(contract.ProviderHost, host.Provider{})
	return &registry
}

// CheckOptions refuses options that a pool's provider does not know, all at
// once.
func CheckOptions(path string, pools []contract.Pool) error {
	registry := Providers()
	var faults []error
	for _, p := range pools {
		about := provider.About{}
		if adapter, err := registry.Lookup(p.Provider); err == nil {
			about = adapter.About()
		}
		for _, fault := range provider.CheckOptions(about, p) {
			faults = append(faults, fmt.Errorf("%s: %s", path, fault))
		}
	}
	return errors.Join(faults...)
}
