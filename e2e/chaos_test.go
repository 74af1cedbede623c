package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// Trials of the random kills: in every check, and in a soak.
const (
	trialsInCheck = 5
	trialsInSoak  = 24
)

// TestRandomKills kills host workers, supervisors and servers at random
// moments, alone and together, restarts them, and expects a green run in which
// nothing is lost, nothing landed twice and nothing is reported that is not in
// git. MENDFLOW_SEED repeats the trials of a seed; MENDFLOW_SOAK runs more.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("MENDFLOW_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "MENDFLOW_SEED")
	}
	t.Logf("MENDFLOW_SEED=%d", seed)
	trials := trialsInCheck
	if os.Getenv("MENDFLOW_SOAK") != "" {
		trials = trialsInSoak
	}
	for i := range trials {
		t.Run(fmt.Sprintf("trial-%d", i+1), func(t *testing.T) {
			t.Parallel()
			newTrial(t, seed, uint64(i)).run()
		})
	}
}

// trial is one run with its kills; everything random comes from one source.
type trial struct {
	t    *testing.T
	rng  *rand.Rand
	lab  *testkit.Lab
	c    *testkit.Case
	said []string // what was killed when
}

func newTrial(t *testing.T, seed, number uint64) *trial {
	tr := &trial{t: t, rng: rand.New(rand.NewPCG(seed, number))}
	tr.lab = testkit.NewLab(t, testkit.LabOptions{Durable: true})
	tr.c = testkit.NewCase(t, testkit.RunID(t), tr.plan())
	t.Cleanup(func() {
		t.Logf("%d kills of seed %d, trial %d:", len(tr.said), seed, number)
		for _, line := range tr.said {
			t.Log(line)
		}
	})
	return tr
}

// plan has nine nodes in random shape, and a script for each: some take time,
// some leave processes behind, some fail at first in one way or another.
func (tr *trial) plan() testkit.Plan {
	var p testkit.Plan
	for i := range 9 {
		n := testkit.Node{ID: fmt.Sprintf("n%d", i)}
		if tr.rng.IntN(2) == 0 { // a verification that takes time and changes what is to land
			n.Verify = []string{fmt.Sprintf("echo x >> %s/work.txt; echo x > %s/made.txt; sleep 0.%d; grep -q '^mark ' %s/work.txt", n.ID, n.ID, 1+tr.rng.IntN(8), n.ID)}
		}
		if i >= 3 {
			n.After = []string{fmt.Sprintf("n%d", tr.rng.IntN(i))}
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

func (tr *trial) script() {
	for _, n := range tr.c.Plan.Nodes {
		file := n.ID + "/work.txt"
		steps := []string{"mark " + file, fmt.Sprintf("work %dms", 50+tr.rng.IntN(900)), "mark " + file}
		if tr.rng.IntN(3) == 0 {
			steps = append([]string{"orphan"}, steps...)
		}
		if tr.rng.IntN(3) == 0 { // scratch outside of the scope: never lands, never gets lost
			steps = append(steps, "mark {node}.tmp")
		}
		tr.lab.Control.Script(tr.t, tr.c.Run, n.ID, append(steps, "result resolved")...)
		switch first := n.ID + ".a1"; tr.rng.IntN(6) {
		case 0:
			tr.lab.Control.Script(tr.t, tr.c.Run, first, append(steps, "cry broken", "exit 1")...)
		case 1:
			tr.lab.Control.Script(tr.t, tr.c.Run, first, append(steps, "mark beyond/{node}.txt", "result resolved")...)
		case 2: // verification is red
			tr.lab.Control.Script(tr.t, tr.c.Run, first, "mark {node}/other.txt", "result resolved")
		}
	}
}

func (tr *trial) run() {
	tr.script()
	tr.lab.Start(tr.t, tr.c)
	for range 3 + tr.rng.IntN(3) {
		if tr.pause(); tr.closed() {
			break
		}
		tr.strike()
	}
	v := tr.lab.Client.AwaitClosed(tr.t, tr.c.Run)
	testkit.CheckInvariants(tr.t, tr.lab.Scene(tr.c))
	require.Equal(tr.t, contract.RunCompleted, v.Status, v.Reason)
	requireAllLanded(tr.t, tr.lab, tr.c)
	requireNothingLeft(tr.t, tr.lab, tr.c)
}

// pause lets the run go on for a random time, in two of three cases measured
// from the next thing that a worker does, so that kills meet work in progress.
// What happens meanwhile depends on the machine, and is meant to.
func (tr *trial) pause() {
	if tr.rng.IntN(3) > 0 {
		before := len(tr.lab.Control.Events(tr.t, tr.c.Run))
		testkit.Eventually(tr.t, "a worker does something", func() bool {
			return len(tr.lab.Control.Events(tr.t, tr.c.Run)) > before || tr.closed()
		})
		time.Sleep(time.Duration(tr.rng.IntN(900)) * time.Millisecond)
		return
	}
	time.Sleep(time.Duration(tr.rng.IntN(4000)) * time.Millisecond)
}

func (tr *trial) closed() bool {
	v, err := tr.lab.Client.Status(tr.c.Run)
	return err == nil && v.Status.Closed()
}

// strike kills some of server, host and supervisors, and brings back what died.
func (tr *trial) strike() {
	const server, host, supervisors = 1, 2, 4
	victims := 1 + tr.rng.IntN(server|host|supervisors)
	down := time.Duration(tr.rng.IntN(1500)) * time.Millisecond
	tr.said = append(tr.said, fmt.Sprintf("%s server=%t host=%t supervisors=%t down=%v", time.Now().UTC().Format("15:04:05.000"),
		victims&server != 0, victims&host != 0, victims&supervisors != 0, down))
	if victims&supervisors != 0 {
		for _, pid := range testkit.Supervisors(tr.c.Run) {
			testkit.KillPID(pid)
		}
	}
	if victims&server != 0 {
		tr.lab.Server.Kill()
	}
	if victims&host != 0 {
		tr.lab.Host.Kill()
	}
	time.Sleep(down)
	if victims&server != 0 {
		require.NoError(tr.t, tr.lab.Server.Restart())
	}
	if victims&host != 0 {
		require.NoError(tr.t, tr.lab.Host.Restart())
	}
}
