package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// view builds a pool with two free slots of tier standard and unknown cost; change adjusts it.
func view(id string, change ...func(*PoolView)) PoolView {
	v := PoolView{Pool: contract.Pool{ID: id, Tier: plan.TierStandard, MaxConcurrent: 2}, Free: 2}
	for _, f := range change {
		f(&v)
	}
	return v
}

func tier(t plan.Tier) func(*PoolView) { return func(v *PoolView) { v.Tier = t } }
func free(v *PoolView)                 { v.Cost = &contract.Cost{} }
func price(n int64) func(*PoolView) {
	return func(v *PoolView) { v.Cost = &contract.Cost{InputMicros: n} }
}
func rank(n int) func(*PoolView)       { return func(v *PoolView) { v.Rank = n } }
func slots(n int) func(*PoolView)      { return func(v *PoolView) { v.Free = n } }
func inFlight(n int64) func(*PoolView) { return func(v *PoolView) { v.InFlight = n } }
func holds(n int) func(*PoolView)      { return func(v *PoolView) { v.ContextTokens = n } }
func learned(n int) func(*PoolView)    { return func(v *PoolView) { v.TooLarge = n } }
func demoted(v *PoolView)              { v.Demoted = true }
func phase(p Phase) func(*PoolView)    { return func(v *PoolView) { v.Phase = p } }
func paused(d time.Duration) func(*PoolView) {
	return func(v *PoolView) { v.Phase, v.Until, v.Reason = PhasePaused, t0.Add(d), "rate_limited" }
}

