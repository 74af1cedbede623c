package testkit

import (
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Server is the embedded Temporal server as a process.
type Server struct {
	*Process
	Address string // 127.0.0.1:port; the same after a restart
	dir     string
	file    string // database; empty: in memory
	port    int
}

// StartServer starts a server on a free port. Its log lies in dir; with durable
// set its database does too, so that a killed server comes back as it was.
func StartServer(dir string, durable bool) (*Server, error) {
	s := &Server{dir: dir}
	if durable {
		s.file = filepath.Join(dir, "server.db")
	}
	return s, s.launch()
}

// Restart starts a server that has ended again, on its port and database.
func (s *Server) Restart() error { return s.launch() }

// Log is the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) launch() error {
	args := []string{"--json", "--headless", "--stop-with-parent", "--port", strconv.Itoa(s.port)}
	if s.file != "" {
		args = append(args, "--db", s.file)
	}
	var err error
	if s.Process, err = start("server", s.Log(), exec.Command(Program("devserver"), args...)); err != nil {
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
