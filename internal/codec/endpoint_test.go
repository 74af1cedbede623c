package codec

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

const ui = "http://127.0.0.1:8233"

// ask sends a request as the Web UI does.
func ask(t *testing.T, server, method, path, origin, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Namespace", "default")
	if origin != "" {
		request.Header.Set("Origin", origin)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, response.Body.Close()) })
	return response
}

func TestEndpointDecryptsForTheWebUI(t *testing.T) {
	t.Parallel()
	c := keys(t, newKey(t, "k1"))
	server := httptest.NewServer(c.Endpoint(ui))
	t.Cleanup(server.Close)
	sealed, err := c.Encode([]*commonpb.Payload{plain(`"hello"`)})
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: sealed})
	require.NoError(t, err)

	preflight := ask(t, server.URL, http.MethodOptions, "/decode", ui, "")
	require.Equal(t, http.StatusNoContent, preflight.StatusCode)
	require.Equal(t, ui, preflight.Header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, preflight.Header.Get("Access-Control-Allow-Headers"), "X-Namespace")
	require.Contains(t, preflight.Header.Get("Access-Control-Allow-Methods"), http.MethodPost)

	for _, origin := range []string{ui, ""} {
		answer := ask(t, server.URL, http.MethodPost, "/decode", origin, string(body))
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.Equal(t, origin, answer.Header.Get("Access-Control-Allow-Origin"))
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		var opened commonpb.Payloads
		require.NoError(t, protojson.Unmarshal(text, &opened))
		require.Equal(t, `"hello"`, string(opened.Payloads[0].Data))
	}
}

func TestEndpointRefusesOtherPagesAndOtherRequests(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(keys(t, newKey(t, "k1")).Endpoint(ui))
	t.Cleanup(server.Close)
	for _, method := range []string{http.MethodOptions, http.MethodPost} {
		foreign := ask(t, server.URL, method, "/decode", "http://elsewhere.example", `{"payloads":[]}`)
		require.Equal(t, http.StatusForbidden, foreign.StatusCode)
		require.Empty(t, foreign.Header.Get("Access-Control-Allow-Origin"))
	}
	require.Equal(t, http.StatusNotFound, ask(t, server.URL, http.MethodGet, "/decode", ui, "").StatusCode)
	require.Equal(t, http.StatusNotFound, ask(t, server.URL, http.MethodPost, "/keys", ui, "{}").StatusCode)
	require.Equal(t, http.StatusBadRequest, ask(t, server.URL, http.MethodPost, "/decode", ui, strings.Repeat("x", maxRequestBytes+1)).StatusCode)
	foreign := ask(t, server.URL, http.MethodPost, "/decode", ui,
		`{"payloads":[{"metadata":{"encoding":"YmluYXJ5L2VuY3J5cHRlZA==","encryption-key-id":"b3RoZXI="},"data":"eA=="}]}`)
	require.Equal(t, http.StatusBadRequest, foreign.StatusCode)
}
