//go:build !sqlite_fts5 || !cgo

package sqlite

// The server's schema needs the full-text search of SQLite, which the driver compiles in only with this tag, and SQLite is C.
var _ = build_with_cgo_and_tags_sqlite_fts5
