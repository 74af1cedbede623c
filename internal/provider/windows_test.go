package provider_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/provider"
)

func TestWindowTakesSharesOnly(t *testing.T) {
	t.Parallel()
	w, ok := provider.Window("five_hour", 0.954, 1796044305)
	require.True(t, ok)
	reset := time.Date(2026, 11, 30, 13, 11, 45, 0, time.UTC)
	require.Equal(t, contract.Window{Name: "five_hour", UsedPermill: 954, ResetAt: &reset}, w)
	for _, used := range []float64{math.NaN(), -0.1, 95} {
		_, ok := provider.Window("five_hour", used, 0)
		require.False(t, ok, used)
	}
	w, ok = provider.Window("weekly", 1.2, 0)
	require.True(t, ok)
	require.Equal(t, contract.Window{Name: "weekly", UsedPermill: 1000}, w)
}

func TestKeepWindowHoldsTheLastWordForEach(t *testing.T) {
	t.Parallel()
	var windows []contract.Window
	for _, w := range []contract.Window{{Name: "b", UsedPermill: 1}, {Name: "a", UsedPermill: 2}, {Name: "b", UsedPermill: 3}} {
		windows = provider.KeepWindow(windows, w)
	}
	require.Equal(t, []contract.Window{{Name: "a", UsedPermill: 2}, {Name: "b", UsedPermill: 3}}, windows)
}
