package activities

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

const hookSecret = "hook-secret-51f0c2"

// notifyFlow is an opened run whose plan names the receivers.
func notifyFlow(t *testing.T, receivers ...plan.Notification) (*flow, *Publication) {
	t.Helper()
	f := newFlow(t, "true")
	p, faults := plan.Parse("plan.yaml", []byte(flowPlan))
	require.NoError(t, faults.Err())
	p.Notify, p.Env = receivers, []string{"HOOK_TARGET"}
	f.in.Plan = f.put("plan.json", p)
	f.host.Environ = func() []string {
		return append(os.Environ(), "HOOK_SECRET="+hookSecret, "HOOK_TARGET=desk", "OTHER_SECRET=keep-me-out")
	}
	return f.open(), &Publication{Host: f.host, Now: time.Now}
}

func (f *flow) notice(receiver int) contract.NotificationInput {
	return contract.NotificationInput{Config: f.opened.Config, Receiver: receiver, Notice: contract.Notice{
		Version: 1, ID: "r/2", Event: plan.NotifyPaused, Run: "r", Status: contract.RunPaused, Reason: "night",
		Holds: []contract.Hold{{Kind: contract.HoldOperator, Reason: "night", Lift: "starter resume r"}},
	}}
}

func TestOpenRunTellsWhatReceiversWantToHear(t *testing.T) {
	t.Parallel()
	f, _ := notifyFlow(t, plan.Notification{On: []plan.NotifyOn{plan.NotifyClosed}, Webhook: "http://x"}, plan.Notification{On: []plan.NotifyOn{plan.NotifyPaused}, Webhook: "http://y"})
	require.Equal(t, [][]plan.NotifyOn{{plan.NotifyClosed}, {plan.NotifyPaused}}, f.opened.Notify)
}

func TestWebhookIsSigned(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	t.Cleanup(receiver.Close)
	f, a := notifyFlow(t,
		plan.Notification{Webhook: receiver.URL + "/hook/x?y=1", SecretEnv: "HOOK_SECRET"},
		plan.Notification{Webhook: receiver.URL},
		plan.Notification{Webhook: receiver.URL, SecretEnv: "HOOK_SECRET_2"})
	must[any](f, a.Notify, f.notice(0))
	require.Equal(t, "/hook/x?y=1", got.URL.String())
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, "paused", got.Header.Get("Mendflow-Event"))
	require.Equal(t, "r/2", got.Header.Get("Mendflow-Delivery"))
	require.Equal(t, sign(hookSecret, body), got.Header.Get("Mendflow-Signature"))
	require.NotEqual(t, sign("another", body), got.Header.Get("Mendflow-Signature"))
	var notice contract.Notice
	require.NoError(t, json.Unmarshal(body, &notice))
	require.Equal(t, f.notice(0).Notice, notice)

	must[any](f, a.Notify, f.notice(1))
	require.Empty(t, got.Header.Get("Mendflow-Signature"))
	_, err := call[any](f, a.Notify, f.notice(2))
	require.ErrorContains(t, err, "HOOK_SECRET_2 is not set in the environment of the worker")
	_, err = call[any](f, a.Notify, f.notice(3))
	require.ErrorContains(t, err, contract.ErrorInvalidPlan)
}

func TestSignatureIsWhatOthersCompute(t *testing.T) {
	t.Parallel()
	// printf '{"a":1}' | openssl dgst -sha256 -hmac key
	require.Equal(t, "sha256=88a67f24bbcdaed0e6c997404bb79a743baf44c6bab2f4c27328e3009d22e342", sign("key", []byte(`{"a":1}`)))
}

func TestReceiversThatFailAreErrors(t *testing.T) {
	t.Parallel()
	var calls, elsewhere atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/down", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "closed for lunch", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	receiver := httptest.NewServer(mux)
	t.Cleanup(receiver.Close)
	gone := httptest.NewServer(mux)
	gone.Close()
	f, a := notifyFlow(t,
		plan.Notification{Webhook: receiver.URL + "/down"}, plan.Notification{Webhook: receiver.URL + "/moved"},
		plan.Notification{Webhook: receiver.URL + "/hangs"}, plan.Notification{Webhook: gone.URL + "/secret-path"})
	a.HTTP = &http.Client{Timeout: answerLimit}
	for i, want := range []string{"it answers 503 Service Unavailable: closed for lunch", "it answers 307", "call webhook: ", "connection refused"} {
		_, err := call[any](f, a.Notify, f.notice(i))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret-path", "addresses of webhooks are secrets")
	}
	require.Equal(t, int64(1), calls.Load())
	require.Zero(t, elsewhere.Load(), "no redirect is followed")
}

func TestCommandHookGetsTheNotice(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	hook := plan.Command{Shell: "{ cat; echo; echo $MENDFLOW_EVENT $MENDFLOW_RUN $MENDFLOW_STATUS $HOOK_TARGET $OTHER_SECRET end; pwd; } > " + out}
	f, a := notifyFlow(t, plan.Notification{Command: &hook},
		plan.Notification{Command: &plan.Command{Argv: []string{"sh", "-c", "echo no desk >&2; exit 3"}}},
		plan.Notification{Command: &plan.Command{Argv: []string{"no-such-program"}}})
	must[any](f, a.Notify, f.notice(0))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	body, err := json.Marshal(f.notice(0).Notice)
	require.NoError(t, err)
	require.Contains(t, string(text), string(body)+"\npaused r paused desk end\n", "the plan's own variables, and no others")
	require.Contains(t, string(text), filepath.Join(f.host.StateDir, "tmp", "notify-"))
	left, err := filepath.Glob(filepath.Join(f.host.StateDir, "tmp", "notify-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = call[any](f, a.Notify, f.notice(1))
	require.ErrorContains(t, err, "exit status 3: no desk")
	_, err = call[any](f, a.Notify, f.notice(2))
	require.ErrorContains(t, err, "program not found")
}
