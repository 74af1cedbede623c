// Package quota says how a finished launch ended and, when a provider refused
// it, when the provider will take work again.
//
// [Classify] reads what one launch left behind (text of one channel, exit
// status, HTTP status and headers) and gives a [Verdict]: an outcome of the
// closed list, the reset that the provider stated, and the evidence. It works
// in five steps:
//
//  1. hear.go, event.go, keep.go, noise.go, doubt.go: only the provider speaks
//     about limits. The text is split into statements of the provider and
//     everything else: assistant text, tool output, diffs, test output, logs and
//     prompts. Announced retries count only as the last words.
//  2. facts.go, field.go, window.go: structured fields and headers, told apart
//     by the words of their names and not by provider.
//  3. when.go, date.go, duration.go, zone.go, calendar.go: a grammar for times,
//     dates, durations, epochs and zones over the tokens of token.go; reset.go
//     finds the times that belong to a limit.
//  4. vocabulary.go: phrases that mean a kind of refusal, matched over words by
//     phrase.go, so that codes (usage_limit_reached) and prose share one list.
//  5. precedence.go, decide.go: what one statement means, which statement
//     explains the end, and which source of a reset wins.
//
// A new wording is a new phrase, a new shape of event a new case of roleOf; a
// rule for one message is neither. The contract stands in the notes to the
// fixtures (limit-messages.md); testdata/shapes.txt holds further shapes.
//
// [Reopens] turns a verdict into the instant of the next try. [CompilePatterns]
// checks the limit patterns of a pools file.
//
// The package is pure and total: no clock, no zone files (the caller passes a
// lookup), no network, no randomness; any bytes give a verdict, and the cost is
// proportional to them. It knows nothing of pools and never waits: what an
// outcome means for a pool or a node is package dispatch.
package quota
