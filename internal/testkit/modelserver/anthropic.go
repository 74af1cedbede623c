package modelserver

import (
	"encoding/json"
	"strings"
)

// anthropic is a request of the messages API.
type anthropic struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string `json:"name"`
		Schema struct {
			Properties map[string]property `json:"properties"`
		} `json:"input_schema"`
	} `json:"tools"`
}

func (r *anthropic) ask() Ask {
	a := Ask{Wire: Anthropic, Model: r.Model}
	for _, t := range r.Tools {
		a.tools = append(a.tools, toolOffer{t.Name, t.Schema.Properties})
	}
	for _, m := range r.Messages {
		if m.Role != "user" {
			continue
		}
		var plain string
		if json.Unmarshal(m.Content, &plain) == nil {
			a.Prompt, a.Results = plain, 0
			continue
		}
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(m.Content, &parts) != nil {
			continue
		}
		typed := false // the part before this one was of the user's own message
		for _, p := range parts {
			switch {
			case p.Type == "tool_result":
				a.Results++
				typed = false
			case p.Type != "text" || strings.HasPrefix(strings.TrimSpace(p.Text), "<system-reminder>"):
			case typed:
				a.Prompt += "\n" + p.Text
			default: // a resumed session puts it behind the results of the last one
				a.Prompt, a.Results, typed = p.Text, 0, true
			}
		}
	}
	return a
}

func (r *anthropic) write(s *stream, t Turn) {
	block, stop := object{"type": "text", "text": ""}, "end_turn"
	delta := object{"type": "text_delta", "text": t.Text}
	if t.Tool != "" {
		block = object{"type": "tool_use", "id": s.id("toolu"), "name": t.Tool, "input": object{}}
		delta, stop = object{"type": "input_json_delta", "partial_json": encode(t.Input)}, "tool_use"
	}
	usage := object{"input_tokens": InputTokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": OutputTokens}
	message := object{"id": s.id("msg"), "type": "message", "role": "assistant", "model": r.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage}
	if !r.Stream {
		if t.Tool != "" {
			block["input"] = t.Input
		} else {
			block["text"] = t.Text
		}
		message["content"], message["stop_reason"] = []any{block}, stop
		s.whole(message)
		return
	}
	s.event("message_start", object{"type": "message_start", "message": message})
	s.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	s.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	s.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
	s.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": OutputTokens}})
	s.event("message_stop", object{"type": "message_stop"})
}
