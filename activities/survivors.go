package activities

import (
	"errors"

	"mendflow/internal/gitrepo"
	"mendflow/internal/process"
)

// survived notes in the attempt's record when an error says that something of
// it could not be ended, and returns the error.
func (r *record) survived(dir string, err error) error {
	var alive *process.AliveError
	if !errors.As(err, &alive) {
		return err
	}
	r.Alive = true
	return errors.Join(err, writeRecord(dir, *r))
}

// release says how the attempt's tree is released. Only an end that was seen
// proves that nothing of the worker writes to the tree any more: after the death
// of a host the sweep finds what carries its mark, which is good enough to go on
// in the tree and not to give it to another node.
func (r *record) release() gitrepo.ReleaseOptions {
	return gitrepo.ReleaseOptions{Reusable: !r.Alive && (r.Ended || !r.Started), Alive: r.Alive}
}
