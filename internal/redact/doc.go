// Package redact masks secrets in text that is about to be kept or shown:
// output of workers, logs, results, errors.
//
// A [Masker] knows two kinds of secrets. Values: what the caller names (the
// secrets of a pool and of the environment), found as they are and in the
// shapes in which programs print them: JSON-escaped, URL-encoded, hexadecimal,
// base64 in each of its three alignments, and each of these interrupted by
// terminal codes or wrapped over lines. Patterns: credentials that are known
// by their look, such as provider keys, GitHub tokens, JSON web tokens, private
// keys, bearer headers and passwords inside URLs, named by nobody.
//
// A [Writer] does this on a stream: the result does not depend on how the
// stream is cut into writes, time is linear in its length, and memory is
// bounded by the longest secret. Bytes are held back only while they may still
// turn out to be the beginning of a secret, so that a line that is free of
// secrets goes through as soon as it is written.
//
// The package does not find secrets that nobody named and that have no known
// look, nor secrets that a program deliberately scrambles (reversed, encrypted,
// split over several files). Masking limits accidents; the sandbox and the
// allow-listed environment are what keep secrets away from programs.
package redact
