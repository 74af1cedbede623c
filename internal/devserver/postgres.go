package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/lib/pq"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	postgresplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/tools/common/schema"
	toolsql "go.temporal.io/server/tools/sql"
)

const (
	// visibilitySuffix makes the name of the second database of a server, which holds the lists of workflows.
	visibilitySuffix = "_visibility"
	// administrative is the database that every PostgreSQL server has, from which others are made.
	administrative = "postgres"
	// postgresShards is fixed when a database is made. Unlike SQLite's, its connections work side by side.
	postgresShards = 4
	// postgresConns bounds the connections to each of the two databases; PostgreSQL allows 100 in all by default.
	postgresConns = 20
	// connLifetime exchanges connections now and then, as proxies and failovers need it.
	connLifetime = time.Hour
)

// postgres is a pair of PostgreSQL databases: the server's state and its visibility.
type postgres struct {
	target *url.URL // with the password, which nobody prints
	claim  *sql.DB  // one connection to the administrative database, which holds the lock while it is open; nil before
}

// parsePostgres checks a connection URL. A password that it does not have comes from PGPASSWORD, as for psql: the command line
// is seen by everyone on the machine.
func parsePostgres(text string) (*url.URL, error) {
	bad := func(why string) error {
		return fmt.Errorf("--postgres: %s, want postgres://USER@HOST[:PORT]/DATABASE", why)
	}
	target, err := url.Parse(text)
	if err != nil {
		return nil, bad("it is no URL") // its error would show the password
	}
	name := strings.TrimPrefix(target.Path, "/")
	switch {
	case target.Scheme != "postgres" && target.Scheme != "postgresql":
		return nil, bad("it is no postgres:// URL")
	case target.Hostname() == "":
		return nil, bad("it names no host")
	case target.User.Username() == "":
		return nil, bad("it names no user")
	case !namespaceName.MatchString(name) || name == administrative:
		return nil, bad("it names no database of its own")
	}
	if target.Port() == "" {
		target.Host = net.JoinHostPort(target.Hostname(), "5432")
	}
	if _, given := target.User.Password(); !given && os.Getenv("PGPASSWORD") != "" {
		target.User = url.UserPassword(target.User.Username(), os.Getenv("PGPASSWORD"))
	}
	return target, nil
}

// openPostgres claims the databases for this process, makes them where they are missing, and brings their schemas up to date with
// the server's own schema tool.
func openPostgres(ctx context.Context, target *url.URL, logger log.Logger) (p *postgres, err error) {
	p = &postgres{target: target}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open database %s: %w (--postgres)", p.name(), err), p.close())
		}
	}()
	if err := p.lock(ctx); err != nil {
		return p, err
	}
	for _, d := range []struct{ database, schema string }{
		{p.main(), "postgresql/v12/temporal"}, {p.main() + visibilitySuffix, "postgresql/v12/visibility"},
	} {
		fresh, err := p.create(ctx, d.database)
		if err != nil {
			return p, err
		}
		if err := p.migrate(d.database, d.schema, logger); err != nil {
			return p, fmt.Errorf("bring the schema of %s up to date: %w", d.database, err)
		}
		if fresh {
			if err := p.comment(ctx, d.database, whole); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

func (p *postgres) main() string { return strings.TrimPrefix(p.target.Path, "/") }

// name is the URL without the password.
func (p *postgres) name() string {
	shown := *p.target
	shown.User, shown.RawQuery = url.User(p.target.User.Username()), ""
	return shown.String()
}

// connect opens one of the server's databases.
func (p *postgres) connect(database string) (*sql.DB, error) {
	target := *p.target
	target.Path = "/" + database
	connector, err := pq.NewConnector(target.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// lock claims the databases for as long as the connection lives: two servers with one name would take the history shards from
// each other without end.
func (p *postgres) lock(ctx context.Context) error {
	db, err := p.connect(administrative)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	p.claim = db
	key := fnv.New64a()
	_, _ = key.Write([]byte("devserver " + p.main())) // never fails
	var held bool
	if err := db.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(key.Sum64())).Scan(&held); err != nil {
		return err
	}
	if !held {
		return errors.New("in use by another devserver")
	}
	return nil
}

// Comments on a database tell whether its schema was made to the end: the schema tool cannot go on with one that a kill left half
// made, so that is made anew.
const (
	unfinished = "Temporal for Mendflow: being made"
	whole      = "Temporal for Mendflow"
)

// create makes a database unless it is there, and says whether it did.
func (p *postgres) create(ctx context.Context, database string) (fresh bool, err error) {
	var comment sql.NullString
	err = p.claim.QueryRowContext(ctx, "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1", database).Scan(&comment)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return false, err
	case comment.String != unfinished:
		return false, nil
	default:
		if _, err := p.claim.ExecContext(ctx, "DROP DATABASE "+pq.QuoteIdentifier(database)); err != nil {
			return false, err
		}
	}
	if _, err := p.claim.ExecContext(ctx, "CREATE DATABASE "+pq.QuoteIdentifier(database)); err != nil {
		return false, err
	}
	return true, p.comment(ctx, database, unfinished)
}

func (p *postgres) comment(ctx context.Context, database, text string) error {
	_, err := p.claim.ExecContext(ctx, "COMMENT ON DATABASE "+pq.QuoteIdentifier(database)+" IS "+pq.QuoteLiteral(text))
	return err
}

// migrate sets a schema up, or brings the one that is there up to date.
func (p *postgres) migrate(database, name string, logger log.Logger) error {
	conn, err := toolsql.NewConnection(p.connection(database), logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := schema.NewSetupSchemaTask(conn, &schema.SetupConfig{InitialVersion: "0.0"}, logger).Run(); err != nil {
		return err
	}
	return schema.NewUpdateSchemaTask(conn, &schema.UpdateConfig{DBName: database, SchemaName: name}, logger).Run()
}

// connection is what the server's PostgreSQL plugin opens. The plugin joins user and host itself; parameters of the URL (sslmode,
// sslrootcert, …) are the driver's.
func (p *postgres) connection(database string) *config.SQL {
	password, _ := p.target.User.Password()
	attributes := map[string]string{}
	for key, values := range p.target.Query() {
		attributes[key] = values[0]
	}
	return &config.SQL{
		PluginName: postgresplugin.PluginName, ConnectProtocol: "tcp", ConnectAddr: p.target.Host,
		User: p.target.User.Username(), Password: password, DatabaseName: database, ConnectAttributes: attributes,
		MaxConns: postgresConns, MaxIdleConns: postgresConns, MaxConnLifetime: connLifetime,
	}
}

func (p *postgres) persistence() config.Persistence {
	const main, visibility = "postgres", "postgres-visibility"
	return config.Persistence{
		DefaultStore: main, VisibilityStore: visibility, NumHistoryShards: postgresShards,
		DataStores: map[string]config.DataStore{
			main:       {SQL: p.connection(p.main())},
			visibility: {SQL: p.connection(p.main() + visibilitySuffix)},
		},
	}
}

func (p *postgres) finish(context.Context, log.Logger) error { return nil }
func (p *postgres) checkpoint(log.Logger) error              { return nil }

func (p *postgres) close() error {
	if p.claim == nil {
		return nil
	}
	return p.claim.Close()
}
