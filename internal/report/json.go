package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of the JSON rendering.
func Schema() []byte { return bytes.Clone(schema) }

// JSON renders the model in full, indented, with a newline at its end. It is the stored form.
func JSON(m Model) ([]byte, error) {
	m.fill()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return b.Bytes(), nil
}

// Parse reads what JSON wrote. Unknown fields are allowed; another version is an error.
func Parse(data []byte) (Model, error) {
	var m Model
	if err := json.Unmarshal(data, &m); err != nil {
		return Model{}, fmt.Errorf("parse report: %w", err)
	}
	if m.Version != Version {
		return Model{}, fmt.Errorf("parse report: version %d, this build reads version %d", m.Version, Version)
	}
	m.fill()
	return m, nil
}
