package testkit

import (
	"context"
	"fmt"
	"log/slog"

	"mendflow/activities"
	"mendflow/internal/config"
	"mendflow/internal/contract"
)

// Tests share a server and start their runs when they please: the scheduler lets
// as many work. A test about its limits sets them itself.
const (
	labRunning = 100
	labQueued  = 100
)

// LetRunsWork raises the limits of a server's scheduler. It is a signal, since no
// worker is there yet to answer.
func LetRunsWork(address string) error {
	connection := config.Connection{Address: address}
	server, err := connection.Dial(context.Background(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer server.Close()
	running, queued := labRunning, labQueued
	_, err = server.SignalWithStartWorkflow(context.Background(), contract.SchedulerID, contract.CommandLimits,
		contract.SchedulerOrder{MaxRunning: &running, MaxQueued: &queued},
		activities.SchedulerOptions(contract.SchedulerID), contract.WorkflowScheduler, contract.SchedulerInput{})
	if err != nil {
		return fmt.Errorf("raise the scheduler's limits: %w", err)
	}
	return nil
}
