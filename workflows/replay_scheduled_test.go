package workflows

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

// The histories of schedulers and of runs that they started can be recorded by
// themselves:
//
//	go test ./workflows -run TestReplay -update-scheduled-histories
var updateScheduled = flag.Bool("update-scheduled-histories", false, "record the histories of testdata/replay/scheduled-* from the real server")

// scheduledScenario is a deployment whose histories are kept: the scheduler's, and those of its runs.
type scheduledScenario struct {
	name string
	run  func(d *deployment) []*lab
}

func scheduledScenarios() []scheduledScenario {
	working := func(d *deployment, name string) (l *lab, release func()) {
		h := newHost(unit("a", 0), unit("b", 1, "a"))
		entered, release := h.hold("RunWorker")
		l = d.run(name, h)
		awaitClosed(d.t, "RunWorker", entered)
		return l, release
	}
	return []scheduledScenario{
		{"scheduled", func(d *deployment) []*lab {
			first, release := working(d, "r1")
			second := d.queue("r2")
			release()
			d.ends(first, contract.RunCompleted)
			d.ends(second, contract.RunCompleted)
			return []*lab{first, second}
		}},
		{"scheduled-disable", func(d *deployment) []*lab {
			l, release := working(d, "r1")
			d.order(contract.CommandDisable, contract.SchedulerOrder{Reason: "maintenance"})
			d.until(l, contract.RunPaused)
			release()
			d.order(contract.CommandEnable, contract.SchedulerOrder{})
			d.ends(l, contract.RunCompleted)
			return []*lab{l}
		}},
		{"scheduled-drain", func(d *deployment) []*lab {
			open := make(chan struct{})
			wall := d.run("r1", walled(open))
			d.until(wall, contract.RunPaused)
			held := d.run("r2", newHost(unit("a", 0)))
			d.ends(held, contract.RunCompleted)
			d.order(contract.CommandDrain, contract.SchedulerOrder{})
			close(open)
			wall.ordered(contract.CommandResume, contract.Operator{Now: true})
			d.until(wall, contract.RunQueued)
			d.order(contract.CommandEnable, contract.SchedulerOrder{})
			d.ends(wall, contract.RunCompleted)
			return []*lab{wall, held}
		}},
		{"scheduled-budget", func(d *deployment) []*lab {
			tokens := int64(600_000)
			d.order(contract.CommandBudget, contract.SchedulerOrder{Tokens: &tokens})
			l := d.run("r1", newHost(unit("a", 0), unit("b", 1, "a")))
			d.until(l, contract.RunPaused)
			more := int64(5_000_000)
			d.order(contract.CommandBudget, contract.SchedulerOrder{Tokens: &more})
			d.ends(l, contract.RunCompleted)
			return []*lab{l}
		}},
		{"scheduled-renewed", func(d *deployment) []*lab {
			l, release := working(d, "r1")
			queued := d.queue("r2")
			d.about(contract.CommandHold, queued)
			(&lab{farm: d.farm, t: d.t}).renew(d.id)
			l.renew(l.id)
			d.about(contract.CommandRelease, queued)
			release()
			d.ends(l, contract.RunCompleted)
			d.ends(queued, contract.RunCompleted)
			return []*lab{l, queued}
		}},
	}
}

// recordScheduled plays every scenario and keeps what is new of its histories.
func recordScheduled(t *testing.T, kept map[string]bool) {
	old, err := filepath.Glob(filepath.Join(replayDir, "scheduled*.json"))
	require.NoError(t, err)
	for _, file := range old {
		require.NoError(t, os.Remove(file))
	}
	for _, s := range scheduledScenarios() {
		t.Run("record-"+s.name, func(t *testing.T) {
			d := newDeployment(t, 1)
			runs := s.run(d)
			keeper := &lab{farm: d.farm, t: t}
			for _, runID := range d.executions() {
				keeper.keep(s.name, execution{d.id, runID}, kept)
			}
			for _, l := range runs {
				keeper.keep(s.name, execution{l.id, l.firstRun()}, kept)
				keeper.keep(s.name, execution{l.id, ""}, kept)
			}
		})
	}
}
