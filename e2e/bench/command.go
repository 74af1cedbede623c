package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// program is a command that is waited for.
type program struct{ *exec.Cmd }

func command(name string, args ...string) program { return program{exec.Command(name, args...)} }

func (p program) in(dir string) program {
	p.Dir = dir
	return p
}

func (p program) run() error {
	_, err := p.output()
	return err
}

// output returns what the program printed; the error carries its complaints.
func (p program) output() (string, error) {
	var out, errOut bytes.Buffer
	p.Stdout, p.Stderr = &out, &errOut
	if err := p.Run(); err != nil {
		return out.String(), fmt.Errorf("run %s: %w: %s", strings.Join(p.Args, " "), err, bytes.TrimSpace(errOut.Bytes()))
	}
	return out.String(), nil
}
