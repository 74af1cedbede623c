package run

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRepeatedRequestIsAnsweredAsBefore(t *testing.T) {
	t.Parallel()
	var q Requests[string]
	_, known, err := q.Recall("id", "pause")
	require.NoError(t, err)
	require.False(t, known)
	q.Remember("id", "pause", "paused")

	answer, known, err := q.Recall("id", "pause")
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, "paused", answer)

	_, known, err = q.Recall("id", "resume")
	require.True(t, known)
	require.EqualError(t, err, "repeat request id: it asked for something else before: use another request id")
	_, known, err = q.Recall("other", "resume")
	require.NoError(t, err)
	require.False(t, known)
}

func TestRequestsWithoutAnIDAreNotRemembered(t *testing.T) {
	t.Parallel()
	var q Requests[string]
	q.Remember("", "pause", "paused")
	require.Zero(t, q.Len())
	_, known, err := q.Recall("", "pause")
	require.NoError(t, err)
	require.False(t, known)
}

func TestTheLastThousandRequestsAreRemembered(t *testing.T) {
	t.Parallel()
	var q Requests[int]
	for i := range RequestMemory + 5 {
		q.Remember(fmt.Sprint(i), "x", i)
	}
	require.Equal(t, RequestMemory, q.Len())
	_, known, _ := q.Recall("4", "x")
	require.False(t, known)
	answer, known, _ := q.Recall("5", "x")
	require.True(t, known)
	require.Equal(t, 5, answer)
}

func TestRequestsOfOlderBrokersAreRead(t *testing.T) {
	t.Parallel()
	var q Requests[struct{}]
	require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `["%s.%s"]`, digest("id"), digest("reopen m")), &q))
	_, known, err := q.Recall("id", "reopen m")
	require.NoError(t, err)
	require.True(t, known)
	_, _, err = q.Recall("id", "reopen other")
	require.Error(t, err)
	require.Error(t, json.Unmarshal([]byte(`{}`), &q))
	require.Error(t, json.Unmarshal([]byte(`[5]`), &q))
}

// TestRequestsRememberAcrossCarrying compares random sequences, marshalled at every step, with a map.
func TestRequestsRememberAcrossCarrying(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := &Requests[int]{}
		model := map[string][2]string{}
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := rapid.StringMatching("[a-d]?").Draw(t, "id")
			what := rapid.SampledFrom([]string{"pause", "resume"}).Draw(t, "what")
			answer, known, err := q.Recall(id, what)
			before, had := model[id]
			require.Equal(t, had, known)
			require.Equal(t, had && before[0] != what, err != nil)
			if had && before[0] == what {
				require.Equal(t, before[1], fmt.Sprint(answer))
			}
			q.Remember(id, what, i)
			if !had && id != "" {
				model[id] = [2]string{what, fmt.Sprint(i)}
			}
			data, err := json.Marshal(q)
			require.NoError(t, err)
			q = &Requests[int]{}
			require.NoError(t, json.Unmarshal(data, q))
			require.Equal(t, len(model), q.Len())
		}
	})
}
