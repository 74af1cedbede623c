package run

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
)

func answer(state contract.PublishState) contract.PublishEnd {
	return contract.PublishEnd{State: state, Detail: "said"}
}

// drivePublication carries a publication out on answers and returns its waits and the number of tries and looks.
func drivePublication(p *Publication, answers func(look bool) contract.PublishEnd) (waits []time.Duration, tries, looks int) {
	now := noon
	for {
		switch step, at := p.Next(now); step {
		case PublishDone:
			return waits, tries, looks
		case PublishWait:
			waits = append(waits, at.Sub(now))
			now = at
		case PublishTry, PublishLook:
			p.Begin()
			if step == PublishLook {
				looks++
			} else {
				tries++
			}
			p.Answer(answers(step == PublishLook), now)
		}
	}
}

func TestFiveTriesThenExhausted(t *testing.T) {
	t.Parallel()
	p := NewPublication("push")
	waits, tries, looks := drivePublication(p, func(bool) contract.PublishEnd { return answer(contract.PublishRetryable) })
	require.Equal(t, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}, waits)
	require.Equal(t, 5, tries)
	require.Zero(t, looks, "nothing is to be looked for: the answers were clear")
	require.Equal(t, contract.PublicationView{Action: "push", State: contract.PublishExhausted, Attempts: 5, Detail: "said"}, p.View)
}

func TestAnUnclearLastAnswerIsLookedUp(t *testing.T) {
	t.Parallel()
	for _, found := range []contract.PublishState{contract.PublishSucceeded, contract.PublishFailed, contract.PublishRetryable, contract.PublishUncertain} {
		p := NewPublication("pull-request")
		waits, tries, looks := drivePublication(p, func(look bool) contract.PublishEnd {
			if look {
				return answer(found)
			}
			return answer(contract.PublishUncertain)
		})
		require.Equal(t, 5, tries)
		require.Equal(t, 1, looks)
		require.Len(t, waits, 5)
		want := found
		if !found.Over() {
			want = contract.PublishExhausted
		}
		require.Equal(t, want, p.View.State)
	}
}

func TestAskedWaitCountsWithinBounds(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]time.Duration{1: time.Second, 90: 90 * time.Second, 3600: time.Hour, 1 << 40: time.Hour, 0: 2 * time.Second, -5: 2 * time.Second} {
		p := NewPublication("push")
		p.Begin()
		p.Answer(contract.PublishEnd{State: contract.PublishRetryable, RetryAfter: seconds}, noon)
		step, at := p.Next(noon)
		require.Equal(t, PublishWait, step)
		require.Equal(t, want, at.Sub(noon), "%d", seconds)
		p.Hurry()
		step, _ = p.Next(noon)
		require.Equal(t, PublishTry, step)
	}
}

func TestALostTryIsUncertainAndCounts(t *testing.T) {
	t.Parallel()
	p := NewPublication("merge")
	p.Begin()
	require.Equal(t, contract.PublishInFlight, p.View.State)
	p.Lost("the host died", noon)
	require.Equal(t, contract.PublishUncertain, p.View.State)
	require.Equal(t, 1, p.View.Attempts)
	step, _ := p.Next(noon.Add(2 * time.Second))
	require.Equal(t, PublishTry, step)
}

// TestPublicationEnds: whatever the answers, there are at most five tries and one
// look, every wait is within bounds, and a state that is over stays. The state
// survives being stored in between.
func TestPublicationEnds(t *testing.T) {
	t.Parallel()
	states := []contract.PublishState{contract.PublishRetryable, contract.PublishUncertain, contract.PublishFailed, contract.PublishSucceeded}
	rapid.Check(t, func(t *rapid.T) {
		p := NewPublication("pull-request")
		var said contract.PublishEnd
		waits, tries, looks := drivePublication(p, func(bool) contract.PublishEnd {
			said = contract.PublishEnd{State: rapid.SampledFrom(states).Draw(t, "state"), RetryAfter: rapid.IntRange(-1, 1<<30).Draw(t, "after")}
			data, err := json.Marshal(p)
			require.NoError(t, err)
			back := new(Publication)
			require.NoError(t, json.Unmarshal(data, back))
			require.Equal(t, p, back)
			*p = *back
			return said
		})
		require.LessOrEqual(t, tries, 5)
		require.LessOrEqual(t, looks, 1)
		require.Equal(t, tries, p.View.Attempts)
		for _, w := range waits {
			require.GreaterOrEqual(t, w, time.Second)
			require.LessOrEqual(t, w, time.Hour)
		}
		require.True(t, p.View.State.Over())
		require.Nil(t, p.View.Until)
		require.Equal(t, said.State == contract.PublishSucceeded, p.View.State == contract.PublishSucceeded)
		require.Equal(t, said.State == contract.PublishFailed, p.View.State == contract.PublishFailed)
	})
}

func TestPullRequestsAreJudgedByOurMark(t *testing.T) {
	t.Parallel()
	const head = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	ours := "text\n\n" + PublishMark("r.g2", head)
	for name, c := range map[string]struct {
		found  []Request
		state  contract.PublishState
		detail string
	}{
		"none":                       {nil, "", ""},
		"ours, open":                 {[]Request{{Name: "#1", Body: ours, Open: true}}, contract.PublishSucceeded, "#1 is open"},
		"ours, merged":               {[]Request{{Name: "#1", Body: ours, Merged: true}}, contract.PublishSucceeded, "#1 is merged"},
		"ours, closed":               {[]Request{{Name: "#1", Body: ours}}, contract.PublishFailed, "#1 was closed without being merged"},
		"ours, closed and reopened":  {[]Request{{Name: "#1", Body: ours}, {Name: "#2", Body: ours, Open: true}}, contract.PublishSucceeded, "#2 is open"},
		"another head":               {[]Request{{Name: "#1", Body: PublishMark("r.g2", "bb"), Open: true}}, contract.PublishFailed, "#1 is open for an earlier state"},
		"another head, over":         {[]Request{{Name: "#1", Body: PublishMark("r.g2", "bb"), Merged: true}}, "", ""},
		"another run":                {[]Request{{Name: "#1", Body: PublishMark("r", head), Open: true}}, contract.PublishFailed, "not of this run"},
		"somebody's":                 {[]Request{{Name: "#1", Body: "hello", Open: true}}, contract.PublishFailed, "not of this run"},
		"somebody's, over":           {[]Request{{Name: "#1", Body: "hello", Merged: true}}, "", ""},
		"a text that quotes another": {[]Request{{Name: "#1", Body: PublishMark("r", head) + ours, Open: true}}, contract.PublishSucceeded, "#1 is open"},
	} {
		end, ok := JudgeRequests("r.g2", head, c.found)
		require.Equal(t, c.state != "", ok, name)
		require.Equal(t, c.state, end.State, name)
		require.Contains(t, end.Detail, c.detail, name)
	}
}
