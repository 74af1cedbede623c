package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, parameters string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db")+"?"+parameters)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func exec(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, text string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), text, args...)
	require.NoError(t, err, text)
}

// keptOf looks into the only connection.
func keptOf(t *testing.T, db *sql.DB) (texts []string) {
	t.Helper()
	lent, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, lent.Close()) }()
	require.NoError(t, lent.Raw(func(c any) error {
		for text := range c.(*conn).statements {
			texts = append(texts, text)
		}
		return nil
	}))
	return texts
}

func TestPragmasOfTheSourceAreSet(t *testing.T) {
	t.Parallel()
	db := open(t, "mode=rwc&_pragma=journal_mode%3Dwal&_pragma=synchronous%3Dnormal&_pragma=busy_timeout%3D1234&_time_format=sqlite")
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "busy_timeout": "1234"} {
		var got string
		require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
	broken, err := sql.Open("sqlite", "file::memory:?_pragma=no such=pragma(")
	require.NoError(t, err)
	require.ErrorContains(t, broken.PingContext(t.Context()), "set no such=pragma(")
}

func TestStatementIsCompiledOnceAndFreedByItsRows(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	exec(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")
	for i := range 3 {
		exec(t, db, "INSERT INTO t (id, v) VALUES (?, ?)", i, []byte{byte(i)})
	}
	const all = "SELECT id FROM t ORDER BY id"
	for range 2 {
		var ids []int
		rows, err := db.QueryContext(t.Context(), all)
		require.NoError(t, err)
		for rows.Next() {
			var id int
			require.NoError(t, rows.Scan(&id))
			ids = append(ids, id)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.Equal(t, []int{0, 1, 2}, ids)
	}
	require.ElementsMatch(t, []string{"INSERT INTO t (id, v) VALUES (?, ?)", all}, keptOf(t, db))
	exec(t, db, "DROP TABLE t") // refused while a statement on it is under way
}

func TestStatementThatIsBeingReadCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	exec(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
	exec(t, db, "INSERT INTO t VALUES (1), (2)")
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Commit()) }()
	const all = "SELECT id FROM t ORDER BY id"
	outer, err := tx.QueryContext(t.Context(), all)
	require.NoError(t, err)
	seen := 0
	for outer.Next() {
		inner, err := tx.QueryContext(t.Context(), all)
		require.NoError(t, err)
		for inner.Next() {
			seen++
		}
		require.NoError(t, inner.Err())
		require.NoError(t, inner.Close())
	}
	require.NoError(t, outer.Err())
	require.NoError(t, outer.Close())
	require.Equal(t, 4, seen)
}

func TestTransactionsCommitAndRollBack(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	exec(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
	for i, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		exec(t, tx, "INSERT INTO t VALUES (?)", i)
		require.NoError(t, end(tx))
	}
	var sum, n int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT sum(id), count(*) FROM t").Scan(&sum, &n))
	require.Equal(t, []int{0, 1}, []int{sum, n})
}

func TestErrorsHaveCodesAndTexts(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	exec(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE)")
	exec(t, db, "INSERT INTO t VALUES (1, 'a')")
	for text, want := range map[string]struct {
		code int
		text string
	}{
		"INSERT INTO t VALUES (1, 'b')": {1555, "UNIQUE constraint failed: t.id (1555)"},
		"INSERT INTO t VALUES (2, 'a')": {2067, "UNIQUE constraint failed: t.u (2067)"},
		"CREATE TABLE t (id INTEGER)":   {1, "SQL logic error: table t already exists (1)"},
		"SELECT missing FROM t":         {1, "SQL logic error: no such column: missing (1)"},
	} {
		_, err := db.ExecContext(t.Context(), text)
		var failure *Error
		require.ErrorAs(t, err, &failure, text)
		require.Equal(t, want.code, failure.Code(), text)
		require.Equal(t, want.text, failure.Error())
	}
}

func TestEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	exec(t, db, "CREATE TABLE t (id INTEGER)")
	lent, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, lent.Close()) }()
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, lent.Raw(func(c any) error {
		_, err := c.(driver.ExecerContext).ExecContext(ended, "INSERT INTO t VALUES (1)", nil)
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.(driver.ConnBeginTx).BeginTx(ended, driver.TxOptions{})
		require.ErrorIs(t, err, context.Canceled)
		return nil
	}))
}

func TestTimesAndNullsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	exec(t, db, "CREATE TABLE t (at TIMESTAMP, b BLOB, n BIGINT)")
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	exec(t, db, "INSERT INTO t VALUES (?, ?, ?)", at, nil, int64(1)<<62)
	var gotAt time.Time
	var b []byte
	var n int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT at, b, n FROM t").Scan(&gotAt, &b, &n))
	require.True(t, at.Equal(gotAt), gotAt)
	require.Nil(t, b)
	require.Equal(t, int64(1)<<62, n)
}
