package codec

import (
	"net/http"
	"slices"

	"go.temporal.io/sdk/converter"
)

// maxRequestBytes bounds a request: a page of a history in the Web UI, and the
// server's own bound of a message (4 MiB), as base64 in JSON.
const maxRequestBytes = 16 << 20

// Endpoint answers the Web UI and the temporal CLI, which ask it to decrypt what
// they show and to encrypt what they send (POST /decode and /encode of
// https://docs.temporal.io/codec-server). Browsers may use it from the given
// origins (scheme://host:port) only; what is no browser sends no Origin and is
// answered too, so the place where it listens decides who can ask.
func (c *Codec) Endpoint(origins ...string) http.Handler {
	answer := converter.NewPayloadCodecHTTPHandler(c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		w.Header().Add("Vary", "Origin")
		w.Header().Set("Cache-Control", "no-store")
		if origin != "" {
			if !slices.Contains(origins, origin) {
				http.Error(w, "this origin may not ask: see `starter codec serve --ui`", http.StatusForbidden)
				return
			}
			allow(w.Header(), origin)
		}
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxRequestBytes)
		answer.ServeHTTP(w, r)
	})
}

// allow says to a browser what the page of an origin may send: the Web UI names
// the namespace and may pass its user's token along.
func allow(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Content-Type, X-Namespace, Authorization, Authorization-Extras")
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Max-Age", "600")
}
