package workflows

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// Every signal that the documentation shows is a command of a run that exists,
// says the same for both clients, and has no field that nobody reads.
func TestDocumentedSignalsAreUnderstood(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "operations.md"))
	require.NoError(t, err)
	row := regexp.MustCompile("`temporal workflow signal -w remediation/RUN --name ([a-z-]+)(?: --input '([^']*)')?` \\| `tctl workflow signal -w remediation/RUN -n ([a-z-]+)(?: -i '([^']*)')?`")
	rows := row.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 10)
	known := map[string]bool{}
	for _, name := range []string{
		contract.CommandPause, contract.CommandResume, contract.CommandCancel, contract.CommandGateRetry, contract.CommandRecover, contract.CommandQuiesce,
		contract.CommandBudget, contract.CommandReconcile, contract.CommandPools, contract.CommandTriage, contract.CommandAnswer, contract.CommandPublishRetry,
		contract.CommandNodeClaim, contract.CommandNodeAccept, contract.CommandNodeRelease,
	} {
		known[name] = true
	}
	for _, r := range rows {
		require.Equal(t, r[1:3], r[3:5], "both clients send the same")
		require.True(t, known[r[1]], r[1])
		_, ok := decodeOperator(&commonpb.Payload{Data: []byte(r[2])})
		require.True(t, ok, r[0])
		if len(r[2]) > 0 && r[2][0] == '{' {
			strict := json.NewDecoder(bytes.NewReader([]byte(r[2])))
			strict.DisallowUnknownFields()
			var order contract.Operator
			require.NoError(t, strict.Decode(&order), r[0])
		}
	}
}
