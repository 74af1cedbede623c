package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Trailer keys of the commits of a run.
const (
	trailerRun      = "Mendflow-Run"
	trailerNode     = "Mendflow-Node"
	trailerOpening  = "Mendflow-Opening"
	trailerAttempt  = "Mendflow-Attempt"
	trailerFindings = "Mendflow-Findings"
	trailerReverts  = "Mendflow-Reverts"
)

// A Landing is one commit of a run on its truth.
type Landing struct {
	Commit     string
	Parent     string
	Tree       string
	Node       string // empty for a revert
	Opening    int
	Attempt    int
	Findings   []string
	Reverts    []string // commits that this one takes back
	RevertedBy string   // the later commit that takes this one back; empty: it holds
}

// A RunState is what the hub says about a run.
type RunState struct {
	Truth    string
	Landings []Landing // since the base, oldest first
	Foreign  []string  // commits on the truth that the run did not make, oldest first
	// Diverged: the truth no longer contains the base; somebody moved the ref.
	Diverged bool
}

// BranchMoved says that somebody else wrote to the truth: the run has to be recovered.
func (s RunState) BranchMoved() bool { return s.Diverged || len(s.Foreign) > 0 }

// Landed returns the landing that holds for a node in an opening.
func (s RunState) Landed(node string, opening int) (Landing, bool) {
	for _, l := range slices.Backward(s.Landings) {
		if l.Node == node && l.Opening == opening && l.RevertedBy == "" {
			return l, true
		}
	}
	return Landing{}, false
}

// At returns the state as it was when the truth was at a commit of the run, the base included; ok
// is false for any other commit.
func (s RunState) At(base, truth string) (past RunState, ok bool) {
	if truth == base {
		return RunState{Truth: truth}, true
	}
	i := slices.IndexFunc(s.Landings, func(l Landing) bool { return l.Commit == truth })
	if i < 0 {
		return RunState{}, false
	}
	past = RunState{Truth: truth, Landings: slices.Clone(s.Landings[:i+1])}
	for k := range past.Landings {
		past.Landings[k].RevertedBy = ""
	}
	past.Landings = markReverted(past.Landings)
	return past, true
}

// runCache is the last state that was computed for a run, so that a truth that only we moved costs
// no process.
type runCache struct {
	base  string
	state RunState
}

// OpenTruth makes the truth of a run, at the base, and returns where it is: further on when the run
// already landed something. The objects of the base are in the hub afterwards.
func (m *Mirror) OpenTruth(ctx context.Context, run, base string) (string, error) {
	if err := checkName("run", run); err != nil {
		return "", err
	}
	if err := m.noteRun(run); err != nil {
		return "", fmt.Errorf("open truth of %s: %w", run, err)
	}
	name := TruthRef(run)
	var last error
	for range refTries {
		refs, err := m.hubRefs(ctx, name)
		if err != nil {
			return "", fmt.Errorf("open truth of %s: %w", run, errors.Join(last, err))
		}
		if truth := refs[name]; truth != "" {
			return truth, nil
		}
		if last != nil && !errors.Is(last, errRefused) {
			break
		}
		var objects transfer
		if m.hub.URL == "" && !m.hubHas(ctx, base) {
			objects = transfer{tips: []string{base}, known: m.hubTips()}
		}
		if _, last = m.update(ctx, objects, []refUpdate{{name, "", base}}, nil); last == nil {
			return base, nil
		}
		if errors.Is(last, ErrLocked) {
			if err := m.waitHubLock(ctx, name); err != nil {
				return "", err
			}
		}
	}
	return "", fmt.Errorf("open truth of %s: %w", run, last)
}

// hubHas says whether a commit lies in the hub's objects with all that it needs: a transfer that was
// killed left the commit without its trees.
func (m *Mirror) hubHas(ctx context.Context, oid string) bool {
	_, err := m.store.git.run(ctx, command{
		args: []string{"rev-list", "--objects", "--quiet", oid, "--not", "--all"}, dir: m.hub.GitDir, gitDir: m.hub.GitDir,
	})
	return err == nil
}

// hubTips are commits that hub and mirror certainly share: the branches that the mirror was cloned with.
func (m *Mirror) hubTips() []string {
	refs, err := listRefs(m.dir, func(name string) bool { return strings.HasPrefix(name, "refs/heads/") })
	if err != nil {
		return nil
	}
	var tips []string
	for name, oid := range refs {
		if now, err := readRef(m.hub.GitDir, name); err == nil && now == oid {
			tips = append(tips, oid)
		}
	}
	slices.Sort(tips)
	return slices.Compact(tips)
}

// Truth returns where the truth of a run is, ErrTruthMissing when there is none. The commit is in the
// mirror afterwards, also when another host landed it.
func (m *Mirror) Truth(ctx context.Context, run string) (string, error) {
	if err := checkName("run", run); err != nil {
		return "", err
	}
	name := TruthRef(run)
	refs, err := m.hubRefs(ctx, name)
	if err != nil {
		return "", fmt.Errorf("read truth of %s: %w", run, err)
	}
	if refs[name] == "" {
		return "", fmt.Errorf("read truth of %s: %w", run, ErrTruthMissing)
	}
	if err := m.ensure(ctx, refs[name], name); err != nil {
		return "", fmt.Errorf("read truth of %s: %w", run, err)
	}
	return refs[name], nil
}

