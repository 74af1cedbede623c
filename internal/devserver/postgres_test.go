package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/log"
)

// postgresVariable is the URL, without a database, of the PostgreSQL server of scripts/with-postgres.
const postgresVariable = "MENDFLOW_TEST_POSTGRES"

// onPostgres returns the URL of a database that does not exist yet.
func onPostgres(t *testing.T) string {
	t.Helper()
	server := os.Getenv(postgresVariable)
	if server == "" {
		t.Skip("no PostgreSQL server: make test-postgres has one")
	}
	target, err := url.Parse(server)
	require.NoError(t, err)
	target.Path = fmt.Sprintf("/devserver_%d", rand.Uint64())
	return target.String()
}

func TestPostgresURLIsReadAndItsPasswordNeverShown(t *testing.T) {
	t.Setenv("PGPASSWORD", "of-the-environment")
	target, err := parsePostgres("postgres://u@h/mendflow?sslmode=disable")
	require.NoError(t, err)
	p := &postgres{target: target}
	require.Equal(t, "postgres://u@h:5432/mendflow", p.name())
	sql := p.connection(p.main() + visibilitySuffix)
	require.Equal(t, "of-the-environment", sql.Password)
	require.Equal(t, "h:5432", sql.ConnectAddr)
	require.Equal(t, "mendflow_visibility", sql.DatabaseName)
	require.Equal(t, map[string]string{"sslmode": "disable"}, sql.ConnectAttributes)

	target, err = parsePostgres("postgresql://u:of-the-url@h:1/mendflow")
	require.NoError(t, err)
	p = &postgres{target: target}
	require.Equal(t, "of-the-url", p.connection(p.main()).Password)
	require.NotContains(t, p.name(), "of-the-url")

	for _, text := range []string{"postgres://u:of-the-url@h:port/d", "postgres://u:of-the-url@/d", "mysql://u:of-the-url@h/d"} {
		_, err = parsePostgres(text)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "of-the-url")
	}
}

func TestUnreachablePostgresIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	code, message := fail(t, "--headless", "--postgres", "postgres://u:hidden@127.0.0.1:1/mendflow?sslmode=disable")
	require.Equal(t, exitError, code)
	require.Contains(t, message, "open database postgres://u@127.0.0.1:1/mendflow: ")
	require.Contains(t, message, "(--postgres)")
	require.NotContains(t, message, "hidden")
}

func TestKilledServerOnPostgresGoesOnWithARunningWorkflow(t *testing.T) {
	t.Parallel()
	target := onPostgres(t)
	first := launch(t, "--headless", "--postgres", target)
	require.True(t, strings.HasPrefix(target, first.ready.Database+"?"), first.ready.Database)
	run, err := first.work(t).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "patient", TaskQueue: "queue"}, waiting)
	require.NoError(t, err)

	code, message := fail(t, "--headless", "--postgres", target)
	require.Equal(t, exitError, code)
	require.Contains(t, message, "in use by another devserver")
	first.kill()

	second := launch(t, "--headless", "--postgres", target)
	c := second.work(t)
	require.NoError(t, c.SignalWorkflow(t.Context(), "patient", run.GetRunID(), "word", "hello"))
	var word string
	require.NoError(t, c.GetWorkflow(t.Context(), "patient", run.GetRunID()).Get(t.Context(), &word))
	require.Equal(t, "hello", word)
	require.Empty(t, second.stderr.String())
}

func TestKillDuringTheFirstStartLeavesAUsablePostgres(t *testing.T) {
	t.Parallel()
	target, err := parsePostgres(onPostgres(t))
	require.NoError(t, err)
	open := func() (*postgres, error) { return openPostgres(t.Context(), target, log.NewNoopLogger()) }
	p, err := open()
	require.NoError(t, err)

	// As a kill in the middle of the schema leaves it.
	require.NoError(t, p.comment(t.Context(), p.main(), unfinished))
	db, err := p.connect(p.main())
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "DELETE FROM schema_version")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, p.close())

	p, err = open()
	require.NoError(t, err)
	fresh, err := p.create(t.Context(), p.main())
	require.NoError(t, err)
	require.False(t, fresh, "what is whole stays")
	require.NoError(t, p.close())
}
