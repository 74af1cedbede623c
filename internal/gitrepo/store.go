package gitrepo

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Settings are what a process knows about its host.
type Settings struct {
	StateDir  string             // absolute after NewStore; holds mirrors, worktrees, records and trash
	HostID    string             // this host's id, stable across restarts; names us in lock reasons
	Log       *slog.Logger       // nil: discarded
	LockGrace time.Duration      // age from which a lock without a live owner is removed; 0: 30 s
	Hook      func(point string) // called at the kill points of landing.md; nil: nothing
	// ShareSalvage: salvage goes to the hub at once. A host that is not the only one may never come
	// back, and nothing that it salvaged may go with it.
	ShareSalvage bool
}

const defaultLockGrace = 30 * time.Second

// Names of the points at which Settings.Hook is called.
const (
	PointWorktreeAdded     = "after-worktree-add"
	PointCommitted         = "after-commit"
	PointMerged            = "after-merge"
	PointBeforeTransaction = "before-transaction"
	PointObjectsSent       = "between-objects-and-transaction"
	PointAfterTransaction  = "after-transaction"
	PointReleasing         = "during-release"
	PointSalvaging         = "during-salvage"
)

// Options are the git section of a plan together with its keep and link folders.
type Options struct {
	Author           string // "Name <mail>"; empty: Mendflow <mendflow@localhost>
	UserConfig       bool   // let git read the system's user configuration
	CredentialHelper string // git's credential.helper for hubs by URL
	LFS              bool   // download LFS files instead of keeping their pointers
	Sign             bool   // sign commits as configured
	Sparse           bool   // check out only the sparse patterns of a worktree
	Keep             []string
	Link             []string
}

// A Store holds the mirrors and worktrees of this host. Close waits for background deletion.
type Store struct {
	settings Settings
	git      *runner
	owner    owner

	mu      sync.Mutex
	mirrors map[string]*mirrorState
	slots   map[string]*fileLock

	background sync.WaitGroup
	leftMu     sync.Mutex
	leftovers  []string
}

// NewStore makes the folders of the state and returns the store over them.
func NewStore(settings Settings) (*Store, error) {
	if settings.HostID == "" {
		return nil, fmt.Errorf("open git store: no host id")
	}
	if settings.Log == nil {
		settings.Log = slog.New(slog.DiscardHandler)
	}
	if settings.LockGrace == 0 {
		settings.LockGrace = defaultLockGrace
	}
	if settings.Hook == nil {
		settings.Hook = func(string) {}
	}
	abs, err := filepath.Abs(settings.StateDir)
	if err != nil {
		return nil, fmt.Errorf("open git store: %w", err)
	}
	s := &Store{mirrors: map[string]*mirrorState{}, slots: map[string]*fileLock{}}
	for _, sub := range []string{mirrorsDir, worktreesDir, throwawayDir, recordsDir, idleDir, trashDir, locksDir} {
		if err := os.MkdirAll(filepath.Join(abs, sub), 0o700); err != nil {
			return nil, fmt.Errorf("open git store: %w", err)
		}
	}
	// Canonical once: paths are compared with what git and the kernel say.
	if settings.StateDir, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("open git store: %w", err)
	}
	s.settings = settings
	s.git = newRunner(settings.StateDir, settings.Log)
	s.owner = currentOwner(settings.HostID)
	s.sweepTrash()
	return s, nil
}

// Folders below the state folder.
const (
	mirrorsDir    = "mirrors"
	worktreesDir  = "worktrees"
	throwawayDir  = "throwaway"
	recordsDir    = "records"
	idleDir       = "idle"
	trashDir      = "trash"
	quarantineDir = "quarantine"
	locksDir      = "locks"
)

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.settings.StateDir}, elem...)...)
}

// Close waits until what was released is deleted.
func (s *Store) Close() error {
	s.background.Wait()
	return nil
}

// Leftovers lists what could not be deleted since the store was opened.
func (s *Store) Leftovers() []string {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	return append([]string(nil), s.leftovers...)
}

// Commands is the number of git processes started so far, for benchmarks and budgets in tests.
func (s *Store) Commands() int64 { return s.git.count.Load() }

func (s *Store) hook(point string) { s.settings.Hook(point) }
