// Program hostile is a worker that misbehaves: one flag per misdeed. It does the work of its node as
// an honest worker would, and the misdeed before, instead or afterwards. What it tries and is not let
// do it prints as "denied: …", what succeeds as "done: …", so that a test can tell whether a guard was
// there or nothing was tried.
//
// A misdeed that would succeed leaves a file named after the node in the control folder's proofs.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mendflow/internal/testkit"
)

// A misdeed returns the exit code of the program.
type misdeed func(v *villain) (int, error)

// misdeeds by flag. The node of a test's plan has the flag's name.
var misdeeds = map[string]misdeed{}

func register(all map[string]misdeed) {
	for name, m := range all {
		if misdeeds[name] != nil {
			panic("two misdeeds are called " + name)
		}
		misdeeds[name] = m
	}
}

// villain is one life of the program.
type villain struct {
	control             testkit.Control
	hub, state, starter string
	run, node, attempt  string
	tree, result        string
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == remainName {
		remain()
	}
	list := flag.Bool("list", false, "print the misdeeds and exit")
	v := &villain{
		run: os.Getenv("MENDFLOW_RUN"), node: os.Getenv("MENDFLOW_NODE"), attempt: os.Getenv("MENDFLOW_ATTEMPT"),
		tree: os.Getenv("MENDFLOW_WORKTREE"), result: os.Getenv("MENDFLOW_RESULT"),
	}
	flag.StringVar(&v.control.Dir, "control", "", "control folder of the test")
	flag.StringVar(&v.hub, "hub", "", "the user's repository")
	flag.StringVar(&v.state, "state", "", "state folder of the host")
	flag.StringVar(&v.starter, "starter", "", "the program starter")
	chosen := map[string]*bool{}
	for name := range misdeeds {
		chosen[name] = flag.Bool(name, false, "misdeed")
	}
	flag.Parse()
	if *list {
		fmt.Println(strings.Join(slices.Sorted(maps.Keys(misdeeds)), "\n"))
		return
	}
	code, err := 0, errors.New("no misdeed was chosen")
	for name, on := range chosen {
		if *on {
			code, err = misdeeds[name](v)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(70)
	}
	os.Exit(code)
}

// first reports whether this is the node's first attempt; some misdeeds are done once, since each
// of their attempts takes a minute.
func (v *villain) first() bool { return v.attempt == "1" }

// work is what an honest worker does.
func (v *villain) work() error { return v.mark(v.node + "/work.txt") }

// mark makes an edit that must never be lost, and logs it.
func (v *villain) mark(path string) error {
	mark := fmt.Sprintf("mark %s/%s/a%s/%s", v.run, v.node, v.attempt, strings.ReplaceAll(path, "/", "."))
	if err := v.write(path, mark+"\n"); err != nil {
		return err
	}
	return v.control.Record(v.run, testkit.Event{
		Kind: "mark", Node: v.node, Attempt: v.attempt, Mark: mark, Process: testkit.Identify(os.Getpid()),
	})
}

func (v *villain) in(path string) string { return filepath.Join(v.tree, path) }

// write replaces a file of the tree.
func (v *villain) write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(v.in(path)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(v.in(path), []byte(text), 0o644)
}

// answer is one item of a result.
type answer struct {
	Finding  string `json:"finding"`
	Status   string `json:"status"`
	Reason   string `json:"reason,omitempty"`
	Question string `json:"question,omitempty"`
}

// deliver writes a result; without items it says that the node's finding is resolved.
func (v *villain) deliver(items ...answer) error {
	if len(items) == 0 {
		items = []answer{{Finding: "F-" + v.node, Status: "resolved"}}
	}
	data, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return err
	}
	return os.WriteFile(v.result, data, 0o600)
}

// honest does the work and delivers.
func (v *villain) honest() error {
	if err := v.work(); err != nil {
		return err
	}
	return v.deliver()
}

// try prints whether a misdeed was let through.
func (v *villain) try(what string, err error) {
	if err == nil {
		fmt.Println("done:", what)
		return
	}
	fmt.Printf("denied: %s: %v\n", what, err)
}

// overwrite tries to change a file that is none of the worker's business.
func (v *villain) overwrite(path string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = file.WriteString("# by a hostile worker\n")
		_ = file.Close()
	}
	v.try("write "+filepath.Base(path), err)
}

// proof is a command that leaves a file when anybody runs it.
func (v *villain) proof() string {
	return "touch '" + filepath.Join(v.control.Dir, "proofs", v.node) + "'"
}

// below lists the files of a folder that have a name.
func below(dir, name string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == name {
			found = append(found, path)
		}
		return nil
	})
	return found
}
