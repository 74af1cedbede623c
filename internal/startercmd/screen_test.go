package startercmd

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestFrameTellsProgressWaitsAndHowToEndThem(t *testing.T) {
	t.Parallel()
	until := began.Add(5 * time.Hour)
	v := contract.RunView{
		Run: "tls-3fa9c1", Status: contract.RunPaused, StartedAt: began,
		Nodes: map[string]int{"total": 8, "landed": 3, "blocked": 1, "running": 2, "pending": 2},
		Pools: []contract.PoolState{{ID: "free", State: "live"}, {ID: "sonnet", State: "paused", Until: &until, Reason: "limit reached"}},
		Holds: []contract.Hold{{Kind: contract.HoldOperator, Reason: "maintenance", Since: began, Lift: "starter resume tls-3fa9c1"}},
		Gate:  contract.GateView{Kind: "executed", Verdict: "running"}, Events: []contract.Event{{At: began, Text: "first"}, {At: began, Text: "last"}},
	}
	var running []contract.RunningNode
	for i := range 15 {
		running = append(running, contract.RunningNode{Node: fmt.Sprintf("node-%02d", i), Attempt: 1, Pool: "free", StartedAt: began.Add(time.Minute)})
	}

	lines := frame(v, running, began.Add(90*time.Second))

	text := strings.Join(lines, "\n")
	require.Equal(t, "tls-3fa9c1  paused  1m30s", lines[0])
	require.Equal(t, "[###############---------------] 4/8  1 blocked, 3 landed, 2 pending, 2 running, 8 total", lines[1])
	require.Contains(t, text, "node-11")
	require.NotContains(t, text, "node-12")
	require.Contains(t, text, "… and 3 more")
	require.Contains(t, text, "pool sonnet paused until")
	require.NotContains(t, text, "pool free")
	require.Contains(t, text, "maintenance; lift with: starter resume tls-3fa9c1")
	require.Contains(t, text, "gate executed running")
	require.Contains(t, lines[len(lines)-1], "last")
}

func TestFrameOfARunThatHasNotOpened(t *testing.T) {
	t.Parallel()
	lines := frame(contract.RunView{Run: "r", Status: contract.RunStarting, StartedAt: began}, nil, began)
	require.Equal(t, []string{"r  starting  0s", "[" + strings.Repeat("-", 30) + "] 0/0  "}, lines)
}

// A line that wraps would leave its rest on the screen with every redraw.
func TestLiveScreenRedrawsInPlaceWithinTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &liveScreen{out: &out, columns: func() int { return 20 }}
	require.NoError(t, s.draw([]string{"short", strings.Repeat("ü", 50)}))
	require.Equal(t, "\x1b[Jshort\n"+strings.Repeat("ü", 19)+"…\n", out.String())
	out.Reset()
	require.NoError(t, s.draw([]string{"next"}))
	require.Equal(t, "\x1b[2A\x1b[Jnext\n", out.String(), "up over what was drawn, and cleared")
	out.Reset()
	s.trouble(errors.New("no worker"))
	require.Equal(t, "\x1b[1A\x1b[Jstill trying: no wo…\n", out.String())
}

// What a worker printed is not the terminal's master.
func TestControlCodesDoNotReachTheTerminal(t *testing.T) {
	t.Parallel()
	evil := "done\x1b[2J\x1b]0;title\x07\r\u202e\x9b1m"
	var out bytes.Buffer
	s := &liveScreen{out: &out, columns: func() int { return 80 }}
	require.NoError(t, s.draw([]string{evil}))
	require.Equal(t, "\x1b[Jdone�[2J�]0;title����1m\n", strings.ToValidUTF8(out.String(), "�"))

	out.Reset()
	lines := &lineScreen{out: plain{&out}, err: &out}
	require.NoError(t, lines.show(t.Context(), nil, contract.RunView{Run: "r", Events: []contract.Event{{At: began, Text: evil}}}))
	require.NotContains(t, out.String(), "\x1b")
	out.Reset()
	require.NoError(t, writeNodes(plain{&out}, []contract.NodeRow{{ID: "a", State: contract.NodeBlocked, Reason: evil}}))
	require.NotContains(t, out.String(), "\x1b")
	require.Contains(t, out.String(), "blocked")
}

func TestLinesSayEveryEventOnce(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	s := &lineScreen{out: &out, err: &errOut}
	events := []contract.Event{{At: began, Text: "one"}, {At: began, Text: "two"}, {At: began.Add(time.Second), Text: "three"}}
	v := contract.RunView{Run: "r", Status: contract.RunImplementing, Nodes: map[string]int{"total": 2, "running": 2}}
	hold := contract.Hold{Kind: contract.HoldQuota, Reason: "walled", Since: began}
	for i := range events {
		v.Events = events[:i+1]
		for range 2 { // asked again without news
			require.NoError(t, s.show(t.Context(), nil, v))
		}
	}
	v.Events, v.Status, v.Holds = events[1:], contract.RunPaused, []contract.Hold{hold} // the oldest has left the list
	require.NoError(t, s.show(t.Context(), nil, v))
	require.NoError(t, s.show(t.Context(), nil, v))

	text := out.String()
	for _, once := range []string{" one\n", " two\n", " three\n", "r: implementing, nodes 2 in all, 2 running", "r: paused", "held by quota"} {
		require.Equal(t, 1, strings.Count(text, once), "%q in:\n%s", once, text)
	}
	for range 3 {
		s.trouble(errors.New("no worker"))
	}
	s.trouble(errors.New("no server"))
	require.Equal(t, "starter: still trying: no worker\nstarter: still trying: no server\n", errOut.String())
}

func TestJSONLinesComeWithNewsOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &jsonScreen{out: &out, err: &out}
	v := contract.RunView{Run: "r", Status: contract.RunStarting}
	require.NoError(t, s.show(t.Context(), nil, v))
	require.NoError(t, s.show(t.Context(), nil, v))
	v.Status = contract.RunPreparing
	require.NoError(t, s.show(t.Context(), nil, v))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], `"status":"preparing"`)
}
