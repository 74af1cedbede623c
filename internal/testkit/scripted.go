package testkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// scriptedWorker is the first argument that turns a test binary into the
// scripted worker; orphanProgram turns it into what such a worker leaves behind.
const (
	scriptedWorker = "mendflow-scripted-worker"
	orphanProgram  = "mendflow-orphan"
)

// AsScriptedWorker is for TestMain: it does not return when this process was
// started as a scripted worker.
func AsScriptedWorker() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == scriptedWorker:
		os.Exit(work(Control{Dir: os.Args[2]}))
	case len(os.Args) == 2 && os.Args[1] == orphanProgram:
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		hang()
	}
}

// worker is one life of the scripted worker.
type worker struct {
	control            Control
	run, node, attempt string
	tree, resultFile   string
	marks              int
}

func work(control Control) int {
	w := &worker{
		control: control,
		run:     os.Getenv("MENDFLOW_RUN"), node: os.Getenv("MENDFLOW_NODE"), attempt: os.Getenv("MENDFLOW_ATTEMPT"),
		tree: os.Getenv("MENDFLOW_WORKTREE"), resultFile: os.Getenv("MENDFLOW_RESULT"),
	}
	code, err := w.perform()
	if err == nil {
		err = w.log(Event{Kind: "end"}, nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scripted worker:", err)
		return 70
	}
	return code
}

func (w *worker) perform() (int, error) {
	if w.run == "" || w.node == "" || w.attempt == "" || w.tree == "" || w.resultFile == "" {
		return 0, errors.New("read environment: MENDFLOW_RUN, _NODE, _ATTEMPT, _WORKTREE or _RESULT is missing")
	}
	if err := w.log(Event{Kind: "start"}, count); err != nil {
		return 0, err
	}
	script, err := w.control.script(w.run, w.node, w.attempt)
	if err != nil {
		return 0, err
	}
	script = strings.NewReplacer("{node}", w.node, "{run}", w.run, "{attempt}", w.attempt).Replace(script)
	for line := range strings.Lines(script) {
		step, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if step == "exit" {
			return strconv.Atoi(rest)
		}
		if err := w.step(step, rest); err != nil {
			return 0, fmt.Errorf("step %q: %w", strings.TrimSpace(line), err)
		}
	}
	return 0, nil
}

// count fills in who is alive when a worker starts.
func count(e *Event, before []Event) {
	ended := map[Identity]bool{}
	for _, b := range before {
		if b.Kind == "end" {
			ended[b.Process] = true
		}
	}
	e.Alive = 1
	for _, b := range before {
		if b.Kind != "start" || ended[b.Process] || !alive(b.Process) {
			continue
		}
		e.Alive++
		if b.Node == e.Node {
			e.Twins++
		}
	}
}

func (w *worker) log(e Event, prepare func(*Event, []Event)) error {
	e.Node, e.Attempt, e.Process, e.Tree = w.node, w.attempt, identify(os.Getpid()), w.tree
	return w.control.append(w.run, e, prepare)
}

func (w *worker) step(step, rest string) error {
	path, text, _ := strings.Cut(rest, " ")
	switch step {
	case "", "#":
		return nil
	case "mark":
		return w.mark(rest)
	case "write":
		return w.put(path, text+"\n", os.O_TRUNC)
	case "append":
		return w.put(path, text+"\n", os.O_APPEND)
	case "remove":
		return os.Remove(filepath.Join(w.tree, rest))
	case "result":
		return w.result(strings.Fields(rest))
	case "raw":
		return os.WriteFile(w.resultFile, []byte(rest), 0o600)
	case "say":
		_, err := fmt.Fprintln(os.Stdout, rest)
		return err
	case "cry":
		_, err := fmt.Fprintln(os.Stderr, rest)
		return err
	case "prompt":
		return w.prompt()
	case "tell":
		return w.control.Tell(w.run, rest)
	case "wait":
		for !w.control.Told(w.run, rest) {
			time.Sleep(poll)
		}
		return nil
	case "work":
		d, err := time.ParseDuration(rest)
		time.Sleep(d)
		return err
	case "orphan":
		return w.orphan()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		return nil
	case "hang":
		hang()
	}
	return errors.New("unknown step")
}

// mark makes an edit that nobody else makes. It is logged after it was made: a
// worker that is killed in between made an edit that nobody asks for.
func (w *worker) mark(path string) error {
	w.marks++
	mark := fmt.Sprintf("mark %s/%s/a%s/%d", w.run, w.node, w.attempt, w.marks)
	if err := w.put(path, mark+"\n", os.O_APPEND); err != nil {
		return err
	}
	return w.log(Event{Kind: "mark", Mark: mark}, nil)
}

func (w *worker) put(path, text string, how int) error {
	path = filepath.Join(w.tree, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(text); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// prompt prints what the worker was told.
func (w *worker) prompt() error {
	data, err := os.ReadFile(os.Getenv("MENDFLOW_PROMPT"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		fmt.Fprint(os.Stdout, "told: ", line)
	}
	return nil
}

// result writes the result file in one step, as a careful worker does.
func (w *worker) result(answers []string) error {
	type item struct {
		Finding string `json:"finding"`
		Status  string `json:"status"`
		Reason  string `json:"reason,omitempty"`
	}
	var items []item
	for _, answer := range answers {
		finding, status, found := strings.Cut(answer, "=")
		if !found {
			finding, status = "F-"+w.node, answer
		}
		i := item{Finding: finding, Status: status}
		if status != "resolved" {
			i.Reason = "the script says " + status
		}
		items = append(items, i)
	}
	data, err := json.Marshal(map[string]any{"items": items, "summary": "by the scripted worker"})
	if err != nil {
		return err
	}
	temp := w.resultFile + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, w.resultFile)
}

// orphan leaves a process that a stop of this one's group does not reach.
func (w *worker) orphan() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, orphanProgram)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	e := Event{Kind: "orphan", Node: w.node, Attempt: w.attempt, Process: identify(cmd.Process.Pid)}
	return w.control.append(w.run, e, nil)
}

func hang() {
	for {
		time.Sleep(time.Hour)
	}
}
