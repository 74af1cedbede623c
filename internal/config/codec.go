package config

import (
	"fmt"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/codec"
)

// Where the keys of the payload codec come from when no flag names a file: the
// keys themselves, or the name of a file.
const (
	codecKeysVariable = "MENDFLOW_CODEC_KEYS"
	codecFileVariable = "MENDFLOW_CODEC_KEYS_FILE"
)

// Codec returns the payload codec of the connection. Without any keys it
// encrypts nothing, and says what to do when it meets what is encrypted.
func (c Connection) Codec() (*codec.Codec, error) {
	ring, err := c.keys()
	return codec.New(ring), err
}

func (c Connection) keys() (codec.Keyring, error) {
	file := c.CodecKeys
	if file == "" {
		if text := os.Getenv(codecKeysVariable); text != "" {
			ring, err := codec.ParseKeys(text)
			if err != nil {
				return ring, fmt.Errorf("%s: %w", codecKeysVariable, err)
			}
			return ring, nil
		}
		if file = os.Getenv(codecFileVariable); file == "" {
			return codec.Keyring{}, nil
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return codec.Keyring{}, fmt.Errorf("read codec keys: %w", err)
	}
	ring, err := codec.ParseKeys(string(data))
	if err != nil {
		return ring, fmt.Errorf("%s: %w", file, err)
	}
	return ring, nil
}

// encrypt makes a client use the codec, for the texts of errors too where there
// is a key. Their types stay readable: workflows decide by them.
func (c Connection) encrypt(options *client.Options) error {
	ring, err := c.keys()
	if err != nil {
		return err
	}
	options.DataConverter = codec.New(ring).Converter()
	options.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: options.DataConverter, EncodeCommonAttributes: !ring.Empty(),
	})
	return nil
}
