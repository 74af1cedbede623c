package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func TestAllowance(t *testing.T) {
	t.Parallel()
	seen := []int64{10, 90, 30, 50, 70, 20, 40, 60, 80, 100}
	require.EqualValues(t, 7, Allowance(7, plan.TierDeep, seen), "the operator's word")
	require.EqualValues(t, 90, Allowance(0, plan.TierDeep, seen), "nine of ten attempts fit")
	require.EqualValues(t, 90, Allowance(0, plan.TierDeep, seen[:5]), "of five, all")
	require.EqualValues(t, allowanceSmall, Allowance(0, plan.TierSmall, seen[:4]), "too few seen")
	require.EqualValues(t, allowanceStandard, Allowance(0, "", nil))
	require.EqualValues(t, allowanceDeep, Allowance(0, plan.TierDeep, nil))
	require.Equal(t, []int64{10, 90, 30}, seen[:3], "what was seen keeps its order")
}

func TestChargeTakesUsageAsToldAndElseTheReservation(t *testing.T) {
	t.Parallel()
	reserved := Spend{Tokens: 100, USDMicros: 5}
	for name, tt := range map[string]struct {
		usage     contract.Usage
		want      Spend
		uncertain bool
	}{
		"told":      {contract.Usage{InputTokens: 300, OutputTokens: 1, USDMicros: 9, Known: true}, Spend{301, 9}, false},
		"nothing":   {contract.Usage{}, reserved, true},
		"malformed": {contract.Usage{InputTokens: -1, Known: true}, reserved, true},
	} {
		charge, uncertain := Charge(reserved, tt.usage)
		require.Equal(t, tt.want, charge, name)
		require.Equal(t, tt.uncertain, uncertain, name)
	}
}

func TestPriceIsAnEstimateOfBothDirections(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 30_000_000, Price(&contract.Cost{InputMicros: 15_000_000, OutputMicros: 75_000_000}, 1_000_000))
	require.Zero(t, Price(nil, 1000))
}

func TestBudgetHoldsUncertainChargesUntilTheyAreReconciled(t *testing.T) {
	t.Parallel()
	b := &Budget{Cap: plan.Budget{Tokens: 1000}}
	require.EqualValues(t, 300, *b.Lease(1, Spend{Tokens: 300}).Tokens)
	require.EqualValues(t, 300, *b.Lease(1, Spend{Tokens: 300}).Tokens, "asked again, the same")
	require.EqualValues(t, 700, *b.Left().Tokens)
	b.Settle(1, "n/a1", Spend{Tokens: 100}, contract.Usage{InputTokens: 250, Known: true})
	require.EqualValues(t, 700, *b.Left().Tokens, "settled as used, above the reservation")
	b.Settle(1, "n/a2", Spend{Tokens: 100}, contract.Usage{})
	require.EqualValues(t, 650, *b.Left().Tokens)
	require.False(t, b.Fits(Spend{Tokens: 651}))
	require.True(t, b.Reconcile("n/a2", Spend{Tokens: 10}))
	require.False(t, b.Reconcile("n/a2", Spend{Tokens: 10}))
	require.EqualValues(t, 740, *b.Left().Tokens)
	require.EqualValues(t, 350+740, *b.Lease(1, Spend{Tokens: 5000}).Tokens, "never more than is left")
	require.False(t, b.Fits(Spend{Tokens: 1}))
	b.Cap.Tokens = 2000
	require.True(t, b.Fits(Spend{Tokens: 1000}), "a raised budget")
	b.Close(1)
	require.EqualValues(t, 2000-260, *b.Left().Tokens)
	require.Nil(t, (&Budget{}).Left().Tokens, "no cap")
	require.Equal(t, Lease{}, (&Budget{}).Lease(1, Spend{Tokens: 5}))
}

// TestSettledAndReservedNeverExceedTheCap lets drives spend within their leases.
func TestSettledAndReservedNeverExceedTheCap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &Budget{Cap: plan.Budget{Tokens: rapid.Int64Range(1, 5000).Draw(t, "cap"), USDMicros: rapid.Int64Range(0, 1).Draw(t, "usd") * 900}}
		spent := map[int]Spend{}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			drive := rapid.IntRange(1, 3).Draw(t, "drive")
			lease := b.Lease(drive, Spend{Tokens: rapid.Int64Range(0, 800).Draw(t, "want"), USDMicros: 100})
			reserved := Spend{Tokens: rapid.Int64Range(0, 300).Draw(t, "tokens"), USDMicros: 10}
			if !lease.covers(spent[drive].plus(reserved)) {
				continue
			}
			used := contract.Usage{InputTokens: rapid.Int64Range(0, reserved.Tokens).Draw(t, "used"), Known: rapid.Bool().Draw(t, "known")}
			charge, _ := Charge(reserved, used)
			spent[drive] = spent[drive].plus(charge)
			b.Settle(drive, fmt.Sprint(i), reserved, used)
			left := b.Left()
			require.GreaterOrEqual(t, *left.Tokens, int64(0))
			require.True(t, left.USDMicros == nil || *left.USDMicros >= 0)
			text, err := json.Marshal(b)
			require.NoError(t, err)
			next := &Budget{}
			require.NoError(t, json.Unmarshal(text, next))
			require.Equal(t, left, next.Left())
			b = next
		}
		total := b.Settled
		for _, u := range b.Uncertain {
			total = total.plus(u.Spend)
		}
		var sum Spend
		for _, drive := range []int{1, 2, 3} {
			sum = sum.plus(spent[drive])
		}
		require.Equal(t, sum, total)
		require.True(t, slices.IsSortedFunc(b.Leases, func(x, y BudgetLease) int { return x.Drive - y.Drive }))
	})
}
