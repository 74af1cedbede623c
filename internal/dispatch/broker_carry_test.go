package dispatch

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
)

// TestBrokerContinuesAsNewAtAnyMoment plays the same random story to two
// brokers, one of which is written and read back after every step.
func TestBrokerContinuesAsNewAtAnyMoment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now, seqs := t0, map[string]int{}
		one, two := NewBroker("x"), NewBroker("x")
		both := func(do func(*Broker) []Push) {
			a, err := json.Marshal(do(one))
			require.NoError(t, err)
			b, err := json.Marshal(do(two))
			require.NoError(t, err)
			require.Equal(t, string(a), string(b))
			text, err := json.Marshal(two)
			require.NoError(t, err)
			two = &Broker{}
			require.NoError(t, json.Unmarshal(text, two))
			require.True(t, one.Wake().Equal(two.Wake()))
		}
		t.Repeat(map[string]func(*rapid.T){
			"message": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 90_000).Draw(t, "ms")) * time.Millisecond)
				m := drawMessage(t, one, seqs, now)
				both(func(b *Broker) []Push { return b.Apply(m, now) })
			},
			"tick": func(*rapid.T) {
				now = later(now, one.Wake())
				both(func(b *Broker) []Push { return b.Tick(now) })
			},
			"gone": func(t *rapid.T) {
				id := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "holder")
				both(func(b *Broker) []Push { return b.HolderGone(id, now) })
			},
			"window": func(t *rapid.T) {
				reset := now.Add(time.Minute)
				facts := []contract.Window{{Name: "w", UsedPermill: rapid.IntRange(900, 1000).Draw(t, "used"), ResetAt: &reset}}
				both(func(b *Broker) []Push { return b.Observe("", facts, now) })
			},
			"reopen": func(t *rapid.T) {
				id := rapid.StringN(1, 1, 1).Draw(t, "request")
				both(func(b *Broker) []Push { pushes, _ := b.Reopen(id, "", now); return pushes })
			},
		})
	})
}

func drawMessage(t *rapid.T, b *Broker, seqs map[string]int, now time.Time) contract.Tickets {
	holder := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "holder")
	seqs[holder]++
	m := ask(holder, seqs[holder], fmt.Sprint(holder, seqs[holder]))
	m.Reserve[0].Priority = rapid.IntRange(0, 1).Draw(t, "priority")
	m.Reserve[0].Model = rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model")
	outcomes := []contract.Outcome{contract.OutcomeSuccess, contract.OutcomeRateLimited, contract.OutcomeOverloaded, contract.OutcomeAuthFailed, contract.OutcomeError}
	for _, ticket := range b.state.Tickets {
		if ticket.Holder == holder && ticket.alive() && rapid.Bool().Draw(t, "ends") {
			m.Settle = append(m.Settle, ended(ticket.ID, rapid.SampledFrom(outcomes).Draw(t, "outcome"), now))
		}
	}
	return m
}
