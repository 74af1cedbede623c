package codex

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"mendflow/internal/contract"
	"mendflow/internal/provider"
)

// rollouts is what the rollout files of a session hold at one time.
type rollouts struct {
	sizes     map[string]int64
	total     contract.Usage // of the session
	lines     [][]byte       // that tell of limits and errors
	completed bool           // the last turn ended well
	windows   []contract.Window
}

// rolloutLine is the part of a line that is read here.
type rolloutLine struct {
	Type    string `json:"type"`
	Payload struct {
		Type  string `json:"type"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
		Info *struct {
			Total *usage `json:"total_token_usage"`
		} `json:"info"`
		Limits *struct {
			Primary   *limitWindow `json:"primary"`
			Secondary *limitWindow `json:"secondary"`
		} `json:"rate_limits"`
	} `json:"payload"`
}

// limitWindow is a quota window of a subscription.
type limitWindow struct {
	UsedPercent *float64 `json:"used_percent"`
	ResetsAt    int64    `json:"resets_at"` // seconds since 1970
}

// window keeps what the program told of a window.
func (r *rollouts) window(name string, w *limitWindow) {
	if w == nil || w.UsedPercent == nil {
		return
	}
	if fact, ok := provider.Window(name, *w.UsedPercent/100, w.ResetsAt); ok {
		r.windows = provider.KeepWindow(r.windows, fact)
	}
}

// maxRollout bounds what is read of one file, from its end.
const maxRollout = 8 << 20

// threadID is the form of a session's id; nothing else may become a part of a path pattern.
var threadID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

// rollouts reads the files of the reader's session: <home>/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl.
// What an earlier look saw is passed over, what cannot be read is left out: stdout
// tells enough to go on.
func (r *reader) rollouts() rollouts {
	found := rollouts{sizes: map[string]int64{}}
	if !threadID.MatchString(r.ID) {
		return found
	}
	files, err := filepath.Glob(filepath.Join(r.home, "sessions", "*", "*", "*", "rollout-*-"+r.ID+".jsonl"))
	if err != nil {
		return found
	}
	slices.Sort(files)
	for _, file := range files {
		found.read(file, r.before.sizes[file])
	}
	return found
}

// read takes up the lines of a file from an offset on.
func (r *rollouts) read(path string, from int64) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	r.sizes[path] = info.Size()
	from = max(from, info.Size()-maxRollout)
	data, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return
	}
	for line := range bytes.Lines(data) {
		r.line(bytes.TrimSpace(line))
	}
}

func (r *rollouts) line(line []byte) {
	var l rolloutLine
	if !provider.Decode(line, &l) || l.Type != "event_msg" {
		return
	}
	switch l.Payload.Type {
	case "token_count":
		if l.Payload.Info != nil && l.Payload.Info.Total != nil {
			r.total = l.Payload.Info.Total.counted()
		}
		if l.Payload.Limits != nil {
			r.window("primary", l.Payload.Limits.Primary)
			r.window("secondary", l.Payload.Limits.Secondary)
		}
	case "task_complete":
		r.completed = l.Payload.Error == nil
	case "task_started":
		r.completed = false
		return
	default:
		return
	}
	r.lines = append(r.lines, bytes.Clone(line))
}
