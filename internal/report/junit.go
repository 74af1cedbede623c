package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode"

	"mendflow/internal/gate"
)

type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Time      string      `xml:"time,attr"`
		Timestamp string      `xml:"timestamp,attr,omitempty"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		Time    string       `xml:"time,attr"`
		File    string       `xml:"file,attr,omitempty"`
		Failure *junitDetail `xml:"failure"`
		Skipped *junitDetail `xml:"skipped"`
	}
	junitDetail struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
)

// JUnit renders the run as JUnit XML: a suite with a test case per finding
// (repaired: passed; left by decision or dropped: skipped; else failed), and one with a test
// case per command of the last gate.
func JUnit(m Model) ([]byte, error) {
	all := junitSuites{Name: clean("mendflow " + m.Run), Suites: []junitSuite{findingsSuite(m)}}
	if g := m.lastGate(); g != nil {
		all.Suites = append(all.Suites, gateSuite(*g))
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		s.Tests = len(s.Cases)
		s.Failures = count(s.Cases, func(c junitCase) bool { return c.Failure != nil })
		s.Skipped = count(s.Cases, func(c junitCase) bool { return c.Skipped != nil })
		all.Tests, all.Failures, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Skipped+s.Skipped
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	enc := xml.NewEncoder(&b)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return nil, fmt.Errorf("encode junit: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func findingsSuite(m Model) junitSuite {
	s := junitSuite{Name: clean("findings of " + m.PlanID), Time: seconds(float64(m.Usage.Seconds))}
	if !m.StartedAt.IsZero() {
		s.Timestamp = m.StartedAt.UTC().Format(time.DateOnly + "T" + time.TimeOnly)
	}
	spent := map[string]int{}
	for _, n := range m.Nodes {
		spent[n.ID] = n.Usage.Seconds
	}
	for _, i := range m.Items {
		c := junitCase{Class: clean(lensOf(string(i.Lens))), Name: clean(i.Finding + ": " + i.Title), Time: seconds(0)}
		if len(i.Files) > 0 {
			c.File = clean(i.Files[0].Path)
		}
		detail := &junitDetail{Message: clean(join(string(i.Status), i.Reason)), Text: clean(itemText(i))}
		switch {
		case i.Status.VerifiedComplete():
			c.Time = seconds(float64(spent[i.Node]))
		case i.Status.Skip():
			c.Skipped = detail
		default:
			c.Failure = detail
		}
		s.Cases = append(s.Cases, c)
	}
	for _, d := range m.Dispositions {
		if d.State == Planned {
			continue
		}
		s.Cases = append(s.Cases, junitCase{
			Class: clean(lensOf(string(d.Lens))), Name: clean(d.Finding + ": " + d.Title), Time: seconds(0),
			Skipped: &junitDetail{Message: clean(join(d.State, d.Reason))},
		})
	}
	return s
}

func lensOf(lens string) string {
	if lens == "" {
		return "finding"
	}
	return lens
}

func itemText(i Item) string {
	var b strings.Builder
	for _, line := range []struct{ name, text string }{
		{"files", places(i.Files)}, {"node", i.Node}, {"question", i.Question}, {"answer", i.Answer}, {"summary", i.Summary},
	} {
		if line.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", line.name, line.text)
		}
	}
	return b.String()
}

func gateSuite(g Gate) junitSuite {
	s := junitSuite{Name: clean(fmt.Sprintf("gate, round %d (%s)", g.Round, g.Purpose)), Time: seconds(g.Seconds)}
	for _, c := range g.Commands {
		x := junitCase{Class: clean("gate." + c.Layer), Name: clean(gate.Name(c.GateCommand)), Time: seconds(c.Seconds)}
		if c.Status == gate.StatusRed {
			x.Failure = &junitDetail{Message: clean(c.Explain()), Text: clean(c.Tail)}
		}
		if c.Status == gate.StatusSkipped {
			x.Skipped = &junitDetail{Message: clean(c.Explain())}
		}
		s.Cases = append(s.Cases, x)
	}
	return s
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// clean removes what XML 1.0 cannot hold.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && r != '\uFFFE' && r != '\uFFFF' {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
