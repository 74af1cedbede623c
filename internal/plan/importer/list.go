package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/plan"
)

// listItem is a finding of a plain list. Several names are taken for the same
// thing, since every tool has its own.
type listItem struct {
	ID          string          `json:"id"`
	Tool        string          `json:"tool"`
	Rule        string          `json:"rule"`
	Title       string          `json:"title"`
	Message     string          `json:"message"`
	Summary     string          `json:"summary"`
	Description string          `json:"description"`
	Severity    string          `json:"severity"`
	Level       string          `json:"level"`
	Confidence  string          `json:"confidence"`
	Lens        string          `json:"lens"`
	Category    string          `json:"category"`
	Themes      []string        `json:"themes"`
	Path        string          `json:"path"`
	File        string          `json:"file"`
	Line        int             `json:"line"`
	LineStart   int             `json:"line_start"`
	LineEnd     int             `json:"line_end"`
	Files       json.RawMessage `json:"files"`
	Evidence    json.RawMessage `json:"evidence"`
}

type listFile struct {
	Path      string `json:"path"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	LineStart int    `json:"line_start"`
	LineEnd   int    `json:"line_end"`
}

func readList(data []byte, o Options) (Input, error) {
	var items []json.RawMessage
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		var file struct {
			Findings []json.RawMessage `json:"findings"`
		}
		if err := json.Unmarshal(trimmed, &file); err != nil {
			return Input{}, fmt.Errorf("read list: %w", err)
		}
		items = file.Findings
	} else if err := json.Unmarshal(data, &items); err != nil {
		return Input{}, fmt.Errorf("read list: %w", err)
	}
	var in Input
	for i, item := range items {
		raw, notes, err := readItem(item, o)
		if err != nil {
			return Input{}, fmt.Errorf("read list: findings[%d]: %w", i, err)
		}
		for _, n := range notes {
			in.Notes = append(in.Notes, Note{Where: fmt.Sprintf("findings[%d]", i), Text: n})
		}
		in.Findings = append(in.Findings, raw)
	}
	return in, nil
}

func readItem(data json.RawMessage, o Options) (Raw, []string, error) {
	var item listItem
	if err := json.Unmarshal(data, &item); err != nil {
		return Raw{}, nil, err
	}
	raw := Raw{
		ID: item.ID, Tool: item.Tool, Rule: item.Rule, Title: first(item.Title, firstLine(item.Message)),
		Summary:  first(item.Summary, item.Description, item.Message),
		Severity: severityOf(first(item.Severity, item.Level)), Confidence: confidenceOf(item.Confidence), Lens: lensOf(first(item.Lens, item.Category)),
	}
	if strings.TrimSpace(raw.Title+raw.Summary) == "" {
		return Raw{}, nil, errors.New("it has neither title nor message")
	}
	if raw.Title == raw.Summary {
		raw.Summary = ""
	}
	var notes []string
	if word := first(item.Severity, item.Level); word != "" && raw.Severity == "" {
		notes = append(notes, fmt.Sprintf("the severity %q is unknown: taken for medium", clip(word, 40)))
	}
	if raw.ID != "" && plan.CheckID(raw.ID) != nil {
		notes = append(notes, fmt.Sprintf("the id %q cannot be used: another is made", clip(raw.ID, 80)))
		raw.Rule, raw.ID = first(raw.Rule, raw.ID), ""
	}
	for _, t := range item.Themes {
		if t = oneLine(t, 60); t != "" && !slices.Contains(raw.Themes, t) {
			raw.Themes = append(raw.Themes, t)
		}
	}
	var err error
	if raw.Evidence, err = textsOf(item.Evidence); err != nil {
		return Raw{}, nil, fmt.Errorf("evidence: %w", err)
	}
	files, err := filesOf(item)
	if err != nil {
		return Raw{}, nil, err
	}
	for _, f := range files {
		place, err := f.place(o)
		if err != nil {
			notes = append(notes, fmt.Sprintf("the place %q is refused: %v", clip(first(f.Path, f.File), 120), err))
		} else if !slices.Contains(raw.Files, place) {
			raw.Files = append(raw.Files, place)
		}
	}
	return raw, notes, nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}

// filesOf are the places of an item: its own path, and its files, each a text or an object.
func filesOf(item listItem) ([]listFile, error) {
	var files []listFile
	if p := first(item.Path, item.File); p != "" {
		files = append(files, listFile{Path: p, LineStart: max(item.Line, item.LineStart), LineEnd: item.LineEnd})
	}
	if len(item.Files) == 0 || string(item.Files) == "null" {
		return files, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(item.Files, &list); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	for i, entry := range list {
		var f listFile
		if err := json.Unmarshal(entry, &f.Path); err != nil {
			f = listFile{}
			if err := json.Unmarshal(entry, &f); err != nil {
				return nil, fmt.Errorf("files[%d]: %w", i, err)
			}
		}
		files = append(files, f)
	}
	return files, nil
}

func (f listFile) place(o Options) (plan.Location, error) {
	path, err := inside(first(f.Path, f.File), o.Root, false)
	if err != nil {
		return plan.Location{}, err
	}
	place := plan.Location{Path: path, LineStart: max(f.Line, f.LineStart, 0), LineEnd: max(f.LineEnd, 0)}
	if place.LineStart == 0 || place.LineEnd < place.LineStart {
		place.LineEnd = 0
	}
	return place, nil
}

// textsOf reads a text or a list of texts.
func textsOf(data json.RawMessage) ([]string, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(data, &one) == nil {
		one = clip(clean(one), maxSummary)
		if strings.TrimSpace(one) == "" {
			return nil, nil
		}
		return []string{one}, nil
	}
	var all []string
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = clip(clean(all[i]), maxSummary)
	}
	return all, nil
}
