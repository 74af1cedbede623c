package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestNotifications pauses and resumes a run whose receiver refuses every notice
// once: each change arrives, signed, and the run waits for none.
func TestNotifications(t *testing.T) {
	t.Parallel()
	const secret = "hook-secret-5b1c9a"
	var mu sync.Mutex
	refused, taken := map[string]bool{}, map[string]contract.Notice{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		var notice contract.Notice
		if err != nil || json.Unmarshal(body, &notice) != nil || r.Header.Get("Mendflow-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			t.Errorf("a notice that is not ours: %s %v", body, r.Header)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !refused[notice.ID] {
			refused[notice.ID] = true
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		taken[string(notice.Event)] = notice
	}))
	t.Cleanup(receiver.Close)
	lab := testkit.NewLab(t, testkit.LabOptions{Env: []string{"HOOK_SECRET=" + secret}})
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}}, More: map[string]any{
		"notify": []map[string]any{{"on": []string{"started", "paused", "closed"}, "webhook": receiver.URL, "secret_env": "HOOK_SECRET"}},
	}})
	lab.Control.Script(t, c.Run, "alpha", "tell working", "wait go", "mark alpha/work.txt", "result resolved")
	lab.Start(t, c)
	lab.Control.Await(t, c.Run, "working")
	lab.Client.OK(t, "pause", c.Run, "--reason", "night")
	lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)
	require.NoError(t, lab.Control.Tell(c.Run, "go"))
	lab.Client.OK(t, "resume", c.Run)
	require.Equal(t, contract.RunCompleted, lab.Client.AwaitClosed(t, c.Run).Status)
	testkit.Eventually(t, "every notice is taken", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(taken) == 3
	})
	require.Equal(t, contract.RunCompleted, taken["closed"].Status)
	require.Contains(t, taken["paused"].Holds[0].Lift, "starter resume "+c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
}
