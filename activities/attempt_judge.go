package activities

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/quota"
	"mendflow/internal/run"
)

// delivered reports whether a valid result of this attempt, or of the one whose tree it continues, is there.
func (l *launch) delivered() bool {
	if l.in.Kept != nil {
		// The result file is scoped by attempt: what the continued attempt delivered moves along.
		old := l.Host.attemptDir(l.in.Run, l.in.Node, l.in.Kept.Attempt)
		if data, err := os.ReadFile(resultFile(old)); err == nil {
			if err := os.WriteFile(l.resultFile(), data, 0o600); err != nil {
				return false
			}
		}
	}
	result, _, err := readResult(l.resultFile(), l.rec.Attempt.Findings)
	return err == nil && result != nil
}

// readResult reads and validates a worker's result; nil without one.
func readResult(path string, findings []string) (*run.Result, []contract.Friction, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read result: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("the result is not a regular file")
	}
	if info.Size() > run.MaxResultBytes {
		return nil, nil, fmt.Errorf("the result has %d bytes, more than %d", info.Size(), run.MaxResultBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read result: %w", err)
	}
	result, friction, err := run.ParseResult(data, findings)
	if err != nil {
		return nil, friction, err
	}
	return &result, friction, nil
}

// judge says how the launch ended. A delivered result decides, whatever the
// session's end; without one the program's own words do.
func (l *launch) judge(adapter provider.Provider, report provider.Report, result process.Result) error {
	l.end.Usage, l.end.Windows, l.end.ExitCode = report.Usage, report.Windows, result.ExitCode
	l.rec.Session, l.rec.Totals, l.rec.Exit, l.rec.Ended = report.Session, report.Totals, result.ExitCode, true
	about := adapter.About()
	if about.Agent {
		if err := l.deliver(report); err != nil {
			return err
		}
	}
	answer, _, resultErr := readResult(l.resultFile(), l.rec.Attempt.Findings)
	l.end.Delivered = answer != nil
	switch {
	case answer != nil:
		l.end.Outcome = contract.OutcomeSuccess
	case result.Ended == process.EndCancelled:
		l.interrupted()
	case about.Agent:
		l.classifyAgent(about, report, result, resultErr)
	case resultErr != nil || result.Succeeded() && !l.complained(result):
		l.end.Outcome = contract.OutcomeSuccess // LandWork looks at what is there
	default:
		now := l.Now().UTC()
		l.classify(l.verdict(result, now), result, now)
	}
	l.rec.Outcome, l.rec.Reason = l.end.Outcome, l.end.Reason
	return writeRecord(l.dir, l.rec)
}

// classifyAgent says what ended the launch of an agent program that delivered no
// valid result. Its final event and its own words decide, never its exit code.
func (l *launch) classifyAgent(about provider.About, report provider.Report, result process.Result, resultErr error) {
	now := l.Now().UTC()
	verdict := report.Verdict(about, l.heard(result, now))
	outcome := contract.Outcome(verdict.Outcome)
	switch {
	case resultErr != nil && !outcome.Limit():
		l.end.Outcome = contract.OutcomeSuccess // LandWork says what is wrong with the result
		return
	case report.Fault != nil && report.Fault.OverAllowance:
		l.overAllowance(report.Fault)
	case report.Fault != nil:
		l.end.Outcome, l.end.Cause, l.end.Reason = contract.OutcomeError, report.Fault.Cause, clip(oneLine(report.Fault.Text), 400)
	case outcome == contract.OutcomeSuccess:
		l.end.Outcome, l.end.Cause = contract.OutcomeError, contract.CauseWork
		l.end.Reason = clip(oneLine("the program ended its work and gave no result: "+report.Final), 400)
	default:
		l.classify(verdict, result, now)
		if outcome == contract.OutcomeError && verdict.Evidence != "" { // the provider's words, not the work's
			l.end.Cause = contract.CauseProvider
		}
		if report.Told != "" && (result.Ended == process.EndExited || result.Ended == process.EndFinalEvent || result.Ended == process.EndStopped) {
			l.end.Reason = clip(oneLine(report.Told), 400)
		} else if report.Told != "" {
			l.end.Reason = clip(l.end.Reason+"; it said last: "+oneLine(report.Told), 400)
		}
	}
	if report.Odd != "" && l.end.Outcome == contract.OutcomeError {
		l.end.Reason = clip(l.end.Reason+"; "+report.Odd, 400)
	}
	l.end.Tail = clipHead(result.StdoutTail+"\n"+result.StderrTail, tailSize)
}

// overAllowance ends a launch at our own cap: nobody is charged the first time,
// and the session goes on in its tree with an allowance of its own.
func (l *launch) overAllowance(fault *provider.Fault) {
	l.end.Friction = append(l.end.Friction, contract.Friction{
		Type: contract.FrictionOverAllowance, Discriminator: l.in.Node, Severity: "warning", Note: fault.Text,
	})
	l.interrupted()
	l.end.Reason = clip(oneLine(fault.Text), 400)
	if l.in.Capped {
		l.end.Outcome, l.end.Cause, l.end.Kept = contract.OutcomeError, fault.Cause, nil
	}
}

