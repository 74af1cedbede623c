// Package sqlite is the database driver "sqlite" that Temporal's SQLite store opens. It stands in for modernc.org/sqlite, whose
// place it takes by a replace directive, since the store names its driver and cannot be given another.
//
// Beneath it is SQLite in C (github.com/mattn/go-sqlite3) instead of SQLite translated to Go, with one addition: a statement is
// compiled once for a connection and not each time it is used. The server executes the same hundred statements all the time; of
// its processor time the database took 29 %, half of that the compilation. docs/performance.md has the figures.
//
// A kept statement is not interrupted by the end of its context: it takes microseconds, and watching the context costs a goroutine
// for every row. Lists and counts of executions, which may scan them all, are not kept, and are interrupted.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"
)

func init() { sql.Register("sqlite", opener{}) }

// opener opens connections. The data source is a URI of SQLite ("file:…", https://sqlite.org/uri.html); each parameter _pragma
// ("name=value") is set on the connection, the busy timeout first, since setting the others may have to wait.
type opener struct{}

// Open implements driver.Driver.
func (opener) Open(source string) (driver.Conn, error) {
	_, query, _ := strings.Cut(source, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	separator := "?"
	if query != "" {
		separator = "&"
	}
	// One goroutine at a time uses a connection, database/sql sees to that.
	inner, err := (&sqlite3.SQLiteDriver{}).Open(source + separator + "_mutex=no")
	if err != nil {
		return nil, translate(err)
	}
	c := &conn{SQLiteConn: inner.(*sqlite3.SQLiteConn), statements: map[string]*statement{}}
	for _, first := range []bool{true, false} {
		for _, pragma := range parameters["_pragma"] {
			if strings.HasPrefix(pragma, "busy_timeout") != first {
				continue
			}
			if _, err := c.SQLiteConn.ExecContext(context.Background(), "PRAGMA "+pragma, nil); err != nil {
				return nil, errors.Join(fmt.Errorf("set %s: %w", pragma, translate(err)), c.Close())
			}
		}
	}
	return c, nil
}

// maxStatements is how many statements a connection keeps. The server has fewer; more would be statements with values in their text.
const maxStatements = 500

// conn is a connection that keeps its statements.
type conn struct {
	*sqlite3.SQLiteConn
	statements map[string]*statement
}

// statement is a kept statement; busy while its rows are being read.
type statement struct {
	*sqlite3.SQLiteStmt
	busy bool
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	clear(c.statements)
	return translate(errors.Join(append(errs, c.SQLiteConn.Close())...))
}

// kept are the first words of statements that are kept. Others are rare, and what gives rows to an execution that takes none, as a
// PRAGMA does, would stay under way and hold its locks.
var kept = []string{"SELECT ", "INSERT ", "REPLACE ", "UPDATE ", "DELETE ", begin, commit, rollback}

const begin, commit, rollback = "BEGIN", "COMMIT", "ROLLBACK"

// listed is the table of executions that queries of the server's users read, with conditions of theirs in the text.
const listed = "executions_visibility"

// keeps reports whether the statement of a text is kept: it is a single one, one of those, and not a user's.
func keeps(text string) bool {
	text = strings.TrimSpace(text)
	if strings.Contains(strings.TrimRight(text, ";"), ";") || strings.HasPrefix(text, "SELECT") && strings.Contains(text, listed) {
		return false
	}
	return slices.ContainsFunc(kept, func(word string) bool { return len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) })
}

// statement returns the kept statement for a text, nil where there is none and the text has to be executed as it is.
func (c *conn) statement(ctx context.Context, text string) (*statement, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s := c.statements[text]; s != nil {
		if s.busy {
			return nil, nil
		}
		return s, nil
	}
	if len(c.statements) >= maxStatements || !keeps(text) {
		return nil, nil
	}
	prepared, err := c.SQLiteConn.PrepareContext(context.WithoutCancel(ctx), text)
	if err != nil {
		return nil, translate(err)
	}
	s := &statement{SQLiteStmt: prepared.(*sqlite3.SQLiteStmt)}
	c.statements[text] = s
	return s, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	var result driver.Result
	if s == nil {
		result, err = c.SQLiteConn.ExecContext(ctx, text, args)
	} else {
		result, err = s.ExecContext(context.WithoutCancel(ctx), args)
	}
	return result, translate(err)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	if s == nil {
		found, err := c.SQLiteConn.QueryContext(ctx, text, args)
		if err != nil {
			return nil, translate(err)
		}
		return &rows{SQLiteRows: found.(*sqlite3.SQLiteRows)}, nil
	}
	found, err := s.QueryContext(context.WithoutCancel(ctx), args)
	if err != nil {
		return nil, translate(err)
	}
	s.busy = true
	return &rows{SQLiteRows: found.(*sqlite3.SQLiteRows), of: s}, nil
}

// PrepareContext implements driver.ConnPrepareContext; what the caller prepares is the caller's.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.SQLiteConn.PrepareContext(ctx, text)
	return s, translate(err)
}

// BeginTx implements driver.ConnBeginTx. A transaction of SQLite is always serializable; read-only ones are not told apart.
func (c *conn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if _, err := c.ExecContext(ctx, begin, nil); err != nil {
		return nil, err
	}
	return transaction{c}, nil
}

// transaction ends by kept statements too.
type transaction struct{ on *conn }

// Commit implements driver.Tx. What cannot be committed is rolled back: database/sql takes the transaction for ended.
func (t transaction) Commit() error {
	_, err := t.on.ExecContext(context.Background(), commit, nil)
	if err != nil {
		_, _ = t.on.ExecContext(context.Background(), rollback, nil) // fails where SQLite did it already
	}
	return err
}

// Rollback implements driver.Tx.
func (t transaction) Rollback() error {
	_, err := t.on.ExecContext(context.Background(), rollback, nil)
	return err
}

// rows frees the statement that it came from.
type rows struct {
	*sqlite3.SQLiteRows
	of *statement
}

// Next implements driver.Rows.
func (r *rows) Next(dest []driver.Value) error {
	err := r.SQLiteRows.Next(dest)
	if errors.Is(err, io.EOF) {
		return io.EOF // compared by identity
	}
	return translate(err)
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	err := r.SQLiteRows.Close()
	if r.of != nil {
		r.of.busy, r.of = false, nil
	}
	return translate(err)
}

// Error is an error of SQLite.
type Error struct{ cause sqlite3.Error }

// Code is the extended result code (https://sqlite.org/rescode.html).
func (e *Error) Code() int {
	if e.cause.ExtendedCode != 0 {
		return int(e.cause.ExtendedCode)
	}
	return int(e.cause.Code)
}

// Error is what SQLite says, with the class of a bare mistake in the statement and the code.
func (e *Error) Error() string {
	if e.cause.Code == sqlite3.ErrError {
		return fmt.Sprintf("SQL logic error: %s (%d)", e.cause.Error(), e.Code())
	}
	return fmt.Sprintf("%s (%d)", e.cause.Error(), e.Code())
}

// Unwrap returns the error of the driver beneath.
func (e *Error) Unwrap() error { return e.cause }

func translate(err error) error {
	if cause, ok := errors.AsType[sqlite3.Error](err); ok {
		return &Error{cause}
	}
	return err
}
