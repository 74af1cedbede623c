package openai

import "mendflow/internal/quota"

// programArgument makes the worker binary this program.
const programArgument = "__openai"

const quotaHTTP = quota.HTTP

// job is what the program is told on stdin.
type job struct {
	Prompt        string   `json:"prompt"`
	Model         string   `json:"model"`
	BaseURL       string   `json:"base_url,omitempty"`
	Key           string   `json:"key,omitempty"` // name of the variable that holds it
	Mode          string   `json:"mode"`
	Steps         int      `json:"steps"`
	ContextTokens int      `json:"context_tokens,omitempty"`
	OutputTokens  int      `json:"output_tokens,omitempty"`
	Worktree      string   `json:"worktree"`
	Write         []string `json:"write,omitempty"` // globs; empty: everything
	Read          []string `json:"read,omitempty"`  // globs of what is shown at once
}

// Types of lines on stdout.
const (
	lineStart    = "start"    // model and mode
	lineStep     = "step"     // one answer of the model, with its usage
	lineTool     = "tool"     // one call of a tool
	lineResponse = "response" // a request that failed: status 0 when no response came
	lineFault    = "fault"    // the session cannot come to an end
	lineResult   = "result"   // the end
)

// outLine is a line of stdout.
type outLine struct {
	Type    string              `json:"type"`
	Message string              `json:"message,omitempty"`
	Name    string              `json:"name,omitempty"`
	Path    string              `json:"path,omitempty"`
	Usage   *tokens             `json:"usage,omitempty"`
	Status  int                 `json:"status,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Body    string              `json:"body,omitempty"`
}

type tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}
