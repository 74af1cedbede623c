package quota

import (
	"strings"
	"unicode"
)

// addLine takes up a cleaned line.
func (p *plainText) addLine(line string) {
	if !p.seen && strings.TrimSpace(line) != "" {
		p.seen = true
		p.log = logPrefix(line) > 0
	}
	quiet := false
	if p.log {
		line = line[logPrefix(line):]
		level := logLevel(strings.TrimSpace(line))
		if quiet = level == "info" || level == "debug" || level == "trace"; !quiet && level != "" {
			p.reported = p.reported || level == "error"
			line = afterLevel(line)
		}
	}
	if quiet || p.noise(line) {
		p.separate()
		return
	}
	p.lines = append(p.lines, line)
}

// noise tells whether a line is a diff, source code, test or tool output, a
// quotation or a log of something else.
func (p *plainText) noise(line string) bool {
	body := strings.TrimSpace(line)
	if p.fence || p.diff {
		return true
	}
	if len(line) > 1 && line[0] == '+' && (line[1] < '0' || line[1] > '9') {
		return true // an added line without the head of its diff
	}
	for _, prefix := range noisePrefixes {
		if strings.HasPrefix(body, prefix) {
			return true
		}
	}
	if level := logLevel(body); level == "info" || level == "debug" || level == "trace" {
		return true
	}
	if p.strict && (strings.HasPrefix(body, "* ") || strings.HasPrefix(body, "- ")) {
		return true // a list in an answer
	}
	return sourcePosition(body) || sourceCode(body) || stackFrame(body) || report(body)
}

// report tells whether a line is the result of one test, a commit subject, a
// row of a table or a line of a numbered listing.
func report(s string) bool {
	if strings.HasPrefix(s, "test ") && (strings.HasSuffix(s, "FAILED") || strings.HasSuffix(s, " ok")) {
		return true
	}
	if strings.HasPrefix(s, "|") && strings.Count(s, "|") > 2 {
		return true
	}
	head, rest, ok := strings.Cut(s, ":")
	if !ok || head == "" {
		return false
	}
	if commitKinds[firstWord(head)] {
		return true
	}
	return rest != "" && unicode.IsLetter(rune(rest[0])) && strings.Trim(head, "0123456789") == ""
}

var commitKinds = set("feat", "fix", "chore", "docs", "refactor", "perf", "ci", "style", "revert")

// stackFrame tells whether a line is one of a stack trace: "at f (x.js:1:2)".
func stackFrame(s string) bool {
	return strings.HasPrefix(s, "at ") && (strings.Contains(s, ".js:") || strings.Contains(s, ".ts:") ||
		strings.Contains(s, "node:") || strings.Contains(s, "<anonymous>") || strings.Contains(s, ".java:") || strings.Contains(s, "file://")) ||
		strings.HasPrefix(s, `File "`)
}

// noisePrefixes start lines that no provider writes: test runners, package
// managers and other tools, quotations, speakers.
var noisePrefixes = []string{
	"HTTP/", "< ", "thread '", "--- FAIL", "--- PASS", "--- SKIP", "=== ", "FAIL\t", "FAIL ", "ok  \t", "PASS", "not ok ", "ok ", "FAILED ", "E   ", "E  ",
	"AssertionError", "assert", "Traceback", "panic: ", "goroutine ",
	"npm ", "pnpm ", "yarn ", "pip ", "curl: ", "wget: ", "git: ", "fatal: ", "remote: ", "docker: ", "go: ", "gh: ", "make: ", "make[",
	"cargo ", "ERROR: pip", "hint: ", "toomanyrequests: ", "bash: ", "sh: ", "zsh: ", "$ ", "% ", "# ", "## ", "### ",
	"> ", ">> ", "//", "/*", "--", "<!--", "user:", "User:", "human:", "Human:", "prompt:", "Prompt:", "assistant:", "Assistant:",
	"system:", "System:", "tool:", "Tool:", "thinking:", "Thinking:", "task:", "Task:", "⏺",
}

// sourcePosition tells whether a line starts with file.ext:41: as compilers,
// tests and grep print it.
func sourcePosition(s string) bool {
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		end = len(s)
	}
	name, rest, ok := strings.Cut(s[:end], ":")
	if !ok || name == "" || !strings.Contains(name, ".") || len(name) > 200 || strings.Contains(name, "//") {
		return false
	}
	return rest != "" && rest[0] >= '0' && rest[0] <= '9' && !unicode.IsDigit(rune(name[len(name)-1]))
}

// sourceCode tells whether a line is a statement of a program.
func sourceCode(s string) bool {
	if strings.HasSuffix(s, "{") && !strings.HasSuffix(s, ": {") || strings.HasSuffix(s, ";") || strings.HasSuffix(s, "};") {
		return !strings.Contains(s, "Error")
	}
	for _, start := range []string{"const ", "var ", "let ", "func ", "def ", "class ", "import ", "return ", "if (", "if err", "for (", "public ", "private "} {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return strings.Contains(s, ":= ") || strings.Contains(s, " == ") || strings.Contains(s, " => ") || strings.Contains(s, ` = "`)
}

// logLevel gives the level of a line such as "INFO text", "[warn] text" or
// "level=info msg=…", in lower case.
func logLevel(s string) string {
	if i := strings.Index(s, "level="); i >= 0 && i < 60 {
		rest := strings.TrimLeft(s[i+6:], `"`)
		return strings.ToLower(firstWord(rest))
	}
	s = strings.TrimLeft(s, "[<(")
	w := firstWord(s)
	switch w {
	case "INFO", "DEBUG", "TRACE", "info", "debug", "trace", "Info", "Debug", "ERROR", "WARN", "WARNING", "FATAL":
		if rest := s[len(w):]; rest == "" || strings.ContainsRune(" ]:>)|\t", rune(rest[0])) {
			return strings.ToLower(w)
		}
	}
	return ""
}

// afterLevel passes over the level at the start of a line.
func afterLevel(line string) string {
	body := strings.TrimLeft(line, " \t[<(")
	if strings.HasPrefix(body, "level=") {
		return line
	}
	return strings.TrimLeft(body[len(firstWord(body)):], "]>):|-")
}

func firstWord(s string) string {
	for i, r := range s {
		if !unicode.IsLetter(r) {
			return s[:i]
		}
	}
	return s
}

// logPrefix gives the length of a logger's timestamp at the start of a line:
// a date with a clock, or a clock with seconds, perhaps in brackets.
func logPrefix(s string) int {
	i := len(s) - len(strings.TrimLeft(s, " \t"))
	start := i
	digits, colons := 0, 0
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == ':':
			colons++
		case c == 'T' && digits >= 8, c == 'Z' && colons >= 1:
		case strings.IndexByte("-/.,+[]", c) >= 0:
		case c == ' ' && digits >= 8 && colons == 0: // between date and clock
		default:
			if c != ' ' && c != '\t' || colons < 2 || digits < 6 || i == start {
				return 0
			}
			for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
				i++
			}
			return i
		}
	}
	if colons < 2 || digits < 6 {
		return 0
	}
	return i
}
