package quota

import "strings"

// hearing collects what the provider says in one launch.
type hearing struct {
	calendar
	stdout  bool // plain text is read strictly: a model may have written it
	failed  bool // the program did not end with status 0
	said    []spoken
	windows map[string]window // by kind of limit, as events report them
	order   []string          // of windows
	plain   plainText
}

// spoken is a statement and what may take it back.
type spoken struct {
	statement
	final bool // the program gave up with it
}

// role of an event in a stream.
type eventRole uint8

const (
	neutral   eventRole = iota
	progress            // the model worked on: what came before was survived
	completed           // the turn ended well
	retrying
	failing // an error that the program may survive
	fatal
)

// event takes up one JSON object of a stream.
func (h *hearing) event(v value) {
	if p := v.get("payload"); p.kind == object { // rollout line of codex
		h.event(p)
		return
	}
	if info := v.get("rate_limit_info", "rate_limits"); info.kind == object {
		h.limits(info)
		if v.get("error").kind == absent {
			return
		}
	}
	role := roleOf(v)
	switch role {
	case neutral:
	case progress:
		h.forgive(false)
	case completed:
		if !h.echoes(v.get("result").str()) {
			h.forgive(true)
		}
	default:
		h.hear(v, role)
	}
}

// hear records an error event.
func (h *hearing) hear(v value, role eventRole) {
	var f facts
	if v.get("type").str() == "assistant" || v.get("message").kind == object && v.get("message").get("content").kind != absent {
		for _, m := range v.members {
			if m.key != "message" {
				f.member(h.calendar, m, 0, false)
			}
		}
		for _, part := range v.get("message").get("content").members {
			f.say(h.calendar, part.val.get("text").str(), 0)
		}
		f.say(h.calendar, v.get("message").get("content").str(), 0)
	} else {
		f.gather(h.calendar, v, 0)
	}
	s := h.statement(f, "")
	if role == failing && s.announcesRetry() {
		role = retrying
	}
	if role == retrying {
		s.retry = true
		for i := range s.waits {
			s.waits[i].own = !s.waits[i].header
		}
	}
	if role == fatal && s.informs() || role == retrying {
		h.dropRetries()
	}
	h.add(spoken{statement: s, final: role == fatal})
}

// maxSaid bounds the statements of one launch. Of more, the ones in the middle
// are forgotten.
const maxSaid = 256

func (h *hearing) add(s spoken) {
	if len(h.said) >= maxSaid {
		h.said = append(h.said[:maxSaid/4], h.said[maxSaid/2:]...)
	}
	h.said = append(h.said, s)
}

// informs tells whether a statement says anything about a cause.
func (s *statement) informs() bool {
	if len(s.statuses) > 0 {
		return true
	}
	for _, t := range s.texts {
		if strings.TrimSpace(t) != "" {
			return true
		}
	}
	return false
}

func (s *statement) announcesRetry() bool {
	for i := range s.readings {
		if len(retryLine.find(s.readings[i].toks)) > 0 {
			return true
		}
	}
	return false
}

var retryLine = newLexicon([]group{{anchorOwn, "retry", `
	reconnecting
	retrying
	attempt ~2 failed`}})

func (h *hearing) dropRetries() {
	kept := h.said[:0]
	for _, s := range h.said {
		if !s.retry {
			kept = append(kept, s)
		}
	}
	h.said = kept
}

// forgive drops what the program survived. A turn that ended well forgives
// more than mere progress, which may come from work already under way.
func (h *hearing) forgive(ended bool) {
	h.dropRetries()
	kept := h.said[:0]
	for _, s := range h.said {
		if s.final && !ended {
			kept = append(kept, s)
		}
	}
	h.said = kept
}

// echoes tells whether an answer only repeats what the provider said.
func (h *hearing) echoes(answer string) bool {
	if strings.TrimSpace(answer) == "" {
		return true
	}
	for _, s := range h.said {
		for _, t := range s.texts {
			if strings.TrimSpace(t) == strings.TrimSpace(answer) {
				return true
			}
		}
	}
	return false
}

// limits takes up a report of windows; the newest report of a kind holds.
func (h *hearing) limits(info value) {
	var f facts
	f.gather(h.calendar, info, 0)
	for _, w := range f.windows {
		if w.name == "" {
			w.name = "window"
		}
		if _, seen := h.windows[w.name]; !seen {
			if len(h.order) >= maxSaid {
				return
			}
			h.order = append(h.order, w.name)
		}
		if h.windows == nil {
			h.windows = make(map[string]window)
		}
		h.windows[w.name] = w
	}
}

// roleOf tells what an event is, by the shape that programs have in common.
func roleOf(v value) eventRole {
	kindOf := strings.ToLower(v.get("type", "event").str())
	sub := strings.ToLower(v.get("subtype").str())
	message := v.get("message")
	synthetic := message.get("model").str() == "<synthetic>" ||
		v.get("is_api_error_message", "isApiErrorMessage").yes()
	switch {
	case strings.Contains(kindOf, "retry") || strings.Contains(sub, "retry"),
		kindOf == "system" && strings.Contains(sub, "error"):
		return retrying
	case kindOf == "error" && strings.EqualFold(v.get("severity", "level").str(), "warning"):
		return neutral
	case synthetic:
		return failing
	case kindOf == "result":
		if v.get("is_error").yes() || v.get("status").str() == "error" || strings.HasPrefix(sub, "error") {
			return fatal
		}
		return completed
	case strings.HasPrefix(kindOf, "item"):
		if v.get("item").get("type").str() == "error" {
			return neutral // a warning of codex
		}
		return progress
	case kindOf == "user" || kindOf == "tool_result" || kindOf == "system" || message.get("role").str() == "user":
		return neutral
	case kindOf == "turn.completed" || kindOf == "response.completed":
		return completed
	case strings.HasSuffix(kindOf, "failed") || kindOf == "task_complete" && v.get("error").kind == object:
		return fatal
	case errorShape(v, kindOf):
		if kindOf == "assistant" && v.get("error").kind == absent {
			return progress
		}
		return failing
	case kindOf == "assistant" || kindOf == "text" || kindOf == "message" || kindOf == "reasoning" ||
		strings.HasPrefix(kindOf, "tool") || strings.HasPrefix(kindOf, "step") || strings.HasPrefix(kindOf, "content_block") ||
		strings.HasPrefix(kindOf, "agent") || strings.HasPrefix(kindOf, "response.output"):
		return progress
	case kindOf == "" && (v.get("detail").kind == text || numericCode(v)):
		return failing // the body of a response, passed on as it came
	case kindOf == "" && strings.EqualFold(v.get("level", "severity").str(), "error") && v.get("message", "msg").kind == text:
		return failing // a log line of the program itself
	}
	return neutral
}

// errorShape tells whether an object is an error report.
func errorShape(v value, kindOf string) bool {
	if kindOf == "error" || strings.HasSuffix(kindOf, ".error") || strings.HasSuffix(kindOf, "_error") {
		return true
	}
	switch e := v.get("error", "errors"); e.kind {
	case object, array:
		return len(e.members) > 0
	case text:
		return len(e.raw) > 0
	default:
	}
	base := v.get("base_resp").get("status_code").str()
	return base != "" && base != "0"
}
