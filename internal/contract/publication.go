package contract

import (
	"strconv"
	"time"
)

// Workflows that tell the outside about a run.
const (
	WorkflowPublication  = "Publication"  // tries a run's closing action once more
	WorkflowNotification = "Notification" // delivers one notification
)

// CommandPublishRetry ends the wait for the next try of a closing action.
const CommandPublishRetry = "publish-retry"

// PublicationID is the workflow id of `starter publish retry`: one at a time per run.
func PublicationID(run string) string { return RemediationID(run) + "/publish" }

// NotificationID is the workflow id of a run's notification; n counts them from 1.
func NotificationID(run string, n int) string {
	return RemediationID(run) + "/notify/" + strconv.Itoa(n)
}

// PublishState is how far a closing action came.
type PublishState string

// States of a publication.
const (
	PublishPending   PublishState = "pending"   // not tried yet
	PublishInFlight  PublishState = "in_flight" // a try is under way
	PublishUncertain PublishState = "uncertain" // a try gave no clear answer: what is there is looked up first
	PublishRetryable PublishState = "retryable" // a try failed and changed nothing; another follows
	PublishExhausted PublishState = "exhausted" // every automatic try failed
	PublishFailed    PublishState = "failed"    // trying again would not help
	PublishSucceeded PublishState = "succeeded"
	PublishSkipped   PublishState = "skipped" // the run gave no reason to publish, which Detail says
)

// Over reports whether nothing follows by itself.
func (s PublishState) Over() bool {
	return s == PublishExhausted || s == PublishFailed || s == PublishSucceeded || s == PublishSkipped
}

// Wanting reports whether the operator asked for something that did not come about.
func (s PublishState) Wanting() bool { return s == PublishExhausted || s == PublishFailed }

// PublicationView is the closing action of a run and how far it came.
type PublicationView struct {
	Action   string       `json:"action"`
	State    PublishState `json:"state"`
	Branch   string       `json:"branch,omitempty"` // that was merged into or pushed
	URL      string       `json:"url,omitempty"`    // of the pull request
	Commit   string       `json:"commit,omitempty"` // that was published
	Attempts int          `json:"attempts,omitempty"`
	Until    *time.Time   `json:"until,omitempty"` // when the next try begins
	Detail   string       `json:"detail,omitempty"`
}

// PublishInput asks for one try of a run's closing action.
type PublishInput struct {
	Run    string   `json:"run"`
	Config Artifact `json:"config"`
	Head   string   `json:"head"`           // commit to publish: the truth as the report has it
	Look   bool     `json:"look,omitempty"` // only look whether it is published; change nothing
}

// PublishEnd is how a try ended.
type PublishEnd struct {
	State      PublishState `json:"state"` // succeeded | failed | retryable | uncertain
	Branch     string       `json:"branch,omitempty"`
	URL        string       `json:"url,omitempty"`
	Commit     string       `json:"commit,omitempty"`
	Detail     string       `json:"detail,omitempty"`      // one line
	RetryAfter int          `json:"retry_after,omitempty"` // seconds that the other side asks to wait; 0: it does not say
}

// AmendInput writes the result of a publication into a run's report.
type AmendInput struct {
	Run         string          `json:"run"`
	Publication PublicationView `json:"publication"`
}

// PublicationInput starts a publication beside a closed run.
type PublicationInput struct {
	Action  string       `json:"action"`
	Publish PublishInput `json:"publish"`
}

// PublicationResult is how it ended.
type PublicationResult struct {
	Run         string          `json:"run"`
	Publication PublicationView `json:"publication"`
}
