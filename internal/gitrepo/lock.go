package gitrepo

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// An owner names a process on a host across reboots. It stands in lock reasons and records.
type owner struct {
	Host    string `json:"host"`
	Boot    string `json:"boot"`
	PID     int    `json:"pid"`
	Started string `json:"started"` // start time of the process in clock ticks since boot: tells a reused pid
}

func currentOwner(host string) owner {
	return owner{Host: host, Boot: bootID(), PID: os.Getpid(), Started: processStart(os.Getpid())}
}

// String is how an owner stands in a lock reason: one line without quotes, which git shows as it is.
func (o owner) String() string {
	return fmt.Sprintf("host=%s boot=%s pid=%d started=%s", url.QueryEscape(o.Host), o.Boot, o.PID, o.Started)
}

func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// processStart is field 22 of proc(5) stat, empty when there is no such process.
func processStart(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, found := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// lockPoll is how often a lock held by another process is tried again.
const lockPoll = 5 * time.Millisecond

// A fileLock excludes goroutines of this process by a channel and other processes by a file lock.
type fileLock struct {
	gate chan struct{}
	file *flock.Flock
}

func newFileLock(path string) *fileLock {
	return &fileLock{gate: make(chan struct{}, 1), file: flock.New(path)}
}

func (l *fileLock) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case l.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("lock %s: %w", l.file.Path(), context.Cause(ctx))
	}
	if _, err := l.file.TryLockContext(ctx, lockPoll); err != nil {
		<-l.gate
		return nil, fmt.Errorf("lock %s: %w", l.file.Path(), err)
	}
	return func() {
		// Closing the file releases the lock even where unlocking reports an error.
		_ = l.file.Unlock()
		<-l.gate
	}, nil
}

// LandingLock excludes all other landings of this host on the mirror's hub until unlock is called.
// It is taken after three lost races.
func (s *Store) LandingLock(ctx context.Context, m *Mirror) (unlock func(), err error) {
	return m.state.landing.lock(ctx)
}

// slotLock keeps two copies of an activity from making the same tree at once.
func (s *Store) slotLock(k slot) *fileLock {
	id := adminID(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[id] == nil {
		s.slots[id] = newFileLock(s.path(locksDir, id))
	}
	return s.slots[id]
}
