package gate

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// maxReportBytes bounds one JUnit file, maxReports their number: a worker's code writes them.
const (
	maxReportBytes = 32 << 20
	maxReports     = 5000
)

// pytestReport is where a plain pytest is told to write its JUnit file, in the folder that it runs in.
const pytestReport = ".mendflow-junit.xml"

// reportGlobs says where a command writes JUnit files, from its folder; nil: nowhere known.
func reportGlobs(c contract.GateCommand) []string {
	words := program(c.Command)
	if len(words) == 0 {
		return nil
	}
	switch path.Base(words[0]) {
	case "mvn", "mvnw":
		return []string{"**/target/surefire-reports/TEST-*.xml"}
	case "gradle", "gradlew":
		return []string{"**/build/test-results/**/TEST-*.xml"}
	}
	if pytestAt(words) >= 0 {
		return []string{pytestReport}
	}
	return nil
}

// pytestAt returns where a pytest that writes no JUnit file of its own stands in an argv, or -1.
func pytestAt(words []string) int {
	for i, w := range words {
		if path.Base(w) == "pytest" {
			for _, arg := range words[i+1:] {
				if strings.HasPrefix(arg, "--junit") {
					return -1
				}
			}
			return i
		}
	}
	return -1
}

// withJUnit returns the command to start: a plain pytest is asked for a JUnit file.
func withJUnit(c contract.GateCommand) plan.Command {
	at := pytestAt(c.Command.Argv)
	if at < 0 {
		return c.Command
	}
	return plan.Command{Argv: slices.Insert(slices.Clone(c.Command.Argv), at+1, "--junitxml="+pytestReport)}
}

// junitSuite is a suite or a list of suites: both nest.
type junitSuite struct {
	Suites []junitSuite `xml:"testsuite"`
	Cases  []junitCase  `xml:"testcase"`
}

type junitCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Failure *struct{} `xml:"failure"`
	Error   *struct{} `xml:"error"`
}

// JUnit reads the ids of the failed tests of one JUnit file.
func JUnit(r io.Reader) ([]string, error) {
	var root junitSuite
	if err := xml.NewDecoder(r).Decode(&root); err != nil {
		return nil, fmt.Errorf("parse junit file: %w", err)
	}
	return root.failed(nil), nil
}

func (s junitSuite) failed(ids []string) []string {
	for _, c := range s.Cases {
		if c.Failure != nil || c.Error != nil {
			ids = append(ids, strings.Join(strings.Fields(c.Class+": "+c.Name), " "))
		}
	}
	for _, sub := range s.Suites {
		ids = sub.failed(ids)
	}
	return ids
}

// reportFiles are the JUnit files of a tree that a command may write, with what tells one version from the next.
type reportFiles map[string]string

// listReports finds them. It is called before and after a command: a file that
// the command did not write, left over or committed, says nothing about it.
func listReports(tree fs.FS, c contract.GateCommand) (reportFiles, error) {
	out := reportFiles{}
	for _, glob := range reportGlobs(c) {
		names, err := doublestar.Glob(tree, path.Join(c.Dir, glob), doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			return nil, fmt.Errorf("list junit files: %w", err)
		}
		if len(names) > maxReports {
			return nil, fmt.Errorf("list junit files: %d files match %s", len(names), glob)
		}
		for _, name := range names {
			info, err := fs.Stat(tree, name)
			if err != nil {
				return nil, fmt.Errorf("list junit files: %w", err)
			}
			out[name] = fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
		}
	}
	return out, nil
}

// junitFailures reads the files that the command wrote, and which steps its output
// says failed: a lint task that is red next to a known red test must not hide behind it.
func junitFailures(tree fs.FS, c contract.GateCommand, before reportFiles, output string) (Failures, error) {
	after, err := listReports(tree, c)
	if err != nil {
		return Failures{}, err
	}
	var f Failures
	for name, version := range after {
		if before[name] == version {
			continue
		}
		ids, err := readJUnit(tree, name)
		if err != nil {
			return Failures{}, err
		}
		f.IDs = append(f.IDs, ids...)
	}
	f.IDs = append(f.IDs, failedSteps(output)...)
	return f.settle(), nil
}

var (
	gradleStep = regexp.MustCompile(`(?m)^Execution failed for task '([^'\n]+)'`)
	mavenStep  = regexp.MustCompile(`(?m)^\[ERROR\] Failed to execute goal (\S+) \(([^)\n]*)\) on project ([^:\s]+)`)
)

func failedSteps(output string) []string {
	var ids []string
	for _, m := range gradleStep.FindAllStringSubmatch(output, -1) {
		ids = append(ids, "gradle: "+m[1])
	}
	for _, m := range mavenStep.FindAllStringSubmatch(output, -1) {
		ids = append(ids, "maven "+m[3]+": "+m[1]+" "+m[2])
	}
	return ids
}

func readJUnit(tree fs.FS, name string) (ids []string, err error) {
	file, err := tree.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open junit file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return JUnit(io.LimitReader(file, maxReportBytes))
}
