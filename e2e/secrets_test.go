package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// leaked is a secret without a known look, with characters that encodings change.
const leaked = "s3cr3t/of+the=house 4711"

// leakingWorker prints and writes $S wherever a worker can, in every shape.
const leakingWorker = `
S=${LEAK_SECRET:-$(cat "$1/secret")}
encode() { printf '%s' "$1" | sed 's,%,%25,g; s,/,%2F,g; s,+,%2B,g; s,=,%3D,g; s, ,%20,g'; }
every_shape() {
  echo "plain: $S"
  echo "base64: $(printf '%s' "$S" | base64)"
  echo "inside base64: $(printf 'user:%s' "$S" | base64) $(printf 'ab%s' "$S" | base64)"
  echo "url: https://example.com/?key=$(encode "$S")"
  echo "percent: $(printf '%s' "$S" | od -An -v -tx1 | tr -d '\n' | tr ' ' '%')"
  echo "hex: $(printf '%s' "$S" | od -An -v -tx1 | tr -d ' \n')"
  printf 'coloured: \033[1m%s\033[31m%s\033[0m\n' "${S%% *}" " ${S#* }"
  printf 'in two: %s' "${S%% *}"; sleep 0.3; printf ' %s\n' "${S#* }"
}
answer() { printf '{"items":[%s],"summary":"I used %s"}' "$1" "$S" >"$MENDFLOW_RESULT"; }
case $MENDFLOW_NODE in
prints) every_shape; every_shape >&2; echo "mark prints" >prints/work.txt; answer '{"finding":"F-prints","status":"resolved"}' ;;
reasons) answer '{"finding":"F-reasons","status":"blocked","reason":"the key '"$S"' is refused"}' ;;
asks) answer '{"finding":"F-asks","status":"needs_clarification","question":"is '"$S"' right?"}' ;;
claims) answer '{"finding":"F-claims","status":"no_change","evidence":[{"command":["echo","'"$S"'"],"exit_code":0,"output_tail":"'"$S"'"},"it says '"$S"'"]}' ;;
breaks) answer '{"finding":"F-breaks","status":"'"$S"'"}' ;;
invents) answer '{"finding":"'"$S"'","status":"resolved"}'; echo "mark invents" >invents/work.txt ;;
fails) echo "fatal: cannot log in with $S" >&2; exit 3 ;;
writes) echo "$S" >writes/work.txt ;;
speaks) printf '{"type":"system","subtype":"init","session_id":"%s"}\n' "$S"; sleep 2
  printf '{"type":"result","subtype":"error_during_execution","is_error":true,"result":"API Error: %s","session_id":"%s"}\n' "$S" "$S"; exit 1 ;;
esac
`

// TestSecretsAreFoundNowhere lets workers leak a secret of their pool wherever
// they can, and looks for it in all that Mendflow keeps and says. The control
// comes first: where masking does not know the secret, the same search finds it
// in each kind of place.
func TestSecretsAreFoundNowhere(t *testing.T) {
	t.Parallel()
	if os.Getenv("MENDFLOW_TEST_POSTGRES") != "" {
		t.Skip("the test looks into the file of a SQLite database")
	}
	t.Run("control without masking", func(t *testing.T) {
		t.Parallel()
		found := leak(t, false)
		for _, kind := range []string{"database", "artifacts", "worker.log", "verify log", "prompt", "report", "explain", "logs", "status", "commit"} {
			require.Contains(t, found, kind, "the search does not find what is there")
		}
	})
	t.Run("masked", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, leak(t, true))
	})
}

