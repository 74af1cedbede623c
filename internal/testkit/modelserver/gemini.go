package modelserver

import "strings"

// gemini is a request of generateContent or streamGenerateContent.
type gemini struct {
	path     string
	Contents []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text     string `json:"text"`
			Response *struct {
				Name string `json:"name"`
			} `json:"functionResponse"`
		} `json:"parts"`
	} `json:"contents"`
	Tools []struct {
		Functions []struct {
			Name       string `json:"name"`
			Parameters struct {
				Properties map[string]property `json:"properties"`
			} `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

func (r *gemini) ask() Ask {
	_, model, _ := strings.Cut(r.path, "/models/")
	model, _, _ = strings.Cut(model, ":")
	a := Ask{Wire: Gemini, Model: model}
	for _, t := range r.Tools {
		for _, f := range t.Functions {
			a.tools = append(a.tools, toolOffer{f.Name, f.Parameters.Properties})
		}
	}
	for _, c := range r.Contents {
		if c.Role == "model" {
			continue
		}
		results := 0
		var texts []string
		for _, p := range c.Parts {
			if p.Response != nil {
				results++
			} else if p.Text != "" {
				texts = append(texts, p.Text)
			}
		}
		if a.Results += results; results == 0 {
			a.Prompt, a.Results = strings.Join(texts, "\n"), 0
		}
	}
	return a
}

func (r *gemini) write(s *stream, t Turn) {
	part := object{"text": t.Text}
	if t.Tool != "" {
		part = object{"functionCall": object{"name": t.Tool, "args": t.Input}}
	}
	answer := object{
		"candidates":    []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": InputTokens, "candidatesTokenCount": OutputTokens, "totalTokenCount": InputTokens + OutputTokens},
		"modelVersion":  "fake",
	}
	if strings.Contains(r.path, ":generateContent") {
		s.whole(answer)
		return
	}
	s.event("", answer)
}
