package provider

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

// A program that asks a person would wait for hours.
func TestQuestionsToNobodyAreFaultsWithARemedy(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"Do you want to make this edit to main.go?", "Allow command `go test ./...`? [y/N]", "Overwrite? (y/n)",
		"Do you trust the files in this folder?", "Press Enter to continue", "waiting for approval",
	} {
		fault := Asks([]byte(line))
		require.NotNil(t, fault, line)
		require.Equal(t, contract.CauseHost, fault.Cause, "the worker can do nothing about it")
		require.Contains(t, fault.Text, "let the program's settings allow it")
	}
	for _, line := range []string{
		"", "running go test ./...", "I asked myself whether the cache is needed.", "ok 12 tests", "approved by reviewers",
		"Do you want " + strings.Repeat("x", 3000) + "?",
	} {
		require.Nil(t, Asks([]byte(line)), line)
	}
}
