package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
)

// Decode reads a line that is one JSON object. Members of an unexpected type
// are left out rather than making the whole event unreadable.
func Decode(line []byte, into any) bool {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return false
	}
	err := json.Unmarshal(line, into)
	var kind *json.UnmarshalTypeError
	return err == nil || errors.As(err, &kind)
}

// Tokens makes a count of a number that a program printed: never negative, never
// more than a count of tokens can be.
func Tokens(n float64) int64 {
	if !(n > 0) {
		return 0
	}
	return int64(math.Min(n, 1e12))
}

// Micros makes millionths of a dollar of dollars.
func Micros(usd float64) int64 {
	if !(usd > 0) {
		return 0
	}
	return int64(math.Round(math.Min(usd, 1e6) * 1e6))
}
