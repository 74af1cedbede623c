package activities

import "go.temporal.io/sdk/worker"

// Set is every capability of a host.
type Set struct {
	Repository  *Repository
	Attempt     *Attempt
	Landing     *Landing
	Gate        *Gate
	Artifacts   *Artifacts
	Publication *Publication
	Service     *Service
}

// RegisterMain registers what any host can do, for the main queue.
func (s Set) RegisterMain(registry worker.ActivityRegistry) {
	registry.RegisterActivity(s.Repository)
	registry.RegisterActivity(s.Gate)
	registry.RegisterActivity(s.Artifacts)
	registry.RegisterActivity(s.Publication)
	registry.RegisterActivity(s.Service)
}

// RegisterPool registers what the queue of a pool asks for.
func (s Set) RegisterPool(registry worker.ActivityRegistry) { registry.RegisterActivity(s.Attempt) }

// RegisterHost registers what must happen where a tree is.
func (s Set) RegisterHost(registry worker.ActivityRegistry) {
	registry.RegisterActivity(s.Attempt)
	registry.RegisterActivity(s.Landing)
}
