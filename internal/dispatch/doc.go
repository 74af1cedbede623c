// Package dispatch decides what may start now and what to wait for: pools and
// their selection, scope admission, outcomes of attempts, settling, stranding
// and terminals.
//
// It is pure: states are values, decisions are functions of (state, instant),
// and slices come back in a defined order. It starts nothing, waits for nothing
// and knows neither Temporal nor git; the workflows carry its decisions out.
package dispatch