// leak runs the leaking workers and returns where their secret was found.
func leak(t *testing.T, masked bool) []string {
	t.Helper()
	lab, c := leakingLab(t, masked)
	lab.Start(t, c)
	v := lab.Client.AwaitClosed(t, c.Run)
	require.Equal(t, contract.RunBlocked, v.Status, v.Reason)
	testkit.CheckInvariants(t, lab.Scene(c))

	said := map[string][]byte{
		"status":  []byte(lab.Client.OK(t, "status", c.Run, "--json")),
		"nodes":   []byte(lab.Client.OK(t, "nodes", c.Run, "--json")),
		"report":  []byte(lab.Client.OK(t, "report", c.Run) + lab.Client.OK(t, "report", c.Run, "--format", "json")),
		"host":    []byte(lab.Host.Output()),
		"server":  []byte(lab.Server.Output()),
		"commit":  []byte(c.Repo.Git(t, "log", "--format=%B", "main.."+contract.TruthRef(c.Run))),
		"explain": nil, "logs": nil,
	}
	for _, n := range c.Plan.Nodes {
		said["explain"] = append(said["explain"], lab.Client.OK(t, "explain", c.Run, n.ID)...)
		said["logs"] = append(said["logs"], lab.Client.OK(t, "logs", c.Run, n.ID)...)
	}
	require.NoError(t, lab.Close()) // the database is whole now
	found := map[string]bool{}
	for place, data := range said {
		found[place] = holds(data)
	}
	search := func(kind, root string) {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil && holds(data) {
				found[kind] = true
				switch name := filepath.Base(path); {
				case name == "worker.log" || name == "prompt.md":
					found[strings.TrimSuffix(name, ".md")] = true
				case strings.HasPrefix(name, "verify-"):
					found["verify log"] = true
				}
				if masked {
					t.Logf("found in %s", path)
				}
			}
			return err
		}))
	}
	search("artifacts", filepath.Join(lab.Host.State, "artifacts"))
	for _, file := range []string{"server.db", "server.db-wal"} {
		if _, err := os.Stat(filepath.Join(lab.Dir, file)); err == nil {
			search("database", filepath.Join(lab.Dir, file))
		}
	}
	// The folders of attempts hold what the worker itself was given and wrote: of them the prompts only.
	prompts, err := filepath.Glob(filepath.Join(lab.Host.State, "attempts", "*", "*", "*", "prompt.md"))
	require.NoError(t, err)
	require.NotEmpty(t, prompts)
	for _, prompt := range prompts {
		search("prompt", prompt)
	}
	var places []string
	for place, yes := range found {
		if yes {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

// leakingLab is a lab whose pools pass the secret on by name, which masks it; or
// whose workers read it from a file, which nobody can know.
func leakingLab(t *testing.T, masked bool) (*testkit.Lab, *testkit.Case) {
	t.Helper()
	lab := testkit.NewLab(t, testkit.LabOptions{Durable: true, Env: []string{"LEAK_SECRET=" + leaked}})
	script := filepath.Join(lab.Control.Dir, "leak.sh")
	require.NoError(t, os.WriteFile(script, []byte(leakingWorker), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(lab.Control.Dir, "secret"), []byte(leaked), 0o600))
	pools := []map[string]any{
		{"id": "leaks", "provider": "command", "command": []string{"sh", script, lab.Control.Dir}, "max_concurrent": 4},
	}
	if masked {
		pools[0]["env"] = []string{"LEAK_SECRET"}
	}
	pools[0]["options"] = map[string]string{"speaks": "claude"}
	data, err := json.Marshal(map[string]any{"version": 1, "pools": pools})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(lab.Pools, data, 0o600))
	require.NoError(t, lab.Host.Stop())
	require.NoError(t, lab.Host.Restart())

	p := testkit.Plan{Policy: map[string]any{"unattended": true}}
	for _, id := range []string{"prints", "reasons", "asks", "claims", "breaks", "invents", "fails", "writes", "speaks"} {
		n := testkit.Node{ID: id}
		if id == "writes" {
			n.Verify = []string{"cat writes/work.txt; false"}
		}
		p.Nodes = append(p.Nodes, n)
	}
	return lab, testkit.NewCase(t, testkit.RunID(t), p)
}

// terminal are the codes and breaks that may stand inside of what a terminal shows as one word.
var terminal = regexp.MustCompile(`\x1b\[[0-9;]*m|\\u001b\[[0-9;]*m|\r?\n`)

// holds looks for the secret in every shape that the worker gives it, by other
// means than the masking does.
func holds(data []byte) bool {
	plain := terminal.ReplaceAll(data, nil)
	for _, shape := range shapes() {
		if bytes.Contains(plain, []byte(shape)) || bytes.Contains(data, []byte(shape)) {
			return true
		}
	}
	return false
}

func shapes() []string {
	all := []string{
		leaked, strings.ReplaceAll(leaked, "/", `\/`), url.QueryEscape(leaked), url.PathEscape(leaked), strings.ReplaceAll(url.QueryEscape(leaked), "+", "%20"),
		hex.EncodeToString([]byte(leaked)), strings.ToUpper(hex.EncodeToString([]byte(leaked))),
	}
	percent := ""
	for _, b := range []byte(leaked) {
		percent += "%" + hex.EncodeToString([]byte{b})
	}
	all = append(all, percent)
	for shift := range 3 { // where it begins in a group of three bytes: what is its own, without the neighbours' bits
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + leaked))
		from := (shift*8 + 5) / 6
		all = append(all, strings.TrimRight(text, "=")[from:len(strings.TrimRight(text, "="))-1])
	}
	return all
}
