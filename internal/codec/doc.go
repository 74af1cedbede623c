// Package codec encrypts what Mendflow stores on a Temporal server: inputs and
// results, signals, queries, heartbeats, memos, summaries and the texts of
// errors. Ids of workflows, names of task queues and types, timings and search
// attributes stay readable: the server works with them.
//
// Each payload is sealed by itself with AES-256-GCM and carries the id of its
// key, so that keys can be exchanged while runs go on: the first key of a
// [Keyring] encrypts, all of them decrypt. Payloads that are not encrypted are
// taken as they are, so that an operator's raw signals keep working.
//
// The package reads no files and no environment (internal/config does) and says
// nothing about who may ask for a decrypted payload (docs/security.md does).
package codec
