package activities

import (
	"slices"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/redact"
	"mendflow/internal/run"
)

// secretNames are the variables whose values this host masks in whatever it keeps
// of a run: a worker may leave its secret in a file that a verification prints.
func (h *Host) secretNames(config *contract.RunConfig) []string {
	names := slices.Clone(config.Plan.Env)
	for _, p := range config.Pools {
		names = append(names, p.Env...)
	}
	for _, p := range h.Pools {
		names = append(names, p.Env...)
	}
	return names
}

// maskerFor masks what an attempt on a pool may know: the pool may have joined
// the run after the host opened it.
func (h *Host) maskerFor(r *openRun, pool contract.Pool) *redact.Masker {
	known := h.secretNames(&r.config)
	if !slices.ContainsFunc(pool.Env, func(name string) bool { return !slices.Contains(known, name) }) {
		return r.masker
	}
	return redact.NewMasker(h.values(append(known, pool.Env...)))
}

// mask masks what a worker wrote of its own accord, and returns the masked text
// of what is wrong with it: its result reaches histories, the report, the prompts
// of others and the message of its commit.
func (l *lander) mask(result *run.Result, friction []contract.Friction, fault error) (invalid string) {
	m := l.opened.masker
	if pool, err := l.Host.pool(l.opened, l.in.NodeInput); err == nil {
		m = l.Host.maskerFor(l.opened, pool)
	}
	for i := range friction {
		friction[i].Discriminator, friction[i].Note = m.String(friction[i].Discriminator), m.String(friction[i].Note)
	}
	if result != nil {
		maskResult(m, result)
	}
	if fault == nil {
		return ""
	}
	return m.String(fault.Error())
}

func maskResult(m *redact.Masker, result *run.Result) {
	result.Summary = m.String(result.Summary)
	for i := range result.Items {
		item := &result.Items[i]
		item.Reason, item.Question = m.String(item.Reason), m.String(item.Question)
		for j := range item.Evidence {
			e := &item.Evidence[j]
			e.Text, e.OutputTail, e.Command = m.String(e.Text), m.String(e.OutputTail), maskCommand(m, e.Command)
		}
	}
}

// maskCommand masks a command that a worker claims to have run: with a secret in
// it, it is told, and fails when it is tried again.
func maskCommand(m *redact.Masker, c plan.Command) plan.Command {
	c.Shell, c.Argv = m.String(c.Shell), slices.Clone(c.Argv)
	for i := range c.Argv {
		c.Argv[i] = m.String(c.Argv[i])
	}
	return c
}
