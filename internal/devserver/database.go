package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	serversql "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/resolver"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"golang.org/x/sys/unix"
)

// database is the SQLite database of one server: its place, the exclusive claim on it, and how the server connects to it.
type database struct {
	path string       // absolute and free of links; empty: in memory
	lock *flock.Flock // nil in memory
}

// openDatabase claims the database file and gives it the schema. An empty path means in memory.
func openDatabase(ctx context.Context, path string) (*database, error) {
	if path == "" {
		return &database{}, nil
	}
	path, err := realPath(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockDatabase(path)
	if err != nil {
		return nil, err
	}
	db := &database{path: path, lock: lock}
	if err := db.prepare(ctx); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// close gives the claim up. The server must have stopped.
func (d *database) close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Unlock()
}

// realPath resolves links, so that two names of one file meet in one lock.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find database %s: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("open database %s: folder %s does not exist (--db)", path, filepath.Dir(path))
	}
	if err != nil {
		return "", fmt.Errorf("open database %s: %w (--db)", path, err)
	}
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return "", fmt.Errorf("open database %s: folder %s is not writable: %w (--db)", path, folder, err)
	}
	return filepath.Join(folder, filepath.Base(path)), nil
}

// lockDatabase claims path for this process. SQLite itself lets a second server in, and two servers that both believe to own
// the history shards destroy each other's state. The lock is a file of its own next to the database, since closing any handle
// of the database file would drop the locks that SQLite holds on it.
func lockDatabase(path string) (*flock.Flock, error) {
	name := path + ".lock"
	lock := flock.New(name)
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock database %s: %w (--db)", path, err)
	}
	if !held {
		holder := "another devserver"
		if pid, err := os.ReadFile(name); err == nil && len(pid) > 0 {
			holder += ", process " + strings.TrimSpace(string(pid))
		}
		return nil, fmt.Errorf("lock database %s: in use by %s (--db)", path, holder)
	}
	if err := os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock database %s: %w (--db)", path, err), lock.Unlock())
	}
	return lock, nil
}

// schemaMark identifies the schema in the database header (PRAGMA user_version). The server does not upgrade SQLite schemas.
var schemaMark = int32(crc32.ChecksumIEEE([]byte("devserver "+sqliteschema.Version+" "+sqliteschema.VisibilityVersion)) >> 1)

// prepare makes the file ready for the server: WAL, which is a lasting property of the file, and the whole schema in one
// transaction, so that a kill leaves a database that is either empty or complete.
func (d *database) prepare(ctx context.Context) (err error) {
	if err := d.checkHeader(); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("open database %s: %w (--db)", d.path, err) }

	db, err := sql.Open("sqlite", "file:"+escapePath(d.path)+"?mode=rwc")
	if err != nil {
		return fail(err)
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()

	var mark, tables int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&mark); err != nil {
		return fail(err)
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return fail(err)
	}
	if tables > 0 {
		if mark != int(schemaMark) {
			return fail(fmt.Errorf("made by another program or Temporal version, need schema %s of this one", sqliteschema.Version))
		}
		return nil
	}
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode=wal"); err != nil {
		return fail(err)
	}
	if err := createSchema(ctx, db); err != nil {
		return fail(err)
	}
	return nil
}

// sqliteHeader is how every SQLite file begins (https://sqlite.org/fileformat.html).
const sqliteHeader = "SQLite format 3\x00"

// checkHeader makes a missing file, and refuses what is no database or cannot be opened.
func (d *database) checkHeader() error {
	file, err := os.OpenFile(d.path, os.O_RDWR|os.O_CREATE, 0o600) // payloads are nobody else's business
	if err != nil {
		return fmt.Errorf("open database: %w (--db)", err)
	}
	defer func() { _ = file.Close() }()

	head := make([]byte, len(sqliteHeader))
	n, err := io.ReadFull(file, head)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil || !bytes.Equal(head, []byte(sqliteHeader)):
		return fmt.Errorf("open database %s: not a SQLite database (--db)", d.path)
	}
	return nil
}

// connection is what the server's SQLite plugin opens. Whatever is no URI parameter of SQLite becomes a PRAGMA of the connection.
// The plugin uses one connection for everything, which is what SQLite is fastest with.
func (d *database) connection() *config.SQL {
	if d.path == "" {
		return &config.SQL{
			PluginName:        sqliteplugin.PluginName,
			DatabaseName:      "devserver",
			ConnectAttributes: map[string]string{"mode": "memory"},
		}
	}
	return &config.SQL{
		PluginName:        sqliteplugin.PluginName,
		DatabaseName:      escapePath(d.path),
		ConnectAttributes: filePragmas(),
	}
}

// storeName is how the server's configuration calls the one SQLite store.
const storeName = "sqlite"

func (d *database) persistence() config.Persistence {
	return config.Persistence{
		DefaultStore:     storeName,
		VisibilityStore:  storeName,
		NumHistoryShards: historyShards,
		DataStores:       map[string]config.DataStore{storeName: {SQL: d.connection()}},
	}
}

func (d *database) name() string { return d.path }

// admin returns the connection that the server's stores share, for statements of our own.
func (d *database) admin(logger log.Logger) (sqlplugin.AdminDB, error) {
	return serversql.NewSQLAdminDB(sqlplugin.DbKindUnknown, d.connection(), resolver.NewNoopResolver(), logger, metrics.NoopMetricsHandler)
}

// finish does for a database in memory, whose schema the server's plugin makes itself, what prepare does for a file.
func (d *database) finish(ctx context.Context, logger log.Logger) (err error) {
	if d.path != "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("prepare database in memory: %w", err)
		}
	}()
	// The plugin lends no connection for queries; a second database with the same schema tells what to change.
	model, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		return err
	}
	model.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, model.Close()) }()
	if err := sqliteschema.SetupSchemaOnDB(schemaWriter{db: model}); err != nil {
		return err
	}
	statements, err := lighterVisibility(ctx, model)
	if err != nil {
		return err
	}
	admin, err := d.admin(logger)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if err := admin.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return admin.Close()
}

// checkpoint brings what the WAL holds into the database file, so that a copy of that file alone is complete after an orderly stop.
func (d *database) checkpoint(logger log.Logger) error {
	if d.path == "" {
		return nil
	}
	admin, err := d.admin(logger)
	if err == nil {
		err = errors.Join(admin.Exec("PRAGMA wal_checkpoint(TRUNCATE)"), admin.Close())
	}
	if err != nil {
		return fmt.Errorf("checkpoint database %s: %w", d.path, err)
	}
	return nil
}

// escapePath keeps '?', '#' and '%' of a path from being read as parts of a SQLite URI.
func escapePath(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}
