package modelserver

import (
	"encoding/json"
	"io"
	"strings"
)

// chat is a request of the chat completions API.
type chat struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name       string `json:"name"`
			Parameters struct {
				Properties map[string]property `json:"properties"`
			} `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

func (r *chat) ask() Ask {
	a := Ask{Wire: Chat, Model: r.Model}
	for _, t := range r.Tools {
		a.tools = append(a.tools, toolOffer{t.Function.Name, t.Function.Parameters.Properties})
	}
	for _, m := range r.Messages {
		switch m.Role {
		case "tool":
			a.Results++
		case "user":
			a.Prompt, a.Results = contentText(m.Content), 0
		}
	}
	return a
}

// contentText is the text of a message's content, a string or parts.
func contentText(content json.RawMessage) string {
	var plain string
	if json.Unmarshal(content, &plain) == nil {
		return plain
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

func (r *chat) write(s *stream, t Turn) {
	message, stop := object{"role": "assistant", "content": t.Text}, "stop"
	if t.Tool != "" {
		stop = "tool_calls"
		message = object{"role": "assistant", "content": nil, "tool_calls": []any{object{
			"index": 0, "id": s.id("call"), "type": "function", "function": object{"name": t.Tool, "arguments": encode(t.Input)},
		}}}
	}
	usage := object{"prompt_tokens": InputTokens, "completion_tokens": OutputTokens, "total_tokens": InputTokens + OutputTokens}
	base := func(kind string, choice object) object {
		return object{"id": s.id("chatcmpl"), "object": kind, "created": 1, "model": r.Model, "choices": []any{choice}}
	}
	if !r.Stream {
		whole := base("chat.completion", object{"index": 0, "message": message, "finish_reason": stop})
		whole["usage"] = usage
		s.whole(whole)
		return
	}
	s.event("", base("chat.completion.chunk", object{"index": 0, "delta": message, "finish_reason": nil}))
	last := base("chat.completion.chunk", object{"index": 0, "delta": object{}, "finish_reason": stop})
	last["usage"] = usage
	s.event("", last)
	if !s.gone {
		_, _ = io.WriteString(s.w, "data: [DONE]\n\n")
	}
}
