package activities

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/quota"
)

// Events of a claude session.
const (
	eventLimited = `{"type":"result","subtype":"success","is_error":true,"result":"API Error: Rate limit reached","session_id":"s"}`
	eventOdd     = `{"type":"result","subtype":"error_during_execution","is_error":true,"result":"something odd","session_id":"s"}`
	eventDone    = `{"type":"result","subtype":"success","is_error":false,"result":"I repaired how rate limit reached is told","session_id":"s"}`
	eventTalk    = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Claude AI usage limit reached|1796049834"}]}}`
)

func speaking(speaks string) *launch {
	return &launch{
		Attempt: &Attempt{Now: time.Now, Local: time.UTC}, opened: &openRun{},
		pool: contract.Pool{Provider: contract.ProviderCommand, Options: map[string]string{"speaks": speaks}},
	}
}

func TestExitZeroIsNoSuccessWithAnErrorEventInTheStream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, speaks, stdout string
		complains            bool
	}{
		{"limit", "claude", eventTalk + "\n" + eventLimited + "\n", true},
		{"error of another kind", "claude", eventOdd + "\n", true},
		{"done", "claude", eventTalk + "\n" + eventDone + "\n", false},
		{"talk about limits", "claude", eventTalk + "\n", false},
		{"plain text", "claude", "Claude AI usage limit reached|1796049834\n", false},
		{"nothing", "claude", "", false},
		{"a program that is no agent", "", eventLimited + "\n", false},
		{"a program that is no agent, said so", "generic", eventLimited + "\n", false},
		{"cut in the middle", "claude", strings.Repeat("x", process.TailBytes-20) + eventTalk[:len(eventTalk)-1] + "\n", false},
	} {
		require.Equal(t, c.complains, speaking(c.speaks).complained(process.Result{Ended: process.EndExited, StdoutTail: c.stdout}), c.name)
	}
}

func TestVerdictReadsWhereTheProgramSpeaks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	failed := process.Result{Ended: process.EndExited, ExitCode: 1, LastStderrLines: []string{"boom", "API Error: 413 Payload Too Large"}}
	failed.StdoutTail = eventTalk + "\n" + eventLimited + "\n"
	require.Equal(t, quota.RateLimited, speaking("claude").verdict(failed, now).Outcome, "an agent's own event decides")
	require.Equal(t, quota.PacketTooLarge, speaking("").verdict(failed, now).Outcome, "another program's last stderr lines do")
	failed.StdoutTail = eventTalk + "\n"
	require.Equal(t, quota.PacketTooLarge, speaking("claude").verdict(failed, now).Outcome, "a stream that says nothing leaves it to stderr")
}
