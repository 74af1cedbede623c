package claude

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

func TestReportTellsTheWindowsOfASubscription(t *testing.T) {
	t.Parallel()
	r := Provider{}.Read(provider.Request{})
	for _, line := range []string{
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","unifiedWindows":{"seven_day":{"utilization":0.4,"resetsAt":1796400000},"five_hour":{"utilization":0.91,"resetsAt":1796044305},"odd":{}}}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","unifiedWindows":{"five_hour":{"utilization":0.96,"resetsAt":1796044305}}}}`,
	} {
		require.Equal(t, process.Continue, r.Line(process.Stdout, []byte(line), false))
	}
	five, seven := time.Unix(1796044305, 0).UTC(), time.Unix(1796400000, 0).UTC()
	require.Equal(t, []contract.Window{
		{Name: "five_hour", UsedPermill: 960, ResetAt: &five},
		{Name: "seven_day", UsedPermill: 400, ResetAt: &seven},
	}, r.Report().Windows)
}
