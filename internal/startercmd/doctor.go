package startercmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sys/unix"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/process"
)

// Verdicts of a check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkError   = "error"
)

// check is one line of `starter doctor`.
type check struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok | warning | error
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	var pools, repo string
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check what runs need on this machine and on the server",
		Example: "  starter doctor --pools pools.yaml --repo .",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := a.examine(cmd.Context(), pools, repo)
			if a.json {
				if err := eachJSON(a.Out, checks); err != nil {
					return err
				}
			}
			failed := 0
			for _, c := range checks {
				if c.State == checkError {
					failed++
				}
				if !a.json {
					fmt.Fprintf(a.Out, "%-8s %-20s %s\n", c.State, c.Name, c.Detail)
					if c.Remedy != "" {
						fmt.Fprintf(a.Out, "%-8s %-20s %s\n", "", "", "→ "+c.Remedy)
					}
				}
			}
			if failed > 0 {
				return exit(ExitError)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&pools, "pools", "", "check the programs of this pools file too")
	cmd.Flags().StringVar(&repo, "repo", "", "check that this repository accepts a run's refs")
	return cmd
}

func (a *app) examine(ctx context.Context, pools, repo string) []check {
	checks := []check{a.checkGit(ctx), a.checkState(), a.checkStore(ctx), checkSandbox()}
	c, err := a.dial(ctx)
	if err != nil {
		checks = append(checks, check{"server", checkError, err.Error(), "start one with `starter dev`, or set TEMPORAL_ADDRESS"})
	} else {
		defer c.Close()
		checks = append(checks, a.checkServer(ctx, c)...)
	}
	if pools != "" {
		checks = append(checks, a.checkPools(ctx, c, pools)...)
	}
	if repo != "" {
		checks = append(checks, a.checkRepository(ctx, repo))
	}
	return checks
}

func (a *app) checkGit(ctx context.Context) check {
	version, err := gitrepo.Version(ctx)
	if err != nil {
		return check{"git", checkError, err.Error(), "install git 2.38 or newer"}
	}
	return check{"git", checkOK, version, ""}
}

// lowDisk is the free space under which a run is likely to fail.
const lowDisk = 2 << 30

func (a *app) checkState() check {
	dir, err := a.state()
	if err != nil {
		return check{"state folder", checkError, err.Error(), "give --state-dir a writable folder"}
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return check{"state folder", checkError, fmt.Sprintf("%s: %v", dir, err), "give --state-dir a local folder"}
	}
	free := stat.Bavail * uint64(stat.Bsize)
	detail := fmt.Sprintf("%s, %d GiB free", dir, free>>30)
	if free < gitrepo.DiskFloor {
		return check{"state folder", checkError, detail + ": too little to start anything", "free some space, or `starter gc`"}
	}
	if free < lowDisk {
		return check{"state folder", checkWarning, detail, "free some space, or `starter gc`"}
	}
	return check{"state folder", checkOK, detail, ""}
}

func (a *app) checkStore(ctx context.Context) check {
	const name, remedy = "artifact store", "set MENDFLOW_ARTIFACTS or --artifacts to a store that starter and workers share"
	store, err := a.store(ctx)
	if err != nil {
		return check{name, checkError, err.Error(), remedy}
	}
	defer func() { _ = store.Close() }()
	want := fmt.Appendf(nil, "probe %d", os.Getpid())
	key := fmt.Sprintf("doctor/probe-%d", os.Getpid())
	if _, err := store.Put(ctx, key, want); err != nil {
		return check{name, checkError, err.Error(), remedy}
	}
	got, err := store.Get(ctx, key)
	if err != nil || !bytes.Equal(got, want) {
		return check{name, checkError, fmt.Sprintf("what was written cannot be read back: %v", err), remedy}
	}
	if err := store.Delete(ctx, key); err != nil {
		return check{name, checkWarning, err.Error(), remedy}
	}
	return check{name, checkOK, store.URL(""), ""}
}

func checkSandbox() check {
	abi, err := process.SandboxAvailable()
	if err != nil {
		return check{"sandbox", checkWarning, err.Error(), "a Linux kernel from 5.13 on with Landlock confines workers"}
	}
	return check{"sandbox", checkOK, fmt.Sprintf("Landlock, version %d", abi), ""}
}

func (a *app) checkServer(ctx context.Context, c client.Client) []check {
	options, err := a.connection.Options(a.logger())
	if err != nil {
		return []check{{"server", checkError, err.Error(), ""}}
	}
	checks := []check{{"server", checkOK, options.HostPort + ", namespace " + options.Namespace, ""}}
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: options.Namespace})
	if err != nil {
		return append(checks, check{"search attributes", checkWarning, err.Error(), ""})
	}
	var missing []string
	for _, attribute := range contract.Attributes() {
		if _, ok := known.GetCustomAttributes()[attribute.Name]; !ok {
			missing = append(missing, attribute.Name)
		}
	}
	if len(missing) > 0 {
		checks = append(checks, check{"search attributes", checkError, "missing: " + strings.Join(missing, ", "), "starter setup"})
	} else {
		checks = append(checks, check{"search attributes", checkOK, "registered", ""})
	}
	return append(checks, workers(ctx, c))
}

func workers(ctx context.Context, c client.Client) check {
	described, err := c.DescribeTaskQueue(ctx, contract.QueueMain, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	switch {
	case err != nil:
		return check{"workers", checkWarning, err.Error(), ""}
	case len(described.GetPollers()) == 0:
		return check{"workers", checkError, "no worker polls the queue " + contract.QueueMain, "start one with `worker --pools FILE`, or `starter dev --pools FILE`"}
	}
	var names []string
	for _, p := range described.GetPollers() {
		names = append(names, p.GetIdentity())
	}
	slices.Sort(names)
	return check{"workers", checkOK, strings.Join(slices.Compact(names), ", "), ""}
}

func (a *app) checkRepository(ctx context.Context, repo string) check {
	hub, err := gitrepo.ResolveHub(ctx, repo)
	if err != nil {
		return check{"repository", checkError, err.Error(), "name the top of a repository, or its URL"}
	}
	mirror, err := a.openMirror(ctx, hub)
	if err == nil {
		err = mirror.Probe(ctx)
	}
	if err != nil {
		return check{"repository", checkError, err.Error(), "the repository must accept refs/mendflow/* from this user"}
	}
	return check{"repository", checkOK, hub.Canonical + " accepts a run's refs", ""}
}
