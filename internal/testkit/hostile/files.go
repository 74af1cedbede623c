package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func init() {
	edit := func(path string) misdeed {
		return func(v *villain) (int, error) {
			if err := v.mark(path); err != nil {
				return 0, err
			}
			return 0, v.honest()
		}
	}
	register(map[string]misdeed{
		"edits-gate":          edit("Makefile"),
		"edits-ci":            edit(".github/workflows/ci.yml"),
		"edits-gitignore":     edit("edits-gitignore/.gitignore"),
		"edits-forbidden":     edit("docs/rules.md"),
		"edits-undeclared":    edit("nobody/owns.txt"),
		"edits-other-node":    edit("victim/work.txt"),
		"edits-verification":  edit("script/verify.sh"),
		"writes-through-link": (*villain).writesThroughLink,
		"hides-source":        (*villain).hidesSource,
		"leaves-scratch":      (*villain).leavesScratch,
		"writes-crlf":         (*villain).writesCRLF,
		"special-files":       (*villain).specialFiles,
		"odd-names":           (*villain).oddNames,
	})
}

// writesThroughLink reaches a protected file by another name.
func (v *villain) writesThroughLink() (int, error) {
	if err := v.honest(); err != nil {
		return 0, err
	}
	if err := os.Symlink("../docs", v.in(v.node+"/link")); err != nil {
		return 0, err
	}
	return 0, v.mark(v.node + "/link/rules.md")
}

// hidesSource writes a new source file where an ignore rule hides it.
func (v *villain) hidesSource() (int, error) {
	if err := v.write(v.node+"/build/new.go", "package build\n"); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

// leavesScratch leaves logs and temporary files where nobody asked for them.
func (v *villain) leavesScratch() (int, error) {
	for _, path := range []string{"debug.log", "session.tmp", "tmp/plan.md", ".claude/notes.md"} {
		if err := v.mark(path); err != nil {
			return 0, err
		}
	}
	return 0, v.honest()
}

// writesCRLF rewrites the line ends of every file.
func (v *villain) writesCRLF() (int, error) {
	if err := v.honest(); err != nil {
		return 0, err
	}
	return 0, filepath.WalkDir(v.tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == ".git" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), 0o644)
	})
}

// specialFiles puts a pipe and a socket where files are read.
func (v *villain) specialFiles() (int, error) {
	if err := syscall.Mkfifo(v.in(v.node+"/pipe.go"), 0o644); err != nil {
		return 0, err
	}
	// The path of a socket is short; a folder of the tree is reached from inside it.
	if err := os.Chdir(v.in(v.node)); err != nil {
		return 0, err
	}
	listener, err := net.Listen("unix", "socket.go")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	return 0, v.honest()
}

// oddNames uses every name that a file may have.
func (v *villain) oddNames() (int, error) {
	for _, name := range []string{"-rf", "two\nlines", "tab\tand \"quotes\"", "ünï", "u\u0308", "\xff\xfe", " ", "a b'c", "*", strings.Repeat("n", 200)} {
		if err := v.write(v.node+"/"+name, "odd\n"); err != nil && !errors.Is(err, syscall.EILSEQ) {
			return 0, err
		}
	}
	return 0, v.honest()
}
