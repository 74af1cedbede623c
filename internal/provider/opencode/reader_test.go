package opencode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/quota"
)

// The line of a real run in which the session's id made the whole of it unreadable for the classifier.
const retryLine = `timestamp=2026-11-30T17:19:16.735Z level=ERROR run=b42d0126 message="stream error" providerID=mendflow modelID=model-x ` +
	`session.id=ses_dd2885541ffeGX9i46wD51Nf3n small=false agent=build mode=primary error.error="AI_APICallError: Rate limit reached for model-x. Please try again later."`

func TestARetryIsReadWithoutTheIDsAroundIt(t *testing.T) {
	t.Parallel()
	r := Provider{}.Read(provider.Request{})
	require.Equal(t, process.Continue, r.Line(process.Stderr, []byte(`timestamp=x level=WARN message="slow"`), false))
	require.Equal(t, process.Stop, r.Line(process.Stderr, []byte(retryLine), false))
	report := r.Report()
	require.Equal(t, "AI_APICallError: Rate limit reached for model-x. Please try again later.", report.Told)
	require.Equal(t, "ses_dd2885541ffeGX9i46wD51Nf3n", report.Session)
	v := report.Verdict(Provider{}.About(), quota.Launch{ObservedAt: time.Now()})
	require.Equal(t, quota.RateLimited, v.Outcome)
}
