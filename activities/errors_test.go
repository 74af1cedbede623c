package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
)

// An error above the payload limit would be retried for ever.
func TestErrorsAreOneBoundedLine(t *testing.T) {
	t.Parallel()
	err := translate(t.Context(), fmt.Errorf("land: %w", errors.New(strings.Repeat("größer\n", 1<<20))))
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.LessOrEqual(t, len(app.Message()), errorSize)
	require.NotContains(t, app.Message(), "\n")
	require.True(t, utf8.ValidString(app.Message()))
	require.Equal(t, contract.ErrorInternal, app.Type())
}

func TestFullDisksAreToldApartWhereverTheyShow(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{gitrepo.ErrDiskFull, artifacts.ErrFull} {
		var app *temporal.ApplicationError
		require.ErrorAs(t, translate(t.Context(), fmt.Errorf("write: %w", cause)), &app)
		require.Equal(t, contract.ErrorDiskFull, app.Type())
	}
}

func TestCancellationStaysOne(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, temporal.IsCanceledError(translate(ctx, fmt.Errorf("run: %w", context.Canceled))))
}
