package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	api "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"mendflow/internal/provider"
)

// answer is a single answer: what to change, and the result.
type answer struct {
	Files   []fileChange    `json:"files"`
	Items   json.RawMessage `json:"items"`
	Summary string          `json:"summary"`
}

// fileChange is one file: its whole content, replacements, or its deletion.
type fileChange struct {
	Path    string        `json:"path"`
	Content *string       `json:"content"`
	Replace []replacement `json:"replace"`
	Delete  bool          `json:"delete"`
}

type replacement struct {
	Old string `json:"old"`
	New string `json:"new"`
}

type object = map[string]any

// resultSchema is the schema of a result; strict wants every key in `required`.
func resultSchema(strict bool) object {
	optional := object{"type": "string"}
	required := []string{"finding", "status"}
	if strict {
		optional, required = object{"type": []string{"string", "null"}}, []string{"finding", "status", "reason", "question"}
	}
	item := object{"type": "object", "additionalProperties": false, "required": required, "properties": object{
		"finding":  object{"type": "string", "description": "id of the finding"},
		"status":   object{"type": "string", "enum": []string{"resolved", "no_change", "blocked", "needs_clarification"}},
		"reason":   optional,
		"question": optional,
	}}
	return object{"type": "object", "additionalProperties": false, "required": []string{"items", "summary"}, "properties": object{
		"items": object{"type": "array", "items": item}, "summary": object{"type": "string"},
	}}
}

func answerSchema() object {
	pair := object{"type": "object", "additionalProperties": false, "required": []string{"old", "new"},
		"properties": object{"old": object{"type": "string"}, "new": object{"type": "string"}}}
	file := object{"type": "object", "additionalProperties": false, "required": []string{"path", "content", "replace", "delete"}, "properties": object{
		"path":    object{"type": "string"},
		"content": object{"type": []string{"string", "null"}, "description": "the whole new content"},
		"replace": object{"type": []string{"array", "null"}, "items": pair, "description": "texts that stand exactly once in the file, and their replacement"},
		"delete":  object{"type": "boolean"},
	}}
	schema := resultSchema(true)
	schema["required"] = []string{"files", "items", "summary"}
	schema["properties"].(object)["files"] = object{"type": "array", "items": file}
	return schema
}

// rungs are the forms of an answer, from the strictest to none.
func rungs() []api.ChatCompletionNewParamsResponseFormatUnion {
	return []api.ChatCompletionNewParamsResponseFormatUnion{
		{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "repair", Strict: api.Bool(true), Schema: answerSchema(),
		}}},
		{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}},
		{},
	}
}

// single asks for everything in one answer and carries it out. An answer that
// cannot be carried out is asked for once more, with what was wrong.
func (s *session) single(ctx context.Context) (string, error) {
	messages := []api.ChatCompletionMessageParamUnion{api.SystemMessage(system), api.UserMessage(s.whole())}
	ladder := rungs()
	for try := 0; ; try++ {
		choice, err := s.ask(ctx, api.ChatCompletionNewParams{Messages: messages, ResponseFormat: ladder[0]})
		for unsupported(err, formatWords) && len(ladder) > 1 {
			ladder = ladder[1:]
			choice, err = s.ask(ctx, api.ChatCompletionNewParams{Messages: messages, ResponseFormat: ladder[0]})
		}
		if err != nil {
			return "", err
		}
		message, err := s.carryOut(choice.Message.Content)
		if err == nil {
			return message, nil
		}
		if try > 0 {
			return "", &faultError{"the model's answer cannot be used: " + err.Error()}
		}
		messages = append(messages, choice.Message.ToParam(),
			api.UserMessage("That answer cannot be used: "+err.Error()+"\nNothing of it was written. Answer again, with everything."))
	}
}

// whole is the prompt with the files that it is about, and the form of the answer.
func (s *session) whole() string {
	schema, err := json.MarshalIndent(answerSchema(), "", "  ")
	if err != nil {
		panic(err) // a constant
	}
	return s.job.Prompt + "\n## Files\n\n" + s.files.show(append(append([]string{}, s.job.Read...), s.job.Write...), s.room()) +
		"\n## Answer\n\nAnswer with one JSON object and nothing else. It has this schema:\n\n" + string(schema) + "\n"
}

// room is how many bytes of files fit next to the prompt.
func (s *session) room() int {
	const bytesPerToken, unknown, least = 3, 100_000, 4 << 10
	tokens := s.job.ContextTokens
	if tokens == 0 {
		tokens = unknown
	}
	return max(least, (tokens-s.job.OutputTokens)*bytesPerToken-len(s.job.Prompt))
}

// carryOut writes an answer's files, all or none, and returns its result.
func (s *session) carryOut(content string) (string, error) {
	var a answer
	data, ok := provider.ResultBlock(content)
	if !ok {
		return "", errors.New("it is no JSON object with items")
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return "", fmt.Errorf("it does not have the schema: %w", err)
	}
	changes, err := s.files.plan(a.Files)
	if err != nil {
		return "", err
	}
	for _, c := range changes {
		if err := s.files.apply(c); err != nil {
			return "", err
		}
		s.tell(outLine{Type: lineTool, Name: c.verb(), Path: c.path})
	}
	result, ok := findResult(string(data))
	if !ok {
		return "", errors.New("it has no items")
	}
	return result, nil
}

// findResult takes the result out of a text, without what belongs to no result.
func findResult(content string) (string, bool) {
	data, ok := provider.ResultBlock(content)
	if !ok {
		return "", false
	}
	var found struct {
		Items []struct {
			Finding  string            `json:"finding"`
			Status   string            `json:"status"`
			Evidence []json.RawMessage `json:"evidence,omitempty"`
			Reason   string            `json:"reason,omitempty"`
			Question string            `json:"question,omitempty"`
		} `json:"items"`
		Summary string `json:"summary,omitempty"`
	}
	if err := json.Unmarshal(data, &found); err != nil || found.Items == nil {
		return "", false
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(found); err != nil {
		return "", false
	}
	return strings.TrimSpace(out.String()), true
}
