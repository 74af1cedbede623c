package startercmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"mendflow/internal/config"
	"mendflow/internal/gitrepo"
)

// classAttempts are the folders of a closed run's attempts: prompts, results and
// temporary files. What is worth keeping of them is in the artifact store.
const classAttempts gitrepo.GarbageClass = "attempts"

// gcOptions are the flags of `starter gc`.
type gcOptions struct {
	yes, forgotten bool
	salvageDays    int
}

func (a *app) gcCommand() *cobra.Command {
	o := gcOptions{salvageDays: 30}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "List and remove what closed runs left on this host",
		Long: "List what closed runs left in this host's state folder, by class, and remove it with --yes.\n" +
			"What did not land is salvaged before a worktree is removed; artifacts, reports and the refs in the\n" +
			"repositories always stay. Open runs are never touched.",
		Example: "  starter gc\n  starter gc --yes --salvage-days 7",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.gc(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.yes, "yes", false, "remove what is listed")
	flags.BoolVar(&o.forgotten, "forgotten", false, "count runs as closed that neither the server nor the artifact store knows")
	flags.IntVar(&o.salvageDays, "salvage-days", o.salvageDays, "keep salvage and quarantined trees for so many days")
	return cmd
}

// garbageRow is one line of `starter gc --json`.
type garbageRow struct {
	Class    gitrepo.GarbageClass `json:"class"`
	Run      string               `json:"run,omitempty"`
	Path     string               `json:"path"`
	Bytes    int64                `json:"bytes"`
	Modified time.Time            `json:"modified,omitzero"`
	Removed  bool                 `json:"removed"`
	Left     string               `json:"left,omitempty"` // why it could not be removed
}

func (a *app) gc(ctx context.Context, o gcOptions) error {
	if o.salvageDays < 0 {
		return usage("read --salvage-days: %d is no number of days", o.salvageDays)
	}
	state, err := a.state()
	if err != nil {
		return err
	}
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	closed := &closedRuns{app: a, client: c, forgotten: o.forgotten, known: map[string]bool{}}
	host, err := config.HostID(state)
	if err != nil {
		return err
	}
	store, err := gitrepo.NewStore(gitrepo.Settings{StateDir: state, HostID: host, Log: a.logger()})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	rows, left, err := a.sweep(ctx, store, state, closed, o)
	if err != nil {
		return err
	}
	if err := a.sayGarbage(rows, o.yes); err != nil {
		return err
	}
	if left > 0 {
		return exit(ExitError)
	}
	return nil
}