// State reads the truth of a run and every commit on it since the base.
func (m *Mirror) State(ctx context.Context, run, base string) (RunState, error) {
	truth, err := m.Truth(ctx, run)
	if err != nil {
		return RunState{}, err
	}
	return m.stateAt(ctx, run, base, truth)
}

func (m *Mirror) stateAt(ctx context.Context, run, base, truth string) (RunState, error) {
	m.state.mu.Lock()
	var cached RunState
	if c := m.state.runs[run]; c != nil && c.base == base {
		cached = c.state
	}
	m.state.mu.Unlock()
	if cached.Truth == truth {
		return cached.clone(), nil
	}
	if truth == base {
		return RunState{Truth: truth}, nil
	}
	if err := m.ensure(ctx, truth, TruthRef(run)); err != nil {
		return RunState{}, fmt.Errorf("read state of %s: %w", run, err)
	}
	state, err := m.readState(ctx, run, base, truth)
	if err != nil {
		return RunState{}, fmt.Errorf("read state of %s: %w", run, err)
	}
	m.remember(run, base, state)
	return state.clone(), nil
}

func (m *Mirror) remember(run, base string, state RunState) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	m.state.runs[run] = &runCache{base: base, state: state.clone()}
}

// extend adds a commit that we just put on the truth to the cached state.
func (m *Mirror) extend(run, base, from string, l Landing) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	m.state.known[l.Commit] = true
	c := m.state.runs[run]
	switch {
	case c != nil && c.base == base && c.state.Truth == from:
	case from == base:
		c = &runCache{base: base, state: RunState{Truth: base}}
		m.state.runs[run] = c
	default:
		return
	}
	c.state.Truth = l.Commit
	c.state.Landings = markReverted(append(c.state.Landings, l))
}

func (s RunState) clone() RunState {
	s.Landings = slices.Clone(s.Landings)
	s.Foreign = slices.Clone(s.Foreign)
	return s
}

// Separators of the log format: no trailer value or id holds them.
const (
	fieldSep   = "\x1f"
	trailerSep = "\x1e"
)

func (m *Mirror) readState(ctx context.Context, run, base, truth string) (RunState, error) {
	res, err := m.run(ctx, command{args: []string{"log", "-z", "--reverse", "--topo-order", "--no-show-signature", "--boundary",
		"--format=%m%H%x1f%P%x1f%T%x1f%(trailers:only,unfold,separator=%x1e)", "--end-of-options", base + ".." + truth}})
	if err != nil {
		return RunState{}, err
	}
	state := parseState(run, res.stdout)
	state.Truth = truth
	// The base is a boundary of base..truth exactly when the truth descends from it.
	state.Diverged = truth != base && !bytes.Contains(append([]byte{0}, res.stdout...), []byte("\x00-"+base))
	return state, nil
}

// parseState reads the log above. A commit belongs to the run when its trailers say so.
func parseState(run string, log []byte) RunState {
	var state RunState
	for record := range bytes.SplitSeq(log, []byte{0}) {
		fields := strings.SplitN(string(record), fieldSep, 4)
		if len(fields) != 4 || !strings.HasPrefix(fields[0], ">") {
			continue
		}
		l := Landing{Commit: fields[0][1:], Tree: fields[2]}
		l.Parent, _, _ = strings.Cut(fields[1], " ")
		if l.parseTrailers(fields[3]) != run || l.Node == "" && len(l.Reverts) == 0 {
			state.Foreign = append(state.Foreign, l.Commit)
			continue
		}
		state.Landings = append(state.Landings, l)
	}
	state.Landings = markReverted(state.Landings)
	return state
}

func (l *Landing) parseTrailers(text string) (run string) {
	for line := range strings.SplitSeq(text, trailerSep) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case trailerRun:
			run = value
		case trailerNode:
			l.Node = value
		case trailerOpening:
			l.Opening, _ = strconv.Atoi(value)
		case trailerAttempt:
			l.Attempt, _ = strconv.Atoi(value)
		case trailerFindings:
			l.Findings = strings.Fields(strings.ReplaceAll(value, ",", " "))
		case trailerReverts:
			l.Reverts = append(l.Reverts, strings.Fields(value)...)
		}
	}
	return run
}

func markReverted(landings []Landing) []Landing {
	for i := range landings {
		for _, oid := range landings[i].Reverts {
			for j := range landings[:i] {
				if landings[j].Commit == oid {
					landings[j].RevertedBy = landings[i].Commit
				}
			}
		}
	}
	return landings
}

// trailers is the last paragraph of a landing's message.
func (l Landing) trailers(run string) string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%s: %s\n", key, value) }
	line(trailerRun, run)
	if l.Node != "" {
		line(trailerNode, l.Node)
		line(trailerOpening, strconv.Itoa(l.Opening))
		line(trailerAttempt, strconv.Itoa(l.Attempt))
	}
	if len(l.Findings) > 0 {
		line(trailerFindings, strings.Join(l.Findings, ", "))
	}
	for _, oid := range l.Reverts {
		line(trailerReverts, oid)
	}
	return b.String()
}

// fullMessage is the text of the caller followed by our trailers as a paragraph of their own, so
// that nothing in the text can pass for one.
func fullMessage(message, trailers string) string {
	message = strings.TrimSpace(message)
	if message == "" {
		message = "Mendflow"
	}
	return message + "\n\n" + trailers
}
