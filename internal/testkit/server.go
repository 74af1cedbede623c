package testkit

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
)

// Server is the embedded Temporal server as a process.
type Server struct {
	*Process
	Address string // 127.0.0.1:port; the same after a restart
	dir     string
	file    string // database; empty: in memory, or on PostgreSQL
	target  string // database on PostgreSQL; empty: none
	port    int
	args    []string // program and what every life of it is told
}

// postgresVariable is the URL of a PostgreSQL server: every server of the tests
// then keeps its state in a database of its own there (make test-postgres).
const postgresVariable = "MENDFLOW_TEST_POSTGRES"

// onPostgres returns the URL of a database that nobody has yet; empty without a PostgreSQL server.
func onPostgres() (string, error) {
	server := os.Getenv(postgresVariable)
	if server == "" {
		return "", nil
	}
	target, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("read %s: it is no URL", postgresVariable)
	}
	target.Path = fmt.Sprintf("/e2e_%d_%d", os.Getpid(), databases.Add(1))
	return target.String(), nil
}

// databases counts the databases of this test binary.
var databases atomic.Int64

// StartServer starts a server on a free port. Its log lies in dir; with durable
// set its database does too, so that a killed server comes back as it was.
func StartServer(dir string, durable bool) (*Server, error) {
	s, err := startServer(&Server{dir: dir, args: []string{Program("devserver")}}, durable)
	if err != nil {
		return s, err
	}
	return s, LetRunsWork(s.Address)
}

// StartServerAt starts a server on an address of a network, by the command that
// starts programs in it. Call [LetRunsWork] where it can be reached.
func StartServerAt(dir, ip string, in ...string) (*Server, error) {
	return startServer(&Server{dir: dir, args: append(slices.Clone(in), Program("devserver"), "--ip", ip)}, true)
}

func startServer(s *Server, durable bool) (*Server, error) {
	var err error
	if s.target, err = onPostgres(); err != nil {
		return nil, err
	}
	if durable && s.target == "" {
		s.file = filepath.Join(s.dir, "server.db")
	}
	return s, s.launch()
}

// Restart starts a server that has ended again, on its port and database.
func (s *Server) Restart() error { return s.launch() }

// Log is the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) launch() error {
	args := append(slices.Clone(s.args), "--json", "--headless", "--stop-with-parent", "--port", strconv.Itoa(s.port))
	if s.file != "" {
		args = append(args, "--db", s.file)
	}
	if s.target != "" {
		args = append(args, "--postgres", s.target)
	}
	var err error
	if s.Process, err = start("server", s.Log(), exec.Command(args[0], args[1:]...)); err != nil {
		return err
	}
	if err := s.await(s.ready); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// ready takes the ready line, which names the address.
func (s *Server) ready(line []byte) bool {
	var said struct {
		Ready   bool   `json:"ready"`
		Address string `json:"address"`
	}
	if json.Unmarshal(line, &said) != nil || !said.Ready {
		return false
	}
	_, port, err := net.SplitHostPort(said.Address)
	if err != nil {
		return false
	}
	s.Address = said.Address
	s.port, err = strconv.Atoi(port)
	return err == nil
}
