package gitrepo

import (
	"context"
	"fmt"
	"log/slog"
	"os"
)

// Version is the git that this package would use, in its own words.
func Version(ctx context.Context) (string, error) {
	res, err := newRunner(os.TempDir(), slog.New(slog.DiscardHandler)).run(ctx, command{args: []string{"version"}})
	if err != nil {
		return "", fmt.Errorf("ask git for its version: %w", err)
	}
	return res.text(), nil
}
