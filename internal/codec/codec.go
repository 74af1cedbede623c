package codec

import (
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// Metadata of an encrypted payload, named as in Temporal's own samples, so that
// other tools recognise it.
const (
	metadataKeyID     = "encryption-key-id"
	encodingEncrypted = "binary/encrypted"
)

// ErrKeyMissing says that a payload is encrypted with a key that is not among ours.
var ErrKeyMissing = errors.New("its key is missing")

// Codec encrypts and decrypts payloads with a [Keyring].
//
// What cannot be decrypted fails the workflow task, not the workflow: a worker
// that was started without the right key holds its runs up, visibly, until it
// is started with it, and costs none of them.
type Codec struct{ ring Keyring }

var _ converter.PayloadCodec = (*Codec)(nil)

// New returns the codec of a keyring.
func New(ring Keyring) *Codec { return &Codec{ring: ring} }

// Empty reports whether there is no key, so that nothing is encrypted.
func (c *Codec) Empty() bool { return c.ring.Empty() }

// Encode encrypts payloads with the first key; without keys they stay as they are.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c.ring.Empty() {
		return payloads, nil
	}
	k := c.ring.keys[0]
	sealed := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encrypt payload: %w", err)
		}
		sealed[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encodingEncrypted), metadataKeyID: []byte(k.id)},
			Data:     k.aead.Seal(nil, nil, plain, []byte(k.id)),
		}
	}
	return sealed, nil
}

// Decode decrypts what is encrypted and returns the rest as it is.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	plain := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain[i] = p
		id, encrypted := p.GetMetadata()[metadataKeyID]
		if !encrypted || string(p.GetMetadata()[converter.MetadataEncoding]) != encodingEncrypted {
			continue
		}
		opened, err := c.open(string(id), p.GetData())
		if err != nil {
			return nil, converter.NewWorkflowTaskFailureError(err)
		}
		plain[i] = opened
	}
	return plain, nil
}

func (c *Codec) open(id string, data []byte) (*commonpb.Payload, error) {
	k, found := c.ring.find(id)
	if !found {
		return nil, fmt.Errorf("decrypt payload of key %q: %w: give it with --codec-keys or MENDFLOW_CODEC_KEYS (here: %q)", id, ErrKeyMissing, c.ring.IDs())
	}
	raw, err := k.aead.Open(nil, nil, data, []byte(k.id))
	if err != nil {
		return nil, fmt.Errorf("decrypt payload of key %q: %w: the key has another value here, or the payload is damaged", id, err)
	}
	p := &commonpb.Payload{}
	if err := proto.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("decrypt payload of key %q: %w", id, err)
	}
	return p, nil
}

// Converter is the data converter of clients and workers that use the codec.
func (c *Codec) Converter() converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
}
