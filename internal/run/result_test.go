package run

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func TestParseResultReadsTheDocumentedForm(t *testing.T) {
	t.Parallel()
	data := `{"items":[
		{"finding":"F-1","status":"resolved","evidence":["seen",{"command":"go test ./...","exit_code":0,"output_tail":"ok"}]},
		{"finding":"F-2","status":"needs_clarification","question":"which one?"},
		{"finding":"F-9","status":"resolved"}],"summary":"done"}` + "\n"
	r, friction, err := ParseResult([]byte("\ufeff"+data), []string{"F-1", "F-2"})
	require.NoError(t, err)
	require.Equal(t, Result{Summary: "done", Items: []ResultItem{
		{Finding: "F-1", Status: AnswerResolved, Evidence: []Evidence{
			{Text: "seen"}, {Command: plan.Command{Shell: "go test ./..."}, OutputTail: "ok"},
		}},
		{Finding: "F-2", Status: AnswerNeedsClarification, Question: "which one?"},
	}}, r)
	require.Equal(t, []contract.FrictionType{contract.FrictionUnknownFinding}, frictions(friction))
	require.Equal(t, "F-9", friction[0].Discriminator)
}

func TestParseResultRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"":                                  "it is empty",
		"  \n":                              "it is empty",
		"\xff":                              "it is not UTF-8",
		"done":                              "invalid character",
		"null":                              "it has no items",
		`{}`:                                "it has no items",
		`[]`:                                "cannot unmarshal array",
		`"x"`:                               "cannot unmarshal string",
		`{"items":[]} {}`:                   "something follows",
		`{"items":[],"verdict":1}`:          `unknown field "verdict"`,
		`{"items":[{"finding":"F-1"}]}`:     "items[0]: status of F-1 is missing",
		`{"items":[{"status":"resolved"}]}`: "items[0]: finding is missing",
		`{"items":[{"finding":"F-1","status":"fixed"}]}`:                                                     `status "fixed" of F-1 is unknown`,
		`{"items":[{"finding":"F-1","status":"resolved","files":[]}]}`:                                       `unknown field "files"`,
		`{"items":[{"finding":"F-1","status":"needs_clarification"}]}`:                                       "has no question",
		`{"items":[{"finding":"F-1","status":"resolved","evidence":[{}]}]}`:                                  "needs command and exit_code",
		`{"items":[{"finding":"F-1","status":"resolved","evidence":[{"command":"","exit_code":0}]}]}`:        "empty command",
		`{"items":[{"finding":"F-1","status":"resolved","evidence":[{"command":[""],"exit_code":0}]}]}`:      "empty command",
		`{"items":[{"finding":"F-1","status":"resolved","evidence":[{"command":"x","exit_code":0,"n":1}]}]}`: `unknown field "n"`,
		`{"items":[{"finding":"F-1","status":"blocked"},{"finding":"F-1","status":"resolved"}]}`:             "answered twice",
		`{"items":[],"summary":"` + strings.Repeat("x", MaxResultBytes) + `"}`:                               "bytes, more than",
	} {
		_, _, err := ParseResult([]byte(data), []string{"F-1"})
		require.ErrorContains(t, err, want, "%.80s", data)
		require.ErrorContains(t, err, "read result file: ")
	}
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"items":[{"finding":"F-1","status":"resolved","evidence":["x",{"command":["a"],"exit_code":1}]}],"summary":"s"}`))
	f.Add([]byte(`{"items":[{"finding":"F-2","status":"needs_clarification","question":"ü","reason":"\ud800"}]}`))
	f.Add([]byte("\ufeff{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, friction, err := ParseResult(data, []string{"F-1", "F-2"})
		if err != nil {
			require.Nil(t, r.Items)
			return
		}
		require.LessOrEqual(t, len(r.Items), 2)
		for _, item := range r.Items {
			require.Contains(t, []string{"F-1", "F-2"}, item.Finding)
			require.LessOrEqual(t, len(item.Reason), maxReason)
			require.True(t, utf8.ValidString(item.Reason) && utf8.ValidString(item.Question))
		}
		for _, fr := range friction {
			require.Equal(t, contract.FrictionUnknownFinding, fr.Type)
		}
		again, err := json.Marshal(r)
		require.NoError(t, err)
		back, none, err := ParseResult(again, []string{"F-1", "F-2"})
		if len(again) > MaxResultBytes {
			return
		}
		require.NoError(t, err)
		require.Empty(t, none)
		require.Equal(t, r, back)
	})
}
