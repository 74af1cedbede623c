package process

import (
	"syscall"
	"time"
)

// ladder is the way in which a program is ended: the signal that it likes best,
// TERM, and KILL for what is left. It travels to the supervisor as JSON.
type ladder struct {
	First      syscall.Signal `json:"first"`
	FirstGrace time.Duration  `json:"first_grace"`
	TermGrace  time.Duration  `json:"term_grace"`
}

func (s *Spec) ladder() ladder {
	l := ladder{First: s.StopSignal, FirstGrace: orDefault(s.StopGrace, MinTermGrace), TermGrace: s.termGrace()}
	if l.First == syscall.SIGTERM || l.First == syscall.SIGKILL {
		l.First = 0
	}
	return l
}

// next is the signal after the given one (0 at the start) and the time that it gets.
func (l ladder) next(latest syscall.Signal) (syscall.Signal, time.Duration) {
	switch {
	case latest == 0 && l.First != 0:
		return l.First, l.FirstGrace
	case latest == 0 || latest == l.First && l.First != 0:
		return syscall.SIGTERM, l.TermGrace
	default:
		return syscall.SIGKILL, 0
	}
}

// total is the longest that the ladder takes until KILL.
func (l ladder) total() time.Duration {
	if l.First == 0 {
		return l.TermGrace
	}
	return l.FirstGrace + l.TermGrace
}
