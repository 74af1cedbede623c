package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// makeRepository makes the yardstick repository: files of about 1.2 KB, 100 a
// folder, in one commit whose id depends on nothing but their number.
func makeRepository(dir string, files int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", dir},
		{"-C", dir, "config", "user.email", "bench@example.com"},
		{"-C", dir, "config", "user.name", "b"},
		{"-C", dir, "config", "gc.auto", "0"},
	} {
		if err := command("git", args...).run(); err != nil {
			return err
		}
	}
	if err := importFiles(dir, files); err != nil {
		return err
	}
	return command("git", "-C", dir, "reset", "-q", "--hard").run()
}

func importFiles(dir string, files int) error {
	cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start fast-import: %w", err)
	}
	writeErr := writeImport(in, files)
	if err := in.Close(); writeErr == nil {
		writeErr = err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("import files: %w", err)
	}
	return writeErr
}

func writeImport(to io.Writer, files int) error {
	w := bufio.NewWriterSize(to, 1<<16)
	random := newTwister(7)
	fmt.Fprint(w, "commit refs/heads/main\ncommitter b <bench@example.com> 1700000000 +0000\ndata 4\nbase\n")
	ignored := "node_modules/\n.audit-tools/\n"
	fmt.Fprintf(w, "M 100644 inline .gitignore\ndata %d\n%s\n", len(ignored), ignored)
	var body []byte
	for i := range files {
		body = fmt.Appendf(body[:0], "// file %d\n", i)
		for j := range 25 {
			body = fmt.Appendf(body, "line %d %x\n", j, random.bits160())
		}
		fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", sourceFile(i), len(body), body)
	}
	return w.Flush()
}

// sourceFile is the path of a file of the repository, the one that node i edits.
func sourceFile(i int) string { return fmt.Sprintf("src/d%03d/f%06d.txt", i/100, i) }
