package modelserver

import (
	"encoding/json"
	"strings"
)

// responses is a request of OpenAI's responses API.
type responses struct {
	Model string            `json:"model"`
	Input []json.RawMessage `json:"input"`
	Tools []struct {
		Type       string `json:"type"`
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]property `json:"properties"`
		} `json:"parameters"`
	} `json:"tools"`
}

func (r *responses) ask() Ask {
	a := Ask{Wire: Responses, Model: r.Model}
	for _, t := range r.Tools {
		a.tools = append(a.tools, toolOffer{t.Name, t.Parameters.Properties})
	}
	for _, raw := range r.Input {
		var item struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if json.Unmarshal(raw, &item) != nil && item.Type == "" {
			continue
		}
		switch {
		case item.Type == "function_call_output":
			a.Results++
		case item.Role == "user":
			var texts []string
			for _, c := range item.Content {
				texts = append(texts, c.Text)
			}
			a.Prompt, a.Results = strings.Join(texts, "\n"), 0
		}
	}
	return a
}

func (r *responses) write(s *stream, t Turn) {
	item := object{"type": "message", "id": s.id("msg"), "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": t.Text, "annotations": []any{}}}}
	if t.Tool != "" {
		item = object{"type": "function_call", "id": s.id("fc"), "call_id": s.id("call"), "name": t.Tool, "arguments": encode(t.Input), "status": "completed"}
	}
	s.event("response.created", object{"type": "response.created", "response": object{"id": s.id("resp")}})
	s.event("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	s.event("response.completed", object{"type": "response.completed", "response": object{"id": s.id("resp"), "usage": object{
		"input_tokens": InputTokens, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": OutputTokens, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": InputTokens + OutputTokens,
	}}})
}
