package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// createSchema makes the server's tables in one transaction, so that a kill leaves a database that is empty or complete.
func createSchema(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := sqliteschema.SetupSchemaOnDB(schemaWriter{db: tx}); err != nil {
		return err
	}
	statements, err := lighterVisibility(ctx, tx)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version="+strconv.Itoa(int(schemaMark))); err != nil {
		return err
	}
	return tx.Commit()
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// schemaWriter lets the server's schema code write into a database or transaction of ours; Exec is all that it calls.
type schemaWriter struct {
	sqlplugin.AdminDB
	db interface {
		Exec(query string, args ...any) (sql.Result, error)
	}
}

func (w schemaWriter) Exec(statement string, args ...any) error {
	_, err := w.db.Exec(statement, args...)
	return err
}

// keptIndexes of the visibility table are those behind the lists that people and Mendflow ask for.
var keptIndexes = []string{"default_idx", "by_workflow_id", "by_workflow_type", "by_status"}

// lighterVisibility returns the statements that take from the visibility table what makes a write to it the server's greatest
// expense (a third of all processor time): some sixty indexes on columns that nobody fills, and triggers that rewrite two
// full-text tables on every change. Queries give the same results; one on an attribute scans the executions of the namespace.
func lighterVisibility(ctx context.Context, db querier) ([]string, error) {
	indexes, err := selectStrings(ctx, db, `SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
		AND tbl_name = 'executions_visibility' AND name NOT IN ('`+strings.Join(keptIndexes, "', '")+`')`)
	if err != nil {
		return nil, err
	}
	var statements []string
	for _, index := range indexes {
		statements = append(statements, "DROP INDEX "+index)
	}
	for _, event := range []string{"ai", "ad", "au"} {
		statements = append(statements, "DROP TRIGGER executions_visibility_"+event)
	}
	for _, table := range []string{"executions_visibility_fts_text", "executions_visibility_fts_keyword_list"} {
		columns, err := selectStrings(ctx, db, "SELECT name FROM pragma_table_info('"+table+"')")
		if err != nil {
			return nil, err
		}
		statements = append(statements, fullTextTriggers(table, columns)...)
	}
	return statements, nil
}

// fullTextTriggers keep a full-text table in step with the visibility table like the server's own triggers do, but touch it only
// when one of its columns has a value and changes. A row without values is not in the index, which finds it as little as before.
func fullTextTriggers(table string, columns []string) []string {
	each := func(format, glue string) string {
		parts := make([]string, len(columns))
		for i, column := range columns {
			parts[i] = strings.ReplaceAll(format, "?", column)
		}
		return strings.Join(parts, glue)
	}
	hasNew, hasOld, changed := each("NEW.? IS NOT NULL", " OR "), each("OLD.? IS NOT NULL", " OR "), each("OLD.? IS NOT NEW.?", " OR ")
	insert := fmt.Sprintf("INSERT INTO %s (rowid, %s) SELECT NEW.rowid, %s WHERE %s;", table, each("?", ", "), each("NEW.?", ", "), hasNew)
	remove := fmt.Sprintf("INSERT INTO %[1]s (%[1]s, rowid, %[2]s) SELECT 'delete', OLD.rowid, %[3]s WHERE %[4]s;",
		table, each("?", ", "), each("OLD.?", ", "), hasOld)

	const trigger = "CREATE TRIGGER %s_%s AFTER %s ON executions_visibility WHEN %s BEGIN %s END"
	return []string{
		fmt.Sprintf(trigger, table, "ai", "INSERT", hasNew, insert),
		fmt.Sprintf(trigger, table, "ad", "DELETE", hasOld, remove),
		fmt.Sprintf(trigger, table, "au", "UPDATE", changed, remove+" "+insert),
	}
}

func selectStrings(ctx context.Context, db querier, query string) (values []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}
