package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
)

func TestVersionNamesServerAndUI(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--version"}, streams{out: &out, err: &err}))
	require.Regexp(t, `^devserver \S+ \(Temporal \d+\.\d+\.\d+, Web UI \d+\.\d+\.\d+\)\n$`, out.String())
	require.Empty(t, err.String())
}

func TestHelpListsEveryFlag(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, streams{out: &out, err: &err}))
	for _, flag := range []string{
		"--ip", "--port", "--ui-port", "--headless", "--db", "--postgres", "--namespace", "--retention", "--search-attribute", "--codec-endpoint", "--log-level",
		"--json", "--stop-with-parent", "--version", "Example:",
	} {
		require.Contains(t, out.String(), flag)
	}
	require.Empty(t, err.String())
}

func TestUsageFaultIsOneLineAndExitsWith2(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--nonsense"}, "--nonsense"},
		{[]string{"extra"}, `unexpected argument "extra"`},
		{[]string{"--ip", "localhost"}, `--ip "localhost" is not an IP address`},
		{[]string{"--port", "70000"}, "--port 70000"},
		{[]string{"--port", "many"}, "--port"},
		{[]string{"--ui-port", "-1"}, "--ui-port -1"},
		{[]string{"--port", "8000", "--ui-port", "8000"}, "both 8000"},
		{[]string{"--namespace", ""}, "--namespace"},
		{[]string{"--namespace", "a b"}, "--namespace"},
		{[]string{"--namespace", "temporal-system"}, "--namespace"},
		{[]string{"--retention", "1m"}, "--retention 1m0s is shorter than 1h0m0s"},
		{[]string{"--log-level", "loud"}, `--log-level "loud"`},
		{[]string{"--postgres", "mysql://u@h/d"}, "no postgres:// URL"},
		{[]string{"--postgres", "postgres://u@/d"}, "names no host"},
		{[]string{"--postgres", "postgres://h/d"}, "names no user"},
		{[]string{"--postgres", "postgres://u@h/"}, "no database of its own"},
		{[]string{"--postgres", "postgres://u@h/postgres"}, "no database of its own"},
		{[]string{"--postgres", "postgres://u:sec ret@h:x/d"}, "it is no URL, want"},
		{[]string{"--postgres", "postgres://u@h/d", "--db", "f"}, "--db and --postgres exclude each other"},
		{[]string{"--codec-endpoint", "localhost:8234"}, `--codec-endpoint "localhost:8234"`},
		{[]string{"--search-attribute", "Team"}, `--search-attribute "Team"`},
		{[]string{"--search-attribute", "Team=Blob"}, `--search-attribute "Team=Blob"`},
		{[]string{"--search-attribute", "=Int"}, `--search-attribute "=Int"`},
		{[]string{"--search-attribute", "WorkflowId=Keyword"}, "--search-attribute WorkflowId"},
		{[]string{"--search-attribute", "MendflowRun=Int"}, "--search-attribute MendflowRun is built in"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			var out, err bytes.Buffer
			require.Equal(t, exitUsage, run(t.Context(), test.args, streams{out: &out, err: &err}))
			require.Contains(t, err.String(), test.says)
			require.Equal(t, 1, strings.Count(err.String(), "\n"), "%s", &err)
			require.Empty(t, out.String())
		})
	}
}

func TestDefaultsStayOnLoopbackAndKeepThirtyDays(t *testing.T) {
	t.Parallel()
	opts, err := parse(nil, nil)
	require.NoError(t, err)
	require.True(t, opts.ip.IsLoopback())
	require.Equal(t, 7233, opts.port)
	require.Equal(t, 8233, opts.uiPort)
	require.Equal(t, "default", opts.namespace)
	require.Equal(t, 30*24*time.Hour, opts.retention)
	require.Empty(t, opts.database)
}

func TestSearchAttributeTypesAreRead(t *testing.T) {
	t.Parallel()
	opts, err := parse([]string{"--search-attribute", "Team=Keyword", "--search-attribute", "Due=Datetime"}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]enumspb.IndexedValueType{
		"Team": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"Due":  enumspb.INDEXED_VALUE_TYPE_DATETIME,
	}, opts.searchAttributes)
}
