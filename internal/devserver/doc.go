// Program devserver is Temporal on one machine: the server with SQLite (a file, or memory) or PostgreSQL and the Web UI in one
// process.
//
// It is what `starter dev`, the end-to-end tests and the quick start run on. It differs from `temporal server start-dev` in what
// a Mendflow deployment needs: the namespace comes with Mendflow's search attributes and its retention, the database survives a
// kill at any moment, two servers never share one file, the queue processors are tuned for latency on a small machine (tuning.go),
// and one line on standard output says when everything can be used and where.
//
//	devserver ready: address=127.0.0.1:7233 ui=http://127.0.0.1:8233 namespace=default db=/var/lib/mendflow/dev.db
//	{"ready":true,"address":"127.0.0.1:7233","ui":"http://127.0.0.1:8233","namespace":"default","db":"/var/lib/mendflow/dev.db"}
//
// The second form is that of --json and is the one to parse. "ui" is empty with --headless; "db" is empty in memory.
// Exit codes: 0 stopped by SIGTERM or SIGINT (or, with --stop-with-parent, by the end of the parent), 1 error, 2 usage.
//
// It has no authentication and no TLS, so it listens on loopback unless told otherwise. It is not a cluster: no replication, no
// archival, no metrics, no upgrade of a database that another server version made.
package main