func TestSelect(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *time.Time { x := t0.Add(d); return &x }
	small, deep := tier(plan.TierSmall), tier(plan.TierDeep)
	tests := []struct {
		name  string
		node  NodeView
		spill plan.Spill
		pools []PoolView
		want  []string // order; the first is chosen unless pool says otherwise
		pool  string
		relax plan.Tier
		cause contract.StrandCause
		until *time.Time
		why   string // reason of pool a
	}{
		{name: "excluded pools drop out", pools: []PoolView{view("a", phase(PhaseExcluded)), view("b")}, want: []string{"b"}, why: "excluded"},
		{name: "exhausted pools drop out", pools: []PoolView{view("a", phase(PhaseSettled)), view("b")}, want: []string{"b"}, why: "settled"},
		{name: "paused pools drop out", pools: []PoolView{view("a", paused(time.Hour)), view("b")}, want: []string{"b"}, why: "paused until 2026-11-30T13:00:00Z: rate_limited"},
		{name: "a pause that is over does not count", pools: []PoolView{view("a", paused(0)), view("b")}, want: []string{"a", "b"}},
		{name: "a pool that refused the node drops out", node: NodeView{Refused: []string{"a"}}, pools: []PoolView{view("a"), view("b")}, want: []string{"b"}, why: "refused this node"},
		{name: "estimate and overhead fit exactly", node: NodeView{Tokens: 85_000}, pools: []PoolView{view("a", holds(100_000))}, want: []string{"a"}},
		{name: "estimate and overhead are too large", node: NodeView{Tokens: 85_001}, pools: []PoolView{view("a", holds(100_000)), view("b")}, want: []string{"b"}, why: "too small"},
		{name: "unknown context takes everything", node: NodeView{Tokens: 9_000_000}, pools: []PoolView{view("a")}, want: []string{"a"}},
		{name: "unknown estimate fits everywhere", pools: []PoolView{view("a", holds(1000))}, want: []string{"a"}},
		{name: "unknown context learns from a refusal", node: NodeView{Tokens: 101}, pools: []PoolView{view("a", learned(100)), view("b")}, want: []string{"b"}, why: "it refused a node"},
		{name: "what was refused keeps away larger nodes only", node: NodeView{Tokens: 100}, pools: []PoolView{view("a", learned(100))}, want: []string{"a"}},

		{name: "the floor is the node's tier", node: NodeView{Tier: plan.TierDeep}, pools: []PoolView{view("a"), view("b", deep)}, want: []string{"b"}, why: "tier standard is below deep"},
		{name: "the floor is relaxed to the highest live tier below", node: NodeView{Tier: plan.TierDeep}, pools: []PoolView{view("a", small), view("b")}, want: []string{"b"}, relax: plan.TierStandard, why: "tier small is below standard"},
		{name: "a pool that cannot take the node does not hold the floor up", node: NodeView{Tier: plan.TierDeep, Tokens: 50_000}, pools: []PoolView{view("a", deep, holds(20_000)), view("b")}, want: []string{"b"}, relax: plan.TierStandard, why: "too small"},
		{name: "a paused tier relaxes the floor", node: NodeView{Tier: plan.TierDeep}, pools: []PoolView{view("a", deep, paused(time.Hour)), view("b", small)}, want: []string{"b"}, relax: plan.TierSmall, why: "paused"},

		{name: "cost ascends: free, known, unknown", pools: []PoolView{view("a"), view("b", price(9)), view("c", price(3)), view("d", free)}, want: []string{"d", "c", "b", "a"}, why: "comes after d"},
		{name: "cost descends for deep nodes", node: NodeView{Tier: plan.TierDeep}, pools: []PoolView{view("a", deep), view("b", deep, price(9)), view("c", deep, price(3)), view("d", deep, free)}, want: []string{"a", "b", "c", "d"}},
		{name: "a demoted pool comes last, whatever it costs", pools: []PoolView{view("a", free, demoted), view("b")}, want: []string{"b", "a"}},
		{name: "and last for deep nodes too", node: NodeView{Tier: plan.TierDeep}, pools: []PoolView{view("a", deep, demoted), view("b", deep, free)}, want: []string{"b", "a"}},
		{name: "then rank", pools: []PoolView{view("a", rank(2)), view("b", rank(1))}, want: []string{"b", "a"}},
		{name: "then tokens in flight", pools: []PoolView{view("a", inFlight(5)), view("b", inFlight(4))}, want: []string{"b", "a"}},
		{name: "then id", pools: []PoolView{view("b"), view("a")}, want: []string{"a", "b"}},

		{name: "same_tier takes another pool of the tier when the first is busy", pools: []PoolView{view("a", slots(0)), view("b", rank(9))}, want: []string{"a", "b"}, pool: "b", why: "busy: all 2 slots"},
		{name: "same_tier does not go up while the lower tier is live", node: NodeView{Tier: plan.TierSmall}, pools: []PoolView{view("a"), view("b", small, slots(0))}, want: []string{"b"}, pool: "-", why: "spill is same_tier: tier standard is not needed"},
		{name: "same_tier goes up to the lowest live tier", node: NodeView{Tier: plan.TierSmall}, pools: []PoolView{view("a", deep), view("b"), view("c", small, paused(time.Hour))}, want: []string{"b"}},
		{name: "allow_paid goes up when the lower tier is busy", node: NodeView{Tier: plan.TierSmall}, spill: plan.SpillAllowPaid, pools: []PoolView{view("a", deep, price(9)), view("b", small, free, slots(0))}, want: []string{"b", "a"}, pool: "a"},
		{name: "never waits for the first in order", spill: plan.SpillNever, pools: []PoolView{view("a", rank(1)), view("b", slots(0))}, want: []string{"b"}, pool: "-", why: "spill is never: b is first"},
		{name: "never keeps to the node's first pool", node: NodeView{FirstPool: "b"}, spill: plan.SpillNever, pools: []PoolView{view("a"), view("b", slots(0))}, want: []string{"b"}, pool: "-", why: "only b may take it"},
		{name: "never is not moved by the load", node: NodeView{Tickets: []string{"b"}}, spill: plan.SpillNever, pools: []PoolView{view("a"), view("b", inFlight(9), slots(0))}, want: []string{"b"}},
		{name: "never waits for its pool's reset", node: NodeView{FirstPool: "b"}, spill: plan.SpillNever, pools: []PoolView{view("a"), view("b", paused(time.Hour))}, cause: contract.StrandQuotaPaused, until: at(time.Hour), why: "only b"},
		{name: "never cannot go elsewhere", node: NodeView{FirstPool: "b"}, spill: plan.SpillNever, pools: []PoolView{view("a"), view("b", phase(PhaseExcluded))}, cause: contract.StrandNoCapablePool},

		{name: "a kept tree waits for its pool", node: NodeView{Kept: "b"}, pools: []PoolView{view("a"), view("b", slots(0), rank(9))}, want: []string{"b"}, pool: "-", why: "tree is kept for b"},
		{name: "a kept tree is left when its pool is closed", node: NodeView{Kept: "b"}, pools: []PoolView{view("a"), view("b", paused(time.Second))}, want: []string{"a"}},
		{name: "a pool where the node waits counts as free", node: NodeView{Tickets: []string{"a"}}, pools: []PoolView{view("a", slots(0)), view("b")}, want: []string{"a", "b"}},

		{name: "the earliest pause counts", pools: []PoolView{view("a", paused(2*time.Hour)), view("b", paused(time.Hour)), view("c", phase(PhaseSettled))}, cause: contract.StrandQuotaPaused, until: at(time.Hour)},
		{name: "a pause of a pool that is too small does not count", node: NodeView{Tokens: 99_000}, pools: []PoolView{view("a", paused(time.Hour), holds(9000)), view("b", phase(PhaseSettled))}, cause: contract.StrandEmptyPool},
		{name: "everything that could take it is exhausted", pools: []PoolView{view("a", phase(PhaseSettled)), view("b", phase(PhaseExcluded))}, cause: contract.StrandEmptyPool},
		{name: "nothing could ever take it", node: NodeView{Refused: []string{"a"}}, pools: []PoolView{view("a"), view("b", phase(PhaseExcluded))}, cause: contract.StrandNoCapablePool},
		{name: "tier is never the reason", node: NodeView{Tier: plan.TierDeep}, pools: []PoolView{view("a", small)}, want: []string{"a"}, relax: plan.TierSmall},
		{name: "no pools at all", cause: contract.StrandNoCapablePool},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.node.Tier == "" {
				tt.node.Tier = plan.TierStandard
			}
			if tt.spill == "" {
				tt.spill = plan.SpillSameTier
			}
			got := Select(tt.node, tt.pools, tt.spill, t0)
			require.Equal(t, tt.want, got.Order)
			want := tt.pool
			if want == "" && len(tt.want) > 0 {
				want = tt.want[0]
			}
			if want == "-" {
				want = ""
			}
			require.Equal(t, want, got.Pool)
			require.Equal(t, tt.relax, got.Relaxed)
			require.Equal(t, tt.cause, got.Cause)
			require.Equal(t, tt.until, got.NotBefore)
			if tt.why != "" {
				require.Equal(t, "a", got.Passed[0].Pool)
				require.Contains(t, got.Passed[0].Reason, tt.why)
			}
			for _, p := range got.Passed {
				require.NotEqual(t, got.Pool, p.Pool)
				require.NotEmpty(t, p.Reason)
			}
		})
	}
}
