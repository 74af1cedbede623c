package workflows

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"mendflow/internal/contract"
)

func TestDecodeOperatorTakesWhatAnyClientSends(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		want       contract.Operator
		bad        bool
	}{
		{name: "nothing"},
		{name: "null", data: "null"},
		{name: "blanks", data: " \n"},
		{name: "string", data: `"maintenance"`, want: contract.Operator{Reason: "maintenance"}},
		{name: "object", data: `{"by":"ops","finish":true}`, want: contract.Operator{By: "ops", Finish: true}},
		{name: "object after blanks", data: "\n {\"by\":\"ops\"}\n", want: contract.Operator{By: "ops"}},
		{name: "unknown fields", data: `{"by":"ops","colour":"red"}`, want: contract.Operator{By: "ops"}},
		{name: "empty object", data: "{}"},
		{name: "array", data: `["x"]`, bad: true},
		{name: "number", data: "5", bad: true},
		{name: "bool", data: "true", bad: true},
		{name: "cut off", data: `{"by":`, bad: true},
		{name: "no JSON", data: "\x00\xff", bad: true},
		{name: "field of another type", data: `{"finish":"yes"}`, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := decodeOperator(&commonpb.Payload{Data: []byte(c.data)})
			require.Equal(t, !c.bad, ok)
			require.Equal(t, c.want, got)
		})
	}
	_, ok := decodeOperator(nil)
	require.True(t, ok, "no payload at all")
}

// Whatever is sent to any workflow of a run: it is obeyed, recorded as unreadable
// or ignored, and nothing gets stuck.
func TestSignalsOfEveryShapeDoNoHarm(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)

	junk := []struct{ encoding, data string }{
		{"json/plain", `{"cut":`}, {"json/plain", "[1,2]"}, {"binary/plain", "\x00\x01\xff"},
		{"json/protobuf", "{}x"}, {"binary/encrypted", "secret"}, {"", "no encoding"}, {"json/plain", `{"reason":5,"seq":"x"}`},
	}
	targets := map[string][]string{
		l.id:                               {contract.CommandPause, contract.CommandCancel, contract.SignalReport, contract.SignalPoolState, "no-such-signal"},
		contract.LevelID(l.in.Run, 1):      {contract.SignalOrder, contract.SignalGrants},
		contract.BrokerID(l.accounts()[0]): {contract.SignalTickets, contract.CommandReopen},
	}
	for id, names := range targets {
		for _, name := range names {
			for _, j := range junk {
				payload := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(j.encoding)}, Data: []byte(j.data)}
				require.NoError(t, l.client.SignalWorkflow(patience(t), id, "", name, converter.NewRawValue(payload)))
			}
		}
	}
	v := l.until("the unreadable orders are told", func(v contract.RunView) bool { return len(v.Friction) >= 2 })
	require.Equal(t, contract.RunImplementing, v.Status, "nothing of it was an order")
	for _, f := range v.Friction {
		require.Equal(t, contract.FrictionBadMessage, f.Type)
	}
	l.raw(contract.CommandPause, "json/plain", `"maintenance"`)
	require.Equal(t, "maintenance", l.untilStatus(contract.RunPaused).Holds[0].Reason)
	l.signal(contract.CommandResume, nil)
	release()

	require.Equal(t, contract.RunCompleted, l.wait().Status)
	var missing *serviceerror.NotFound
	require.ErrorAs(t, l.client.SignalWorkflow(patience(t), l.id, "", contract.CommandPause, nil), &missing, "it has closed")
}

// Hundreds of orders in a burst are all taken, and the run goes on.
func TestBurstOfOrders(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)

	for i := range 150 {
		l.signal(contract.CommandPause, contract.Operator{RequestID: fmt.Sprint("p", i), Finish: true})
		l.signal(contract.CommandResume, contract.Operator{RequestID: fmt.Sprint("r", i)})
	}
	release()

	require.Equal(t, contract.RunCompleted, l.wait().Status)
}
