package testkit

// Record adds an event to the log of a run's workers, for worker programs that are not the scripted
// one: what they mark is looked for like any other edit, what they leave behind must be gone.
func (c Control) Record(run string, e Event) error { return c.append(run, e, nil) }

// Identify names a running process; Start is empty when it is gone.
func Identify(pid int) Identity { return identify(pid) }
