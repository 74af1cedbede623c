package startercmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

// watchEvery is how often a run is asked while somebody looks on.
const watchEvery = 500 * time.Millisecond

func (a *app) watchCommand() *cobra.Command {
	var noHold bool
	cmd := &cobra.Command{
		Use:     "watch RUN",
		Short:   "Follow a run to its end",
		Long:    "Follow a run to its end: a live view on a terminal, lines elsewhere, JSON lines with --json.\nThe exit code tells how the run closed; Ctrl-C stops watching, not the run.",
		Example: "  starter watch tls-2026-11-3fa9c1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return a.watch(cmd.Context(), c, args[0], noHold)
		},
	}
	cmd.Flags().BoolVar(&noHold, "no-hold", false, "end with exit code 4 when the run is paused or waits for an answer")
	return cmd
}

// watch follows a run until it closes and returns its exit code as an error.
func (a *app) watch(ctx context.Context, c client.Client, run string, noHold bool) error {
	screen := a.newScreen()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		v, err := view(ctx, c, run)
		switch {
		case ctx.Err() != nil:
			screen.end()
			fmt.Fprintf(a.Err, "stopped watching; the run goes on: starter watch %s\n", run)
			return exit(ExitInterrupted)
		case err != nil:
			// A restarting server or worker is no end: say so and ask again.
			screen.trouble(err)
		default:
			if err := screen.show(ctx, c, v); err != nil {
				return err
			}
			if v.Status.Closed() && v.ClosedAt != nil {
				screen.end()
				return a.closed(ctx, v)
			}
			if noHold && stands(v.Status) {
				screen.end()
				return exit(ExitHeld)
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// screen shows a run's progress in the way that fits the output.
type screen interface {
	show(ctx context.Context, c client.Client, v contract.RunView) error
	trouble(err error)
	end()
}

func (a *app) newScreen() screen {
	switch {
	case a.json:
		return &jsonScreen{out: a.Out, err: a.Err}
	case a.terminal():
		return &liveScreen{out: a.Out, columns: a.columns}
	default:
		return &lineScreen{out: plain{a.Out}, err: a.Err}
	}
}

// jsonScreen prints a status line whenever something changed.
type jsonScreen struct {
	out, err io.Writer
	last     string
	said     string
}

func (s *jsonScreen) show(_ context.Context, _ client.Client, v contract.RunView) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	if string(data) == s.last {
		return nil
	}
	s.last = string(data)
	_, err = fmt.Fprintf(s.out, "%s\n", data)
	return err
}

func (s *jsonScreen) trouble(err error) { sayOnce(s.err, &s.said, err) }
func (s *jsonScreen) end()              {}

// lineScreen prints a line for every event, for logs and pipes.
type lineScreen struct {
	out, err io.Writer
	seen     time.Time       // instant of the last event told
	seenAt   map[string]bool // what was told of that instant
	status   contract.RunStatus
	holds    string
	said     string
}

func (s *lineScreen) show(_ context.Context, _ client.Client, v contract.RunView) error {
	if v.Status != s.status {
		s.status = v.Status
		fmt.Fprintf(s.out, "%s %s: %s, nodes %s\n", time.Now().Format(time.TimeOnly), v.Run, v.Status, counts(v.Nodes, "total"))
	}
	for _, e := range v.Events {
		if e.At.Before(s.seen) || e.At.Equal(s.seen) && s.seenAt[e.Text] {
			continue
		}
		fmt.Fprintf(s.out, "%s %s\n", e.At.Local().Format(time.TimeOnly), e.Text)
		if s.seenAt == nil || e.At.After(s.seen) {
			s.seen, s.seenAt = e.At, make(map[string]bool)
		}
		s.seenAt[e.Text] = true
	}
	var holds []string
	for _, h := range v.Holds {
		holds = append(holds, "held by "+holdLine(h))
	}
	if len(v.Unproven) > 0 {
		holds = append(holds, unprovenLine(v.Run, v.Unproven))
	}
	if text := strings.Join(holds, "\n"); text != s.holds {
		s.holds = text
		for _, h := range holds {
			fmt.Fprintf(s.out, "%s %s\n", time.Now().Format(time.TimeOnly), h)
		}
	}
	return nil
}

func (s *lineScreen) trouble(err error) { sayOnce(s.err, &s.said, err) }
func (s *lineScreen) end()              {}

func sayOnce(w io.Writer, said *string, err error) {
	if err.Error() != *said {
		*said = err.Error()
		fmt.Fprintln(w, "starter: still trying:", err)
	}
}

// liveScreen redraws a frame in place on a terminal.
type liveScreen struct {
	out     io.Writer
	columns func() int // of the terminal now; a longer line would wrap and spoil the next frame
	lines   int
}

func (s *liveScreen) show(ctx context.Context, c client.Client, v contract.RunView) error {
	running := runningNodes(ctx, c, v)
	return s.draw(frame(v, running, time.Now()))
}

func (s *liveScreen) trouble(err error) { _ = s.draw([]string{"still trying: " + err.Error()}) }

func (s *liveScreen) draw(lines []string) error {
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.lines)
	}
	b.WriteString("\x1b[J")
	for _, line := range lines {
		b.WriteString(clipColumns(printable(line), s.columns()) + "\n")
	}
	s.lines = len(lines)
	_, err := io.WriteString(s.out, b.String())
	return err
}

func (s *liveScreen) end() {}

// frameRunning is how many running nodes a frame lists.
const frameRunning = 12

// frame renders a run as lines.
func frame(v contract.RunView, running []contract.RunningNode, now time.Time) []string {
	done := 0
	for _, state := range []contract.NodeState{contract.NodeLanded, contract.NodeNoChange, contract.NodePartial, contract.NodeBlocked, contract.NodeSkipped} {
		done += v.Nodes[string(state)]
	}
	lines := []string{
		fmt.Sprintf("%s  %s  %s", v.Run, v.Status, age(v.StartedAt, now)),
		fmt.Sprintf("%s %d/%d  %s", bar(done, v.Nodes["total"], 30), done, v.Nodes["total"], counts(v.Nodes, "")),
	}
	for i, r := range running {
		if i == frameRunning {
			lines = append(lines, fmt.Sprintf("  … and %d more", len(running)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("  %-24s a%d  %-16s %s", r.Node, r.Attempt, r.Pool, age(r.StartedAt, now)))
	}
	for _, p := range v.Pools {
		if p.Until != nil {
			lines = append(lines, fmt.Sprintf("  pool %s %s until %s (%s)", p.ID, p.State, p.Until.Local().Format(time.DateTime), p.Reason))
		}
	}
	for _, h := range v.Holds {
		lines = append(lines, "  held by "+holdLine(h))
	}
	if len(v.Unproven) > 0 {
		lines = append(lines, "  "+unprovenLine(v.Run, v.Unproven))
	}
	if v.Gate.Kind != "" {
		lines = append(lines, fmt.Sprintf("  gate %s %s %s", v.Gate.Kind, v.Gate.Verdict, v.Gate.Detail))
	}
	if n := len(v.Events); n > 0 {
		lines = append(lines, "  "+v.Events[n-1].At.Local().Format(time.TimeOnly)+" "+v.Events[n-1].Text)
	}
	return lines
}

func bar(done, total, width int) string {
	filled := 0
	if total > 0 {
		filled = done * width / total
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat("-", width-filled) + "]"
}

// clipColumns cuts a line to the width of the terminal.
func clipColumns(line string, columns int) string {
	columns = max(columns, 2)
	runes := []rune(line)
	if len(runes) <= columns {
		return line
	}
	return string(runes[:columns-1]) + "…"
}
