package contract

import (
	"time"

	"mendflow/internal/plan"
)

// Notice is what a notification tells; webhooks and commands get it as JSON.
// Fields are added, never renamed.
type Notice struct {
	Version    int           `json:"version"` // 1
	ID         string        `json:"id"`      // RUN/N: the same for every try to deliver it
	Event      plan.NotifyOn `json:"event"`
	At         time.Time     `json:"at"`
	Run        string        `json:"run"`
	PlanID     string        `json:"plan_id,omitempty"`
	Status     RunStatus     `json:"status"`
	Reason     string        `json:"reason,omitempty"`
	Holds      []Hold        `json:"holds,omitempty"` // with the command that lifts each
	Repository string        `json:"repository"`
	Branch     string        `json:"branch"`
	HeadCommit string        `json:"head_commit,omitempty"`

	Publication *PublicationView `json:"publication,omitempty"`
}

// NotificationInput delivers a notice to one of the receivers that a plan names.
type NotificationInput struct {
	Config   Artifact `json:"config"`
	Receiver int      `json:"receiver"` // index into the plan's notify
	Notice   Notice   `json:"notice"`
}
