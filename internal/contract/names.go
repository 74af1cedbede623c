package contract

import (
	"fmt"
	"strconv"
	"strings"
)

// Workflow types.
const (
	WorkflowRemediation = "Remediation"
	WorkflowLevel       = "Level"
	WorkflowNode        = "Node"
	WorkflowBroker      = "Broker"
)

// QueueMain serves workflows and light activities on every host.
const QueueMain = "mendflow"

// PoolQueue serves RunWorker on any host that serves the pool.
func PoolQueue(pool string) string { return QueueMain + "-pool-" + strings.ToLower(pool) }

// HostQueue serves LandWork, ReleaseWorktree and continued attempts, where the worktree is.
func HostQueue(host string) string { return QueueMain + "-host-" + host }

// RemediationID is the workflow id of a run.
func RemediationID(run string) string { return "remediation/" + run }

// LevelID is the workflow id of one drive of a level; drive counts the drives of the run from 1.
func LevelID(run string, drive int) string {
	return fmt.Sprintf("%s/L%02d", RemediationID(run), drive)
}

// NodeID is the workflow id of one attempt.
func NodeID(run string, drive int, node string, attempt int) string {
	return fmt.Sprintf("%s/%s/a%d", LevelID(run, drive), node, attempt)
}

// BrokerID is the workflow id of an account's broker.
func BrokerID(account string) string { return "broker/" + account }

// ParseRemediationID is the inverse of RemediationID; ok is false for any other id.
func ParseRemediationID(id string) (run string, ok bool) {
	run, ok = strings.CutPrefix(id, "remediation/")
	if !ok || run == "" || strings.Contains(run, "/") {
		return "", false
	}
	return run, true
}

// ParseLevelID is the inverse of LevelID; ok is false for any other id.
func ParseLevelID(id string) (run string, drive int, ok bool) {
	head, tail, found := strings.Cut(strings.TrimPrefix(id, "remediation/"), "/L")
	if !found || !strings.HasPrefix(id, "remediation/") {
		return "", 0, false
	}
	drive, err := strconv.Atoi(tail)
	return head, drive, err == nil
}

// RunBranch is the convenience branch that follows the truth of a run.
func RunBranch(run string) string { return "mendflow/" + run }

// TruthRef is the landed state of a run in the hub.
func TruthRef(run string) string { return "refs/mendflow/run/" + run }

// Operator commands of a run, each a signal and an update of the same name.
const (
	CommandPause     = "pause"
	CommandResume    = "resume"
	CommandCancel    = "cancel"
	CommandPools     = "pools"
	CommandBudget    = "budget"
	CommandGateRetry = "gate-retry"
	CommandRecover   = "recover"
	CommandQuiesce   = "quiesce"
	CommandTriage    = "triage"
	CommandAnswer    = "answer"
	CommandReopen    = "reopen" // broker
	CommandReconcile = "reconcile"
)

// Internal signals: one name per pair of workflows, so that messages to one
// target keep their order and can be merged while one is on its way.
const (
	SignalReport  = "report"  // level → run: settled, stranded, drained
	SignalOrder   = "order"   // run → level: admit, seal, stop, pools
	SignalTickets = "tickets" // level → broker: reserve, withdraw, settle
	SignalGrants  = "grants"  // broker → level: granted, refused, pool states
	// broker → run: a pause or an exhaustion was lifted before its time.
	SignalPoolState = "pool-state"
)

// Queries.
const (
	QueryStatus  = "status"
	QueryNodes   = "nodes"
	QueryExplain = "explain"
	QueryItems   = "items"
	QueryReport  = "report"
)

// Search attributes. The embedded server registers the same list; an end-to-end test compares the two.
const (
	AttributeRun        = "MendflowRun"
	AttributeStatus     = "MendflowStatus"
	AttributeRepository = "MendflowRepository"
	AttributeHold       = "MendflowHold"
	AttributeResetAt    = "MendflowResetAt"
	AttributePool       = "MendflowPool"
	AttributeOutcome    = "MendflowOutcome"
)

// Attribute is a search attribute and its type in the server's words.
type Attribute struct {
	Name string
	Type string // Keyword | KeywordList | Datetime
}

// Attributes lists what `starter setup` and `starter dev` register.
func Attributes() []Attribute {
	return []Attribute{
		{AttributeRun, "Keyword"},
		{AttributeStatus, "Keyword"},
		{AttributeRepository, "Keyword"},
		{AttributeHold, "KeywordList"},
		{AttributeResetAt, "Datetime"},
		{AttributePool, "KeywordList"},
		{AttributeOutcome, "Keyword"},
	}
}

// RetentionDays is how long the server remembers closed runs; nothing that users need later depends on it.
const RetentionDays = 30

// Names of the report pair.
const (
	ReportMarkdown = "remediation-report.md"
	ReportJSON     = "remediation-outcomes.json"
)

// ConfigKey is where a run's configuration lies in the artifact store.
func ConfigKey(run string) string { return "runs/" + run + "/config.json" }

// ReportKey is where a run's report lies in the artifact store.
func ReportKey(run, name string) string { return "runs/" + run + "/report/" + name }
