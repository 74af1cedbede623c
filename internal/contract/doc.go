// Package contract is the wire vocabulary of Mendflow: workflow types and ids,
// task queues, signal, update and query names, statuses and outcomes, inputs and
// results, error types and search attributes. None of these literals stands
// anywhere else, and changes here are additive: a running workflow reads what an
// older build wrote.
//
// It holds no rules (those live in the pure packages, which import it) and it
// imports nothing but plan types.
package contract
