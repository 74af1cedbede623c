package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

func TestDatabaseInUseIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "dev.db")
	p := launch(t, "--headless", "--db", path)
	link := filepath.Join(folder, "other.db")
	require.NoError(t, os.Symlink(path, link))

	for _, name := range []string{path, link} {
		code, message := fail(t, "--port", "0", "--headless", "--db", name)
		require.Equal(t, exitError, code)
		require.Equal(t, fmt.Sprintf("devserver: lock database %s: in use by another devserver, process %d (--db)\n", path, p.cmd.Process.Pid), message)
	}

	require.Equal(t, exitOK, p.stop(t, syscall.SIGTERM))
	launch(t, "--headless", "--db", path)
}

func TestUnusableDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text := filepath.Join(folder, "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte("not a database, but long enough"), 0o600))
	foreign := filepath.Join(folder, "foreign.db")
	db, err := sql.Open("sqlite", "file:"+foreign)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "CREATE TABLE bread (loaf TEXT)")
	require.NoError(t, err)
	require.NoError(t, db.Close())

	for path, says := range map[string]string{
		filepath.Join(folder, "missing", "dev.db"): "folder " + filepath.Join(folder, "missing") + " does not exist",
		"/proc/dev.db": "lock database /proc/dev.db",
		text:           "not a SQLite database",
		foreign:        "made by another program or Temporal version",
		folder:         "is a directory",
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			code, message := fail(t, "--port", "0", "--headless", "--db", path)
			require.Equal(t, exitError, code)
			require.Contains(t, message, says)
			require.Contains(t, message, "(--db)")
			require.Equal(t, 1, strings.Count(message, "\n"), message)
		})
	}
}

func TestKillDuringTheFirstStartLeavesAUsableDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.db")
	for delay := 20 * time.Millisecond; delay < 500*time.Millisecond; delay += delay / 2 {
		cmd := command("--port", "0", "--headless", "--db", path)
		require.NoError(t, cmd.Start())
		time.Sleep(delay) // the moment of the kill is what the test varies
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
	}
	launch(t, "--headless", "--db", path)
}

// preparedDatabase returns an open database file with the schema, and a connection like the server's.
func preparedDatabase(t *testing.T) (*database, *sql.DB) {
	t.Helper()
	d, err := openDatabase(t.Context(), filepath.Join(t.TempDir(), "dev.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.close()) })

	dsn := "file:" + d.connection().DatabaseName + "?_time_format=sqlite"
	for name, value := range d.connection().ConnectAttributes {
		if name == "mode" {
			dsn += "&mode=" + value
		} else {
			dsn += "&_pragma=" + name + "=" + value
		}
	}
	db, err := sql.Open("sqlite", dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return d, db
}

func TestDatabaseIsInWALModeAndNeverWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	d, db := preparedDatabase(t)
	for pragma, want := range map[string]string{
		"journal_mode": "wal",
		"synchronous":  "1", // NORMAL
		"locking_mode": "exclusive",
		"busy_timeout": "5000",
	} {
		var value string
		require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&value))
		require.Equal(t, want, value, pragma)
	}
	head, err := os.ReadFile(d.path)
	require.NoError(t, err)
	require.Equal(t, []byte{2, 2}, head[18:20], "write and read version of the header say WAL")
}

// A cancelled query is interrupted on the connection that everybody shares; others must not notice.
func TestCancelledQueryDoesNotDisturbOthers(t *testing.T) {
	t.Parallel()
	_, db := preparedDatabase(t)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE counter (n INTEGER)")
	require.NoError(t, err)

	var writers sync.WaitGroup
	errs := make(chan error, 400)
	for range 4 {
		writers.Go(func() {
			for range 100 {
				_, err := db.ExecContext(context.Background(), "INSERT INTO counter VALUES (1)")
				errs <- err
			}
		})
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		var n int
		_ = db.QueryRowContext(ctx, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c").Scan(&n) // cut short
		cancel()
	}
	writers.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	var rows int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM counter").Scan(&rows))
	require.Equal(t, 400, rows)
}

// A schema of a new server version whose visibility table looks different must not lose anything silently.
func TestLighterVisibilityKeepsWhatQueriesNeed(t *testing.T) {
	t.Parallel()
	_, db := preparedDatabase(t)
	indexes, err := selectStrings(t.Context(), db, "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'executions_visibility'")
	require.NoError(t, err)
	require.ElementsMatch(t, keptIndexes, indexes)
	triggers, err := selectStrings(t.Context(), db, "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'executions_visibility'")
	require.NoError(t, err)
	require.Len(t, triggers, 6, "insert, delete and update of two full-text tables")
}

func TestFullTextIndexStaysWhole(t *testing.T) {
	t.Parallel()
	_, db := preparedDatabase(t)
	exec := func(query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		require.NoError(t, err)
	}
	const insert = `INSERT INTO executions_visibility (namespace_id, run_id, start_time, execution_time, workflow_id, workflow_type_name, status, encoding, search_attributes)
		VALUES ('n', ?, 0, 0, 'w', 't', 1, '', ?)`
	const update = "UPDATE executions_visibility SET search_attributes = ? WHERE run_id = ?"
	attributes := []any{nil, `{"KeywordList01":"a♡b"}`, `{"KeywordList01":"b","Text01":"some words"}`, `{"Text01":"other words"}`, `{"Keyword01":"x"}`}
	for i, from := range attributes {
		for j, to := range attributes {
			id := fmt.Sprintf("%d-%d", i, j)
			exec(insert, id, from)
			exec(update, to, id)
			exec(update, to, id)
		}
	}
	matches := func(table, word string) (n int) {
		t.Helper()
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" WHERE "+table+" MATCH ?", word).Scan(&n))
		return n
	}
	require.Equal(t, 5, matches("executions_visibility_fts_keyword_list", "a"))
	require.Equal(t, 10, matches("executions_visibility_fts_keyword_list", "b"))
	require.Equal(t, 10, matches("executions_visibility_fts_text", "words"))
	require.Equal(t, 5, matches("executions_visibility_fts_text", "other"))

	exec("DELETE FROM executions_visibility")
	require.Zero(t, matches("executions_visibility_fts_keyword_list", "b"))
	require.Zero(t, matches("executions_visibility_fts_text", "words"))
	for _, table := range []string{"executions_visibility_fts_keyword_list", "executions_visibility_fts_text"} {
		exec("INSERT INTO " + table + "(" + table + ") VALUES ('integrity-check')")
	}
}

func TestSchemaMarkFollowsTheServersSchema(t *testing.T) {
	t.Parallel()
	_, db := preparedDatabase(t)
	var mark int32
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&mark))
	require.Equal(t, schemaMark, mark)
	require.Positive(t, mark)
	require.NotEmpty(t, sqliteschema.Version)
}