// sweep lists the garbage and removes it when it is asked to.
func (a *app) sweep(ctx context.Context, store *gitrepo.Store, state string, closed *closedRuns, o gcOptions) ([]garbageRow, int, error) {
	now := time.Now()
	before := now.AddDate(0, 0, -o.salvageDays)
	isClosed := func(run string) bool { return closed.is(ctx, run) }
	items, err := store.Garbage(ctx, isClosed)
	if err != nil {
		return nil, 0, err
	}
	salvage, err := store.SalvageGarbage(ctx, isClosed, before)
	if err != nil {
		return nil, 0, err
	}
	all, err := store.SalvageGarbage(ctx, func(string) bool { return true }, now.AddDate(100, 0, 0))
	if err != nil {
		return nil, 0, err
	}
	items = slices.DeleteFunc(items, func(g gitrepo.Garbage) bool {
		return g.Class == gitrepo.GarbageQuarantine && g.ModTime.After(before) ||
			g.Class == gitrepo.GarbageMirror && saved(all, g.Path) > saved(salvage, g.Path)
	})
	folders := attemptFolders(state, isClosed)
	if closed.err != nil {
		return nil, 0, closed.err
	}
	// Mirrors go last: they must be empty of trees and salvage by then.
	items = append(items, salvage...)
	slices.SortStableFunc(items, func(x, y gitrepo.Garbage) int { return rank(x.Class) - rank(y.Class) })
	rows, left := []garbageRow{}, 0
	for _, g := range items {
		row := garbageRow{Class: g.Class, Run: g.Run, Path: g.Path, Bytes: g.Bytes, Modified: g.ModTime}
		if o.yes {
			_, err := store.Sweep(ctx, []gitrepo.Garbage{g}, now)
			row.done(err)
		}
		rows = append(rows, row)
	}
	for _, row := range folders {
		if o.yes {
			row.done(os.RemoveAll(row.Path))
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		if row.Left != "" {
			left++
		}
	}
	return rows, left, nil
}

// saved counts the runs of which a mirror holds salvage.
func saved(salvage []gitrepo.Garbage, mirror string) int {
	n := 0
	for _, g := range salvage {
		if g.Path == mirror {
			n++
		}
	}
	return n
}

// rank orders what is removed: trees, then salvage, then mirrors.
func rank(class gitrepo.GarbageClass) int {
	switch class {
	case gitrepo.GarbageMirror:
		return 2
	case gitrepo.GarbageSalvage:
		return 1
	default:
		return 0
	}
}

func (r *garbageRow) done(err error) {
	if r.Removed = err == nil; err != nil {
		r.Left = strings.Join(strings.Fields(err.Error()), " ")
	}
}

// attemptFolders are the folders of closed runs' attempts.
func attemptFolders(state string, closed func(run string) bool) []garbageRow {
	entries, err := os.ReadDir(filepath.Join(state, "attempts"))
	if err != nil {
		return nil // there never was an attempt
	}
	var rows []garbageRow
	for _, e := range entries {
		if !closed(e.Name()) {
			continue
		}
		path := filepath.Join(state, "attempts", e.Name())
		row := garbageRow{Class: classAttempts, Run: e.Name(), Path: path}
		_ = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // an estimate; what cannot be read is not counted
			}
			if info, err := d.Info(); err == nil {
				row.Bytes += info.Size()
				row.Modified = latest(row.Modified, info.ModTime())
			}
			return nil
		})
		rows = append(rows, row)
	}
	return rows
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// closedRuns asks once for each run whether it is closed. The first question
// that nobody answers ends it: then nothing counts as closed.
type closedRuns struct {
	app       *app
	client    client.Client
	forgotten bool
	known     map[string]bool
	err       error
}

func (c *closedRuns) is(ctx context.Context, run string) bool {
	if closed, asked := c.known[run]; asked || c.err != nil {
		return closed && c.err == nil
	}
	open, used, err := c.app.known(ctx, c.client, run)
	if err != nil {
		c.err = fmt.Errorf("look whether run %s is closed: %w", run, err)
		return false
	}
	c.known[run] = !open && (used || c.forgotten)
	return c.known[run]
}

func (a *app) sayGarbage(rows []garbageRow, removed bool) error {
	if a.json {
		return eachJSON(a.Out, rows)
	}
	if err := writeGarbage(a.Out, rows); err != nil {
		return err
	}
	var bytes int64
	for _, r := range rows {
		bytes += r.Bytes
	}
	switch {
	case len(rows) == 0:
		fmt.Fprintln(a.Out, "nothing was left behind")
	case !removed:
		fmt.Fprintf(a.Out, "%s in %d places; nothing was removed: remove it with --yes\n", size(bytes), len(rows))
	default:
		for _, r := range rows {
			if r.Left != "" {
				fmt.Fprintf(a.Err, "starter: not removed: %s %s: %s\n", r.Class, r.Path, r.Left)
			}
		}
	}
	return nil
}

func writeGarbage(w io.Writer, rows []garbageRow) error {
	if len(rows) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CLASS\tRUN\tSIZE\tLAST USED\tPATH")
	for _, r := range rows {
		used := ""
		if !r.Modified.IsZero() {
			used = r.Modified.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.Class, r.Run, size(r.Bytes), used, r.Path)
	}
	return table.Flush()
}

// size is a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
}
