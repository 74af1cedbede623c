package main

import (
	"os"
	"strings"
	"syscall"
)

func init() {
	register(map[string]misdeed{
		"honest":           func(v *villain) (int, error) { return 0, v.honest() },
		"victim":           func(v *villain) (int, error) { return 0, v.honest() },
		"broken-result":    (*villain).brokenResult,
		"result-link":      (*villain).resultLink,
		"result-pipe":      (*villain).resultPipe,
		"result-huge":      (*villain).resultHuge,
		"result-folder":    (*villain).resultFolder,
		"foreign-findings": (*villain).foreignFindings,
		"nothing-done":     (*villain).nothingDone,
		"claims-resolved":  (*villain).claimsResolved,
		"claims-no-change": (*villain).claimsNoChange,
		"asks-and-exits":   (*villain).asksAndExits,
		"old-result":       (*villain).oldResult,
	})
}

func (v *villain) brokenResult() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, os.WriteFile(v.result, []byte(`{"items":[{"finding":"F-`+v.node+`","status":"done"}]}`), 0o600)
}

// resultLink lets the result be another file of the host.
func (v *villain) resultLink() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, os.Symlink("/etc/passwd", v.result)
}

// resultPipe lets whoever reads the result wait for ever.
func (v *villain) resultPipe() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, syscall.Mkfifo(v.result, 0o644)
}

func (v *villain) resultHuge() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, v.deliver(answer{Finding: "F-" + v.node, Status: "resolved", Reason: strings.Repeat("because ", 1<<20)})
}

func (v *villain) resultFolder() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, os.Mkdir(v.result, 0o755)
}

// foreignFindings answers for the findings of another node and leaves its own out.
func (v *villain) foreignFindings() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, v.deliver(answer{Finding: "F-victim", Status: "resolved"}, answer{Finding: "F-unheard-of", Status: "resolved"})
}

func (v *villain) nothingDone() (int, error) { return 0, nil }

func (v *villain) claimsResolved() (int, error) { return 0, v.deliver() }

// claimsNoChange says that nothing had to be changed, and changes it.
func (v *villain) claimsNoChange() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, v.deliver(answer{Finding: "F-" + v.node, Status: "no_change", Reason: "it was right already"})
}

func (v *villain) asksAndExits() (int, error) {
	_, err := os.Stdout.WriteString("Shall I go on and change the file? Please answer yes or no.\n")
	return 0, err
}

// oldResult delivers in its first attempt and fails; its second delivers nothing.
func (v *villain) oldResult() (int, error) {
	if !v.first() {
		return 0, v.work()
	}
	if err := v.deliver(answer{Finding: "F-" + v.node, Status: "resolved"}); err != nil {
		return 0, err
	}
	return 0, v.mark("nobody/owns.txt")
}
