// Package lib has the result codes of SQLite that Temporal's store compares.
package lib

// Extended result codes, by the names that the store knows them by (https://sqlite.org/rescode.html).
//
//nolint:revive // not our names
const (
	SQLITE_CONSTRAINT            = 19
	SQLITE_CONSTRAINT_PRIMARYKEY = 1555
	SQLITE_CONSTRAINT_UNIQUE     = 2067
)
