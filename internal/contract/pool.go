package contract

import "mendflow/internal/plan"

// Provider names a kind of backend; the list is closed (interface.md).
type Provider string

// Providers.
const (
	ProviderClaude   Provider = "claude"
	ProviderCodex    Provider = "codex"
	ProviderOpencode Provider = "opencode"
	ProviderGemini   Provider = "gemini"
	ProviderQwen     Provider = "qwen"
	ProviderOpenAI   Provider = "openai"
	ProviderCommand  Provider = "command"
	ProviderHost     Provider = "host"
)

// Pool is one backend that can run attempts in parallel, as the pools file
// declares it, normalised (account and tier are never empty).
type Pool struct {
	ID            string            `json:"id"`
	Provider      Provider          `json:"provider"`
	Account       string            `json:"account"` // pools of one account share quota; default: the pool id
	Model         string            `json:"model,omitempty"`
	Tier          plan.Tier         `json:"tier"`
	Rank          int               `json:"rank,omitempty"` // finer order, lower first
	MaxConcurrent int               `json:"max_concurrent"`
	ContextTokens int               `json:"context_tokens,omitempty"` // 0: unknown
	OutputTokens  int               `json:"output_tokens,omitempty"`  // 0: unknown
	Cost          *Cost             `json:"cost,omitempty"`           // nil: unknown; zero: declared free
	Env           []string          `json:"env,omitempty"`            // names passed through from the worker's environment; values are secrets
	Writable      []string          `json:"writable,omitempty"`
	Command       *plan.Command     `json:"command,omitempty"` // provider command only
	Options       map[string]string `json:"options,omitempty"`
}

// Cost is USD per million tokens in millionths of a dollar (15 USD is
// 15_000_000), which keeps floats out of every ordering.
type Cost struct {
	InputMicros  int64 `json:"input_micros"`
	OutputMicros int64 `json:"output_micros"`
}

// Free reports whether the pool is declared to cost nothing.
func (c *Cost) Free() bool { return c != nil && c.InputMicros == 0 && c.OutputMicros == 0 }

// LimitPattern is an extra text of a user's provider (pools file, limit_patterns).
type LimitPattern struct {
	Match   string `json:"match"`           // RE2
	Outcome string `json:"outcome"`         // an Outcome
	Reset   string `json:"reset,omitempty"` // name of the group that holds the reset, or a duration
}

// PoolsFile is a parsed pools file, normalised and valid.
type PoolsFile struct {
	Version       int            `json:"version"`
	Pools         []Pool         `json:"pools"`
	LimitPatterns []LimitPattern `json:"limit_patterns,omitempty"`
	Exclude       []string       `json:"exclude,omitempty"`
}
