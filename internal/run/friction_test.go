package run

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func TestFrictionIsRecordedOncePerTypeAndDiscriminator(t *testing.T) {
	t.Parallel()
	var b FrictionBook
	one := contract.Friction{Type: contract.FrictionPoolSettled, Discriminator: "p", Note: strings.Repeat("ü", 2000)}
	added := b.Add(one, one, contract.Friction{Type: contract.FrictionPoolSettled, Discriminator: "q"}, contract.Friction{Type: contract.FrictionPoolDown, Discriminator: "p", Severity: "info"})
	require.Len(t, added, 3)
	require.Equal(t, "warning", added[0].Severity)
	require.Equal(t, "info", added[2].Severity)
	require.Equal(t, strings.Repeat("ü", 1000), added[0].Note)

	data, err := json.Marshal(b)
	require.NoError(t, err)
	var back FrictionBook
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, b.Entries(), back.Entries())
	require.Empty(t, back.Add(one), "known after a round trip")

	data, err = json.Marshal(FrictionBook{})
	require.NoError(t, err)
	require.JSONEq(t, "[]", string(data))
}
