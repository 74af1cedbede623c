// Package host describes attended pools: no program is launched, a person or an
// attended agent claims a node, works in its tree and hands it over. The waiting
// and the claims are the workflows'; this adapter only says what a pool may hold.
package host

import (
	"errors"
	"fmt"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

// Provider is the adapter. The zero value is ready for use.
type Provider struct{}

var _ provider.Provider = Provider{}

// ErrAttended says that a node of such a pool was to be launched like a program's.
var ErrAttended = errors.New("an attended pool launches nothing: claim its nodes with `starter node claim`")

// Bounds of the option quiet.
const (
	quietLeast = time.Second
	quietMost  = 7 * 24 * time.Hour
)

// About describes somebody at work.
func (Provider) About() provider.About {
	return provider.About{Attended: true, Options: []provider.Option{{
		Name:  contract.OptionQuiet,
		Help:  fmt.Sprintf("how long a claim may show no sign of life before it is taken back (default %s)", contract.DefaultQuiet),
		Check: checkQuiet,
	}}}
}

func checkQuiet(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d < quietLeast || d > quietMost {
		return fmt.Errorf("%q is not a duration from %s to %s: write for example 30m", value, quietLeast, quietMost)
	}
	return nil
}

// Build refuses: there is nothing to launch.
func (Provider) Build(req provider.Request) (provider.Launch, error) {
	return provider.Launch{}, fmt.Errorf("build launch for pool %s: %w", req.Pool.ID, ErrAttended)
}

// Read reads nothing.
func (Provider) Read(provider.Request) provider.Reader { return reader{} }

type reader struct{}

func (reader) Line(process.Stream, []byte, bool) process.Verdict { return process.Continue }

func (reader) Session() string { return "" }

func (reader) Report() provider.Report { return provider.Report{Usage: contract.Usage{Known: true}} }
