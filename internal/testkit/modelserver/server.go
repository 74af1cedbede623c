// Package modelserver is a model for tests: a server on loopback that speaks
// what agent programs speak (Anthropic's messages, OpenAI's responses and chat
// completions, Gemini's generateContent) and answers what a test's script says.
// With it real programs run without a vendor, a key or a cost. What it shows is
// our plumbing and the programs' behaviour, not a model's skill.
//
//   - server.go: the server, its script and what was asked.
//   - anthropic.go, responses.go, chat.go, gemini.go: one wire format each.
package modelserver

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Wire is a wire format.
type Wire string

// Wire formats.
const (
	Anthropic Wire = "anthropic"
	Responses Wire = "responses"
	Chat      Wire = "chat"
	Gemini    Wire = "gemini"
)

// Ask is a request of a program, as far as scripts want to know it.
type Ask struct {
	Wire    Wire
	Model   string
	Prompt  string // text of the last message that a user wrote
	Results int    // of tools, since that message
	// Shell is the name of the tool that runs a command line; empty: the request
	// offers none, as the programs' own small requests (a title) do.
	Shell  string
	Tools  []string // all that the request offers
	Body   []byte
	Header http.Header

	tools []toolOffer
}

// Turn is an answer. The zero value is an empty one.
type Turn struct {
	Text  string
	Shell string // a command line to run by a tool call
	// Tool and Input are any other tool call.
	Tool  string
	Input map[string]any
	// Refuse answers with a status instead.
	Refuse *Refusal
	// Hang keeps the request open until the program gives up or the server ends.
	Hang bool
	// Cut breaks the connection off in the middle of the answer.
	Cut bool
	// After waits before answering.
	After time.Duration
}

// Refusal is a response that is no answer.
type Refusal struct {
	Status  int
	Headers map[string]string
	Body    string
}

// Server answers programs. Make it with [Start].
type Server struct {
	URL string

	http   *httptest.Server
	script func(Ask) Turn
	ended  chan struct{}
	mu     sync.Mutex
	asked  []Ask
}

// Start starts a server on loopback; Close ends it. The script is called for
// every request, from several goroutines.
func Start(script func(Ask) Turn) *Server {
	s := &Server{script: script, ended: make(chan struct{})}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	return s
}

// Close ends the server and every request that it keeps.
func (s *Server) Close() {
	close(s.ended)
	s.http.CloseClientConnections()
	s.http.Close()
}

// Asked are the requests so far, in order.
func (s *Server) Asked() []Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Usage is what every answer says that it used.
const (
	InputTokens  = 1000
	OutputTokens = 34
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var format format
	switch {
	case r.Method != http.MethodPost:
		http.NotFound(w, r)
		return
	case strings.HasSuffix(r.URL.Path, "/messages"):
		format = &anthropic{}
	case strings.HasSuffix(r.URL.Path, "/responses"):
		format = &responses{}
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		format = &chat{}
	case strings.Contains(r.URL.Path, ":generateContent"), strings.Contains(r.URL.Path, ":streamGenerateContent"):
		format = &gemini{path: r.URL.Path}
	default:
		http.NotFound(w, r)
		return
	}
	if err := json.Unmarshal(body, format); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ask := format.ask()
	ask.Body, ask.Header = body, r.Header.Clone()
	for _, t := range ask.tools {
		ask.Tools = append(ask.Tools, t.name)
		if slices.Contains(shells(), t.name) {
			ask.Shell = t.name
		}
	}
	s.mu.Lock()
	s.asked = append(s.asked, ask)
	number := len(s.asked)
	s.mu.Unlock()
	s.answer(&stream{w: w, number: number}, r, format, ask, s.script(ask))
}

func (s *Server) answer(out *stream, r *http.Request, f format, ask Ask, turn Turn) {
	if turn.After > 0 {
		select {
		case <-time.After(turn.After):
		case <-r.Context().Done():
		case <-s.ended:
		}
	}
	switch {
	case turn.Hang:
		select {
		case <-r.Context().Done():
		case <-s.ended:
		}
	case turn.Refuse != nil:
		out.w.Header().Set("Content-Type", "application/json")
		for name, value := range turn.Refuse.Headers {
			out.w.Header().Set(name, value)
		}
		out.w.WriteHeader(turn.Refuse.Status)
		_, _ = io.WriteString(out.w, turn.Refuse.Body)
	default:
		if turn.Shell != "" {
			turn.Tool, turn.Input = ask.Shell, ask.shellInput(turn.Shell)
		}
		out.cut = turn.Cut
		f.write(out, turn)
	}
}

// format is one wire format: it decodes requests and writes answers.
type format interface {
	ask() Ask
	write(*stream, Turn)
}

// shells are the names that programs give the tool that runs a command line.
func shells() []string {
	return []string{"Bash", "bash", "shell", "shell_command", "exec_command", "run_shell_command"}
}

type toolOffer struct {
	name       string
	properties map[string]property
}

type property struct {
	Type any `json:"type"`
}

// shellInput fits a command line to the shell tool's own parameters.
func (a Ask) shellInput(line string) map[string]any {
	at := slices.IndexFunc(a.tools, func(t toolOffer) bool { return t.name == a.Shell })
	if at < 0 {
		return nil
	}
	properties := a.tools[at].properties
	input := map[string]any{}
	if _, ok := properties["cmd"]; ok {
		input["cmd"] = line
	} else if properties["command"].Type == "array" {
		input["command"] = []string{"sh", "-c", line}
	} else {
		input["command"] = line
	}
	if _, ok := properties["description"]; ok {
		input["description"] = "repair"
	}
	if _, ok := properties["is_background"]; ok {
		input["is_background"] = false
	}
	return input
}

// stream writes events of a response; half of them when it is to be cut.
type stream struct {
	w       http.ResponseWriter
	number  int // of the answer: programs take equal ids for the same thing
	cut     bool
	written int
	gone    bool
}

// event writes one server-sent event.
func (s *stream) event(name string, data any) {
	if s.gone {
		return
	}
	if s.written == 0 {
		s.w.Header().Set("Content-Type", "text/event-stream")
	}
	s.written++
	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err) // tests hold plain values
	}
	text := "data: " + string(encoded) + "\n\n"
	if name != "" {
		text = "event: " + name + "\n" + text
	}
	_, _ = io.WriteString(s.w, text)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
	if s.cut && s.written >= 2 {
		s.hangUp()
	}
}

// id makes an id that no other answer has.
func (s *stream) id(kind string) string { return kind + "_" + strconv.Itoa(s.number) }

func (s *stream) hangUp() {
	s.gone = true
	if h, ok := s.w.(http.Hijacker); ok {
		var conn net.Conn
		if conn, _, _ = h.Hijack(); conn != nil {
			_ = conn.Close()
		}
	}
}

// whole writes a response that is no stream.
func (s *stream) whole(data any) {
	s.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(s.w).Encode(data)
}

type object = map[string]any

// encode writes the input of a tool call as JSON.
func encode(input map[string]any) string {
	if input == nil {
		input = map[string]any{}
	}
	data, err := json.Marshal(input)
	if err != nil {
		panic(err) // tests hold plain values
	}
	return string(data)
}
