package provider

import (
	"bytes"
	"encoding/json"
	"strings"
)

// ResultBlock finds the JSON object in a program's last message that may be its
// result: the last fenced block that holds one, else the message itself. What it
// says is validated like a result file.
func ResultBlock(message string) ([]byte, bool) {
	var found []byte
	var block strings.Builder
	fence := ""
	for line := range strings.Lines(message) {
		text := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")):
			fence = text[:len(text)-len(strings.TrimLeft(text, text[:1]))]
			block.Reset()
		case fence != "" && strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]) == "":
			fence = ""
			if object, ok := resultObject(block.String()); ok {
				found = object
			}
		case fence != "":
			block.WriteString(line)
		}
	}
	if fence != "" { // the message was cut, or the fence forgotten
		if object, ok := resultObject(block.String()); ok {
			found = object
		}
	}
	if found == nil {
		found, _ = resultObject(message)
	}
	return found, found != nil
}

// resultObject accepts an object with items.
func resultObject(text string) ([]byte, bool) {
	data := bytes.TrimSpace([]byte(text))
	var probe struct {
		Items json.RawMessage `json:"items"`
	}
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &probe) != nil || probe.Items == nil {
		return nil, false
	}
	return data, true
}
