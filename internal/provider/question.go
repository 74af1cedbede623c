package provider

import (
	"bytes"
	"fmt"
	"regexp"

	"mendflow/internal/contract"
)

// question matches what programs ask a person at a terminal. It is only tried on
// lines that are no events, which no model wrote.
var question = regexp.MustCompile(`(?i)\(y/n\)|\[y/n(/a)?\]|\by/n\?|do you (want|trust|wish)\b.*\?|` +
	`\ballow (this|execution|command|once|always)\b.*\?|\bapprov(e|al)\b.*\?|trust (this|the) (folder|directory|workspace|files).*\?|` +
	`press enter to (continue|confirm)|waiting for (approval|permission|confirmation)`)

// Asks returns the fault of a program that asks for a permission which nobody is
// there to give; nil for any other line.
func Asks(line []byte) *Fault {
	if len(line) > 2000 || !question.Match(line) {
		return nil
	}
	text := bytes.Join(bytes.Fields(line), []byte(" "))
	return &Fault{
		Text: fmt.Sprintf("it asked for a permission (%q) and nobody is there to answer: "+
			"let the program's settings allow it, or update the program", clip(text, 200)),
		Cause: contract.CauseHost,
	}
}

// TooManySteps is the fault of a launch that passed its cap on model steps.
func TooManySteps(steps int) *Fault {
	return &Fault{
		Text:  fmt.Sprintf("it took more than %d model steps: give the node a smaller task, or raise the pool's option `%s`", steps, OptionSteps),
		Cause: contract.CauseWork,
	}
}

// TooManyTokens is the fault of a launch that passed the cap on an attempt's tokens.
func TooManyTokens(tokens int) *Fault {
	return &Fault{
		Text:  fmt.Sprintf("it used more than %d tokens: give the node a smaller task, or raise `policy.attempt_tokens`", tokens),
		Cause: contract.CauseWork, OverAllowance: true,
	}
}

func clip(text []byte, n int) []byte {
	if len(text) > n {
		return append(bytes.ToValidUTF8(text[:n:n], nil), "…"...)
	}
	return text
}
