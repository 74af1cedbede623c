package process

import "sync"

// children are the processes that this package started and has not reaped. The
// reaping of adopted processes must leave them alone.
var children = childSet{pids: map[int]bool{}}

type childSet struct {
	// start is held shared from before a fork until the child is recorded, and
	// exclusively while adopted processes are told from children.
	start sync.RWMutex
	mu    sync.Mutex
	pids  map[int]bool
}

func (c *childSet) starting() (unlock func()) {
	c.start.RLock()
	return c.start.RUnlock
}

func (c *childSet) add(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids[pid] = true
}

func (c *childSet) remove(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pids, pid)
}

func (c *childSet) has(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pids[pid]
}
