package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	uiversion "github.com/temporalio/ui-server/v2/server/version"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/searchattribute/sadefs"
)

// Exit codes of the program.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// version is set by the release build (-ldflags "-X main.version=1.2.3").
var version = "dev"

// streams are the outputs of the program: out carries the ready line and what was asked for, err the log and errors.
type streams struct{ out, err io.Writer }

// options are the checked command line.
type options struct {
	ip               net.IP
	port             int // 0: a free one
	uiPort           int // 0: a free one
	headless         bool
	database         string   // empty: in memory
	postgres         *url.URL // nil: SQLite
	namespace        string
	retention        time.Duration
	searchAttributes map[string]enumspb.IndexedValueType // in addition to the built-in ones
	codecEndpoint    string                              // where the Web UI has payloads decrypted; empty: nowhere
	logLevel         slog.Level
	json             bool
	stopWithParent   bool
}

const usageText = `Temporal server with SQLite or PostgreSQL and Web UI for Mendflow on one machine.

Usage:
  devserver [flags]

Example:
  devserver --db ~/.local/state/mendflow/dev.db

Flags:
`

// run is the program: it serves until ctx ends and returns the exit code.
func run(ctx context.Context, args []string, std streams) int {
	opts, err := parse(args, std.out)
	switch {
	case errors.Is(err, errAnswered):
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintf(std.err, "devserver: %v (see devserver --help)\n", err)
		return exitUsage
	}
	if err := serve(ctx, opts, std); err != nil {
		_, _ = fmt.Fprintf(std.err, "devserver: %s\n", oneLine(err))
		return exitError
	}
	return exitOK
}

// errAnswered says that --help or --version was all that was asked for.
var errAnswered = errors.New("answered")

func parse(args []string, out io.Writer) (options, error) {
	var o options
	var ip, level, target string
	var attributes []string
	var showVersion bool

	flags := pflag.NewFlagSet("devserver", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.StringVar(&ip, "ip", "127.0.0.1", "address to listen on; there is no authentication, keep it on loopback")
	flags.IntVar(&o.port, "port", 7233, "port of the Temporal frontend (0: a free one)")
	flags.IntVar(&o.uiPort, "ui-port", 8233, "port of the Web UI (0: a free one)")
	flags.BoolVar(&o.headless, "headless", false, "no Web UI")
	flags.StringVar(&o.database, "db", "", "SQLite `file`, made if missing (default: in memory)")
	flags.StringVar(&target, "postgres", "", "PostgreSQL database instead of SQLite: `postgres://USER@HOST[:PORT]/DATABASE`, made if missing, with a second one for lists; password from PGPASSWORD")
	flags.StringVar(&o.namespace, "namespace", "default", "namespace to register")
	flags.DurationVar(&o.retention, "retention", 720*time.Hour, "how long closed workflows are kept")
	flags.StringArrayVar(&attributes, "search-attribute", nil, "further search attribute, as `NAME=TYPE` (repeatable)")
	flags.StringVar(&o.codecEndpoint, "codec-endpoint", "", "`URL` of the payload codec that the Web UI asks (starter codec serve)")
	flags.StringVar(&level, "log-level", "warn", "debug, info, warn or error")
	flags.BoolVar(&o.json, "json", false, "ready line as a JSON object")
	flags.BoolVar(&o.stopWithParent, "stop-with-parent", false, "stop when the parent process ends")
	flags.BoolVar(&showVersion, "version", false, "print the version")

	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprint(out, usageText, flags.FlagUsages())
		return o, errors.Join(errAnswered, err)
	case err != nil:
		return o, err
	}
	if showVersion {
		_, err := fmt.Fprintf(out, "devserver %s (Temporal %s, Web UI %s)\n", version, headers.ServerVersion, uiversion.UIVersion)
		return o, errors.Join(errAnswered, err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.check(ip, level, target, attributes)
}

// namespaceName is stricter than the server, which takes anything up to a length; these names are also safe in URLs and shells.
var namespaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)

// minRetention is the server's own lower bound for a local namespace.
const minRetention = time.Hour

func (o *options) check(ip, level, target string, attributes []string) error {
	if o.ip = net.ParseIP(ip); o.ip == nil {
		return fmt.Errorf("--ip %q is not an IP address", ip)
	}
	if err := checkPort("--port", o.port); err != nil {
		return err
	}
	if err := checkPort("--ui-port", o.uiPort); err != nil {
		return err
	}
	if !o.headless && o.port != 0 && o.port == o.uiPort {
		return fmt.Errorf("--port and --ui-port are both %d", o.port)
	}
	if !namespaceName.MatchString(o.namespace) || o.namespace == systemNamespace {
		return fmt.Errorf("--namespace %q is not a usable name: letters, digits, '.', '_' and '-'", o.namespace)
	}
	if u, err := url.Parse(o.codecEndpoint); o.codecEndpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--codec-endpoint %q is not an http or https URL", o.codecEndpoint)
	}
	if target != "" {
		if o.database != "" {
			return errors.New("--db and --postgres exclude each other")
		}
		var err error
		if o.postgres, err = parsePostgres(target); err != nil {
			return err
		}
	}
	if o.retention < minRetention {
		return fmt.Errorf("--retention %v is shorter than %v", o.retention, minRetention)
	}
	if err := o.logLevel.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("--log-level %q is none of debug, info, warn, error", level)
	}
	var err error
	o.searchAttributes, err = parseSearchAttributes(attributes)
	return err
}

func checkPort(flag string, port int) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("%s %d is not between 0 and 65535", flag, port)
	}
	return nil
}

func parseSearchAttributes(pairs []string) (map[string]enumspb.IndexedValueType, error) {
	attributes := make(map[string]enumspb.IndexedValueType, len(pairs))
	for _, pair := range pairs {
		name, typeName, _ := strings.Cut(pair, "=")
		kind, err := enumspb.IndexedValueTypeFromString(typeName)
		if name == "" || err != nil || kind == enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED {
			return nil, fmt.Errorf("--search-attribute %q is not NAME=TYPE with one of the types Bool, Datetime, Double, Int, Keyword, KeywordList, Text", pair)
		}
		if sadefs.IsReserved(name) {
			return nil, fmt.Errorf("--search-attribute %s is a name of Temporal's own", name)
		}
		if known, ok := builtinSearchAttributes[name]; ok && known != kind {
			return nil, fmt.Errorf("--search-attribute %s is built in with the type %v", name, known)
		}
		attributes[name] = kind
	}
	return attributes, nil
}

// oneLine keeps a joined or multi-line error readable as one line.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
