package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	api "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

// system is what the model is told about the way it works here.
const system = `You repair source code in a worktree. You cannot run commands: verification is run for you afterwards.
Paths are relative to the worktree and use forward slashes. Wherever the task speaks of writing a result file, hand the same JSON to the finish tool instead.`

// arguments are those of all tools; each uses some of them.
type arguments struct {
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Pattern string `json:"pattern"`
	From    int    `json:"from"`
	Content string `json:"content"`
	Old     string `json:"old"`
	New     string `json:"new"`
}

// finishTool ends the loop.
const finishTool = "finish"

// tool is one tool of the model.
type tool struct {
	name, help string
	parameters map[string]any
	required   []string
	run        func(*tree, arguments) (string, error)
}

func text(help string) map[string]any { return map[string]any{"type": "string", "description": help} }

// tools are all tools in the order in which the model sees them.
func tools() []tool {
	return []tool{
		{"list_files", "List files.", map[string]any{"glob": text("like src/**/*.go; empty: all")}, nil,
			func(t *tree, a arguments) (string, error) { return t.list(a.Glob) }},
		{"search", "Find lines that match a regular expression (RE2).",
			map[string]any{"pattern": text("regular expression"), "glob": text("files to look in; empty: all")}, []string{"pattern"},
			func(t *tree, a arguments) (string, error) { return t.search(a.Pattern, a.Glob) }},
		{"read_file", "Read a file.",
			map[string]any{"path": text("path"), "from": map[string]any{"type": "integer", "description": "first line, from 1"}}, []string{"path"},
			func(t *tree, a arguments) (string, error) { return t.read(a.Path, a.From) }},
		{"write_file", "Write a whole file; it is made when it does not exist.",
			map[string]any{"path": text("path"), "content": text("the whole content")}, []string{"path", "content"},
			func(t *tree, a arguments) (string, error) { return "written", t.write(a.Path, a.Content) }},
		{"replace", "Replace a text that stands exactly once in a file.",
			map[string]any{"path": text("path"), "old": text("the text, with enough around it"), "new": text("the new text")}, []string{"path", "old", "new"},
			func(t *tree, a arguments) (string, error) { return "replaced", t.replace(a.Path, a.Old, a.New) }},
		{"delete_file", "Delete a file.", map[string]any{"path": text("path")}, []string{"path"},
			func(t *tree, a arguments) (string, error) { return "deleted", t.remove(a.Path) }},
	}
}

// described are the tools as the API wants them.
func described() []api.ChatCompletionToolUnionParam {
	var out []api.ChatCompletionToolUnionParam
	add := func(name, help string, parameters shared.FunctionParameters) {
		out = append(out, api.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: name, Description: api.String(help), Parameters: parameters,
		}))
	}
	for _, t := range tools() {
		required := t.required
		if required == nil {
			required = []string{}
		}
		add(t.name, t.help, shared.FunctionParameters{"type": "object", "properties": t.parameters, "required": required})
	}
	add(finishTool, "End the work with its result.", resultSchema(false))
	return out
}

// loop lets the model work with tools until it hands in its result.
func (s *session) loop(ctx context.Context) (string, error) {
	messages := []api.ChatCompletionMessageParamUnion{api.SystemMessage(system), api.UserMessage(s.job.Prompt)}
	reminded := false
	for range s.job.Steps {
		choice, err := s.ask(ctx, api.ChatCompletionNewParams{Messages: messages, Tools: described()})
		if err != nil {
			return "", err
		}
		messages = append(messages, choice.Message.ToParam())
		if len(choice.Message.ToolCalls) == 0 {
			if _, ok := findResult(choice.Message.Content); ok || reminded {
				return choice.Message.Content, nil
			}
			reminded = true
			messages = append(messages, api.UserMessage("Call the tool "+finishTool+" with the result now, or go on with the work."))
			continue
		}
		for _, call := range choice.Message.ToolCalls {
			if call.Function.Name == finishTool {
				if result, ok := findResult(call.Function.Arguments); ok {
					return result, nil
				}
				messages = append(messages, api.ToolMessage("error: the arguments are no result: items and summary are expected", call.ID))
				continue
			}
			messages = append(messages, api.ToolMessage(s.call(call.Function.Name, call.Function.Arguments), call.ID))
		}
	}
	return "", &faultError{fmt.Sprintf("it took more than %d model steps: give the node a smaller task, or raise the pool's option `steps`", s.job.Steps)}
}

// call runs one tool; what goes wrong is told to the model.
func (s *session) call(name, args string) string {
	known := tools()
	at := slices.IndexFunc(known, func(t tool) bool { return t.name == name })
	if at < 0 {
		return "error: there is no tool " + name
	}
	var a arguments
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return "error: read arguments: " + err.Error()
	}
	answer, err := known[at].run(s.files, a)
	line := outLine{Type: lineTool, Name: name, Path: a.Path}
	if err != nil {
		answer = "error: " + err.Error()
		line.Message = answer
	}
	s.tell(line)
	return answer
}
