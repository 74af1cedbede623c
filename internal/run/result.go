package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Bounds of a worker's result file.
const (
	MaxResultBytes = 1 << 20
	maxReason      = 500  // contract.ItemResult
	maxQuestion    = 1000 // contract.ItemResult
	maxSummary     = 2000
	maxEvidence    = 20 // pieces per finding
	maxEvidenceLen = 4096
)

// ItemAnswer is the status that a worker may claim for a finding.
type ItemAnswer string

// Answers of a worker.
const (
	AnswerResolved           ItemAnswer = "resolved"
	AnswerNoChange           ItemAnswer = "no_change"
	AnswerBlocked            ItemAnswer = "blocked"
	AnswerNeedsClarification ItemAnswer = "needs_clarification"
)

// Result is a worker's valid result file (landing.md).
type Result struct {
	Items   []ResultItem `json:"items"`
	Summary string       `json:"summary,omitempty"`
}

// ResultItem is a worker's answer for one finding of its node.
type ResultItem struct {
	Finding  string     `json:"finding"`
	Status   ItemAnswer `json:"status"`
	Evidence []Evidence `json:"evidence,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Question string     `json:"question,omitempty"`
}

// Evidence is a command with what it gave, or a text; in the file an object or a string.
type Evidence struct {
	Text       string
	Command    plan.Command // zero: the evidence is a text
	ExitCode   int
	OutputTail string
}

// Executable reports whether the evidence can be tried again.
func (e Evidence) Executable() bool { return e.Command.Shell != "" || len(e.Command.Argv) > 0 }

type wireEvidence struct {
	Command    *plan.Command `json:"command"`
	ExitCode   *int          `json:"exit_code"`
	OutputTail string        `json:"output_tail,omitempty"`
}

// MarshalJSON writes what UnmarshalJSON reads.
func (e Evidence) MarshalJSON() ([]byte, error) {
	if !e.Executable() {
		return json.Marshal(e.Text)
	}
	return json.Marshal(wireEvidence{&e.Command, &e.ExitCode, e.OutputTail})
}

// UnmarshalJSON reads a string, or an object with a command and its exit code.
func (e *Evidence) UnmarshalJSON(data []byte) error {
	*e = Evidence{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &e.Text)
	}
	var w wireEvidence
	if err := decodeStrict(data, &w); err != nil {
		return err
	}
	if w.Command == nil || w.ExitCode == nil {
		return errors.New("evidence needs command and exit_code, or is a text")
	}
	e.Command, e.ExitCode, e.OutputTail = *w.Command, *w.ExitCode, w.OutputTail
	if !e.Executable() || len(e.Command.Argv) > 0 && e.Command.Argv[0] == "" {
		return errors.New("evidence names an empty command")
	}
	return nil
}

// ParseResult reads a worker's result file for a node with these findings. It is
// strict: anything that is not exactly the documented form is an error, which
// says what, so that the next attempt's prompt can. Findings that the node does
// not have are friction, and their answers are dropped.
func ParseResult(data []byte, findings []string) (Result, []contract.Friction, error) {
	fail := func(err error) (Result, []contract.Friction, error) {
		return Result{}, nil, fmt.Errorf("read result file: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > MaxResultBytes:
		return fail(fmt.Errorf("it has %d bytes, more than %d", len(data), MaxResultBytes))
	case len(bytes.TrimSpace(data)) == 0:
		return fail(errors.New("it is empty"))
	case !utf8.Valid(data):
		return fail(errors.New("it is not UTF-8"))
	}
	var w struct {
		Items   *[]ResultItem `json:"items"`
		Summary string        `json:"summary"`
	}
	if err := decodeStrict(data, &w); err != nil {
		return fail(err)
	}
	if w.Items == nil {
		return fail(errors.New("it has no items"))
	}
	r := Result{Items: []ResultItem{}, Summary: cut(w.Summary, maxSummary)}
	var friction []contract.Friction
	for i, item := range *w.Items {
		if err := checkItem(&item); err != nil {
			return fail(fmt.Errorf("items[%d]: %w", i, err))
		}
		if !slices.Contains(findings, item.Finding) {
			friction = append(friction, contract.Friction{
				Type: contract.FrictionUnknownFinding, Discriminator: cut(item.Finding, maxDiscriminator), Severity: "info",
				Note: "a worker's result names a finding that its node does not have",
			})
			continue
		}
		if slices.ContainsFunc(r.Items, func(o ResultItem) bool { return o.Finding == item.Finding }) {
			return fail(fmt.Errorf("items[%d]: %s is answered twice", i, item.Finding))
		}
		r.Items = append(r.Items, item)
	}
	return r, friction, nil
}

// decodeStrict decodes one JSON value without unknown fields and without anything after it.
func decodeStrict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// checkItem validates an answer and cuts its texts to their bounds.
func checkItem(item *ResultItem) error {
	if item.Finding == "" {
		return errors.New("finding is missing")
	}
	switch item.Status {
	case AnswerResolved, AnswerNoChange, AnswerBlocked:
	case AnswerNeedsClarification:
		if strings.TrimSpace(item.Question) == "" {
			return fmt.Errorf("%s needs clarification but has no question", item.Finding)
		}
	case "":
		return fmt.Errorf("status of %s is missing", item.Finding)
	default:
		return fmt.Errorf("status %q of %s is unknown: want resolved, no_change, blocked or needs_clarification",
			cut(string(item.Status), 40), item.Finding)
	}
	if len(item.Evidence) > maxEvidence {
		return fmt.Errorf("%s has %d pieces of evidence, more than %d", item.Finding, len(item.Evidence), maxEvidence)
	}
	item.Reason, item.Question = cut(item.Reason, maxReason), cut(item.Question, maxQuestion)
	for i := range item.Evidence {
		item.Evidence[i].Text = cut(item.Evidence[i].Text, maxEvidenceLen)
		item.Evidence[i].OutputTail = cut(item.Evidence[i].OutputTail, maxEvidenceLen)
	}
	return nil
}

// cut keeps the first n bytes of s, at a rune border.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
