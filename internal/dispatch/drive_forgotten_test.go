package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

// The broker is lost and another takes its place: what waited is asked for again,
// what runs goes on and counts against the drive's own cap, and the new broker's
// messages are not taken for old ones.
func TestForgottenDriveAsksAgainWithinItsCap(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{commandPool("p", 2)}))
	r.broker("p").Apply(contract.Tickets{Holder: "other", Run: "o", Seq: 1, Reserve: []contract.Reservation{{Ticket: "o/1", Pool: "p", Cap: 2}}}, r.now)
	r.drive.Admit(admissions("a", "b", "c"))
	r.step()
	require.Equal(t, []string{"a"}, r.at("p"), "the other run has a slot")

	r.advance(time.Second)
	r.brokers["p"] = NewBroker("p")
	r.drive.Forgotten("p")
	r.step()

	require.Equal(t, []string{"a", "b"}, r.at("p"))
	r.succeed("a", "b")
	require.Equal(t, []string{"c"}, r.at("p"))
	r.succeed("c")
	r.drive.Seal()
	r.step()
	require.True(t, r.drained)
	require.Len(t, r.settled, 3)
	require.Zero(t, r.broker("p").Status(r.now).Waiting, "nothing is left waiting there")
}

func TestForgettingWhatIsNotAskedChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{commandPool("p", 1), commandPool("q", 1)}, admissions("a", "b")...))
	require.Len(t, r.running, 2)
	r.drive.Forgotten("p")
	r.drive.Forgotten("nobody")
	r.step()
	require.Len(t, r.running, 2)
	r.succeed("a", "b")
	require.Len(t, r.settled, 2)
}
