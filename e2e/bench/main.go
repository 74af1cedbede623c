package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"mendflow/internal/testkit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// bench runs the chosen figures and prints their table. It exits with 1 when
// something could not be measured or a floor is missed.
func bench(ctx context.Context, args []string, out, progress io.Writer) int {
	o := options{progress: progress}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	only := flags.String("only", "", "figures to measure, separated by commas (default: all): "+strings.Join(names(), ", "))
	flags.IntVar(&o.rounds, "rounds", 3, "rounds of each figure; the value is their median")
	flags.StringVar(&o.dir, "dir", "/dev/shm", "folder to work in, on a memory file system")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	chosen, err := choose(*only)
	if err != nil || flags.NArg() > 0 || o.rounds < 1 {
		fmt.Fprintln(progress, "bench: unknown figure or argument; see -help")
		return 2
	}
	if err := testkit.CheckBuilt(); err != nil {
		fmt.Fprintln(progress, "bench:", err)
		return 1
	}
	before := load()
	started := time.Now()
	var rows []row
	failed := false
	for _, m := range chosen {
		fmt.Fprintf(progress, "%s: %s\n", m.name, m.about)
		measured, err := o.measure(ctx, m)
		if err != nil {
			fmt.Fprintf(progress, "bench: measure %s: %v\n", m.name, err)
			failed = true
			if ctx.Err() != nil {
				return 130
			}
			continue
		}
		rows = append(rows, measured...)
	}
	fmt.Fprint(out, table(rows))
	fmt.Fprintf(out, "\n`%s` on %s, %s, load %s before and %s after, %s\n",
		strings.Join(append([]string{"go run ./e2e/bench"}, args...), " "), machine(), started.UTC().Format(time.DateOnly), before, load(), time.Since(started).Round(time.Second))
	if failed || slices.ContainsFunc(rows, func(r row) bool { return r.value > r.floor }) {
		return 1
	}
	return 0
}

// options are the same for all figures.
type options struct {
	rounds   int
	dir      string
	progress io.Writer
}

// measure gives a measurement a folder of its own.
func (o options) measure(ctx context.Context, m measurement) ([]row, error) {
	dir, err := os.MkdirTemp(o.dir, "mendflow-bench.")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return m.run(ctx, &stage{options: o, dir: dir})
}
