package codec

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

func newKey(t require.TestingT, id string) string {
	line, err := NewKey(id)
	require.NoError(t, err)
	return line
}

func keys(t require.TestingT, lines ...string) *Codec {
	ring, err := ParseKeys(strings.Join(lines, "\n"))
	require.NoError(t, err)
	return New(ring)
}

func plain(text string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(text)}
}

func TestWhatIsEncryptedComesBackAndShowsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := keys(t, newKey(t, "k1"))
		secret := "marker-" + rapid.StringN(0, 200, -1).Draw(t, "text")
		sealed, err := c.Encode([]*commonpb.Payload{plain(secret)})
		require.NoError(t, err)
		wire, err := proto.Marshal(sealed[0])
		require.NoError(t, err)
		require.NotContains(t, string(wire), "marker-")
		require.NotContains(t, string(wire), "json/plain")
		opened, err := c.Decode(sealed)
		require.NoError(t, err)
		require.True(t, proto.Equal(plain(secret), opened[0]))
	})
}

func TestTheSamePayloadLooksDifferentEachTime(t *testing.T) {
	t.Parallel()
	c := keys(t, newKey(t, "k1"))
	one, err := c.Encode([]*commonpb.Payload{plain("x"), plain("x")})
	require.NoError(t, err)
	require.NotEqual(t, one[0].Data, one[1].Data)
}

func TestOldKeysStillDecryptAfterARotation(t *testing.T) {
	t.Parallel()
	old, young := newKey(t, "2025"), newKey(t, "2026")
	before, err := keys(t, old).Encode([]*commonpb.Payload{plain("x")})
	require.NoError(t, err)
	rotated := keys(t, young, old)
	opened, err := rotated.Decode(before)
	require.NoError(t, err)
	require.Equal(t, "x", string(opened[0].Data))
	after, err := rotated.Encode([]*commonpb.Payload{plain("y")})
	require.NoError(t, err)
	require.Equal(t, "2026", string(after[0].Metadata[metadataKeyID]), "the first key encrypts")
	_, err = keys(t, old).Decode(after)
	require.ErrorIs(t, err, ErrKeyMissing)
	require.ErrorContains(t, err, `decrypt payload of key "2026"`)
}

func TestWithoutKeysNothingIsEncryptedAndEncryptedIsRefused(t *testing.T) {
	t.Parallel()
	none := New(Keyring{})
	same, err := none.Encode([]*commonpb.Payload{plain("x")})
	require.NoError(t, err)
	require.Equal(t, "x", string(same[0].Data))
	sealed, err := keys(t, newKey(t, "k1")).Encode([]*commonpb.Payload{plain("x")})
	require.NoError(t, err)
	_, err = none.Decode(sealed)
	require.ErrorIs(t, err, ErrKeyMissing)
	require.ErrorContains(t, err, "--codec-keys")
}

func TestRawSignalsOfOtherClientsAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	c := keys(t, newKey(t, "k1"))
	for _, p := range []*commonpb.Payload{
		plain(`"lunch"`), {}, {Data: []byte("no metadata at all")},
		{Metadata: map[string][]byte{"encoding": []byte(encodingEncrypted)}, Data: []byte("of nobody's key")},
	} {
		opened, err := c.Decode([]*commonpb.Payload{p})
		require.NoError(t, err)
		require.True(t, proto.Equal(p, opened[0]))
	}
}

func TestDamagedAndForeignPayloadsAreRefused(t *testing.T) {
	t.Parallel()
	c := keys(t, newKey(t, "k1"))
	rapid.Check(t, func(t *rapid.T) {
		sealed, err := c.Encode([]*commonpb.Payload{plain("something to say")})
		require.NoError(t, err)
		i := rapid.IntRange(0, len(sealed[0].Data)-1).Draw(t, "byte")
		sealed[0].Data[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = c.Decode(sealed)
		require.ErrorContains(t, err, `decrypt payload of key "k1"`)
	})
	sealed, err := keys(t, newKey(t, "k1")).Encode([]*commonpb.Payload{plain("x")})
	require.NoError(t, err)
	_, err = c.Decode(sealed)
	require.ErrorContains(t, err, "another value here")
	sealed[0].Data = sealed[0].Data[:3]
	_, err = c.Decode(sealed)
	require.Error(t, err)
}

func TestAKeyThatIsMissingHoldsTheTaskUpAndNotTheWorkflow(t *testing.T) {
	t.Parallel()
	sealed, err := keys(t, newKey(t, "k1")).Encode([]*commonpb.Payload{plain("x")})
	require.NoError(t, err)
	_, err = New(Keyring{}).Decode(sealed)
	var held *converter.WorkflowTaskFailureError
	require.ErrorAs(t, err, &held)
}

func TestKeysAreReadStrictlyAndNeverShown(t *testing.T) {
	t.Parallel()
	secret := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", KeyBytes)))
	short := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", KeyBytes-1)))
	ring, err := ParseKeys("# keys\n\n b:" + secret + " ,a:" + secret + "\r\n")
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a"}, ring.IDs())
	for name, text := range map[string]string{
		"none": "# nothing\n", "no id": secret, "empty id": ":" + secret, "bad id": "a b:" + secret,
		"short": "a:" + short, "not base64": "a:" + secret[1:] + "!", "twice": "a:" + secret + ",a:" + secret,
	} {
		_, err := ParseKeys(text)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), secret[1:20], name)
		require.NotContains(t, err.Error(), short[:20], name)
	}
	_, err = NewKey("a b")
	require.ErrorContains(t, err, `"a b" is no id`)
}