// complained reports whether a program that ended well told of an error all the
// same. Only an agent's events can say so: other programs mean their exit code.
func (l *launch) complained(result process.Result) bool {
	return l.speaksAsAgent() && provider.Explains(l.hear(quota.StreamJSON, events(result.StdoutTail), result, l.Now().UTC()))
}

// verdict reads from the output what ended the launch: from what an agent prints
// on its stdout, else from the last stderr lines.
func (l *launch) verdict(result process.Result, now time.Time) quota.Verdict {
	if l.speaksAsAgent() {
		if v := l.hear(quota.StreamJSON, wholeLines(result.StdoutTail), result, now); provider.Explains(v) {
			return v
		}
	}
	return l.hear(quota.Stderr, strings.Join(result.LastStderrLines, "\n"), result, now)
}

func (l *launch) hear(channel quota.Channel, text string, result process.Result, now time.Time) quota.Verdict {
	launch := l.heard(result, now)
	launch.Provider, launch.Channel, launch.Text = l.speaks(), channel, []byte(text)
	return quota.Classify(launch)
}

// heard is when, where and how a launch ended, for the classifier.
func (l *launch) heard(result process.Result, now time.Time) quota.Launch {
	launch := quota.Launch{
		ID: l.in.Node, ObservedAt: now, LocalZone: l.Local, Zone: time.LoadLocation, Patterns: l.patterns(),
	}
	if result.Ended == process.EndExited || result.Ended == process.EndFinalEvent {
		launch.ExitCode = &result.ExitCode
	}
	return launch
}

// events keeps the lines of an output that are JSON objects.
func events(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "{") && json.Valid([]byte(line)) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// wholeLines drops the line that the bound of a tail cut in the middle: half an
// event would be read as plain text.
func wholeLines(tail string) string {
	const slack = 8 // a cut inside a character shortens a tail a little
	if len(tail) < process.TailBytes-slack {
		return tail
	}
	_, rest, _ := strings.Cut(tail, "\n")
	return rest
}

// classify says what ended a launch without a result.
func (l *launch) classify(verdict quota.Verdict, result process.Result, now time.Time) {
	l.end.Outcome = contract.Outcome(verdict.Outcome)
	l.end.Tail = clipHead(result.StdoutTail+"\n"+result.StderrTail, tailSize)
	l.end.Reason = reasonOf(verdict, result)
	switch {
	case l.end.Outcome == contract.OutcomeError:
		l.end.Cause = contract.CauseWork
	case l.end.Outcome == contract.OutcomeTimeout:
		l.end.Cause = contract.CauseHost // charged as host (dispatch.md)
	case l.end.Outcome.Limit():
		l.limit(verdict, now)
	}
}

// patterns are the user's own limit texts; the starter refused those that do not compile.
func (l *launch) patterns() quota.Patterns {
	rules := make([]quota.Pattern, 0, len(l.opened.config.LimitPatterns))
	for _, p := range l.opened.config.LimitPatterns {
		rules = append(rules, quota.Pattern{Match: p.Match, Outcome: quota.Outcome(p.Outcome), Reset: p.Reset})
	}
	patterns, err := quota.CompilePatterns(rules)
	if err != nil {
		l.Host.Log.Warn("compile limit patterns", "run", l.in.Run, "error", err)
	}
	return patterns
}

func (l *launch) limit(verdict quota.Verdict, now time.Time) {
	policy := l.opened.config.Plan.Policy
	limit := &contract.Limit{Scope: string(verdict.Scope), Hard: verdict.Hard, Rule: verdict.Rule, Evidence: clip(verdict.Evidence, 2000)}
	if verdict.ResetAt != nil {
		at := quota.Reopens(verdict, now, policy.ResumeMargin.Std(), policy.ResumeJitter.Std(), l.Jitter())
		limit.ResetAt, limit.ReopensAt = verdict.ResetAt, &at
	}
	l.end.Limit = limit
	if l.end.Outcome != contract.OutcomeModelUnavailable && l.end.Outcome != contract.OutcomePacketTooLarge {
		l.end.Kept = &contract.Kept{Attempt: l.in.Attempt, Host: l.Host.ID, Pool: l.in.Pool, Session: l.rec.Session, Step: "worker"}
	}
}

// speaksAsAgent reports whether a command prints what an agent's program would.
func (l *launch) speaksAsAgent() bool { return l.speaks() != "generic" }

// speaks is whose limit texts a command prints.
func (l *launch) speaks() string {
	switch name := l.pool.Options["speaks"]; name {
	case string(contract.ProviderClaude):
		return "claude-code"
	case "":
		return "generic"
	default:
		return name
	}
}

func reasonOf(verdict quota.Verdict, result process.Result) string {
	text := strings.Join(strings.Fields(verdict.Evidence), " ")
	switch {
	case result.Ended == process.EndIdle:
		return "no output for too long: the program was stopped"
	case result.Ended == process.EndAbsolute:
		return "the attempt's time was over: the program was stopped"
	case text != "":
		return clip(text, 400)
	}
	reason := fmt.Sprintf("the program ended without a result: %s", result)
	if n := len(result.LastStderrLines); n > 0 {
		reason += ": " + strings.Join(strings.Fields(result.LastStderrLines[n-1]), " ")
	}
	return clip(reason, 400)
}
