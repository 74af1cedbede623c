package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// internalIP is where the server's own services listen; nothing outside of the process talks to them.
const internalIP = "127.0.0.1"

// ports are the TCP ports of one server. The services open them by number, so a free one must be chosen before.
type ports struct {
	frontend, ui              int
	history, matching, worker int
}

func choosePorts(opts options) (ports, error) {
	var p ports
	var err error
	if p.frontend, err = choosePort(opts.ip.String(), opts.port, "--port"); err != nil {
		return p, err
	}
	if !opts.headless {
		if p.ui, err = choosePort(opts.ip.String(), opts.uiPort, "--ui-port"); err != nil {
			return p, err
		}
	}
	for _, internal := range []*int{&p.history, &p.matching, &p.worker} {
		if *internal, err = freePort(internalIP); err != nil {
			return p, err
		}
	}
	return p, nil
}

func choosePort(ip string, port int, flag string) (int, error) {
	if port == 0 {
		return freePort(ip)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return 0, fmt.Errorf("listen on %s port %d: in use by another program, choose another one with %s (0: any)", ip, port, flag)
	}
	if err != nil {
		return 0, fmt.Errorf("listen on %s port %d (%s): %w", ip, port, flag, err)
	}
	return port, listener.Close()
}

// freePort returns a port that is free and stays reserved for a minute. It is used once before it is returned: the kernel
// gives a port with a connection in TIME_WAIT to nobody who asks for any port, but lets one open it who asks for that number.
func freePort(ip string) (port int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("find a free port on %s: %w", ip, err)
		}
	}()
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("no TCP address: %v", listener.Addr())
	}
	client, err := net.Dial("tcp", net.JoinHostPort(reachableIP(net.ParseIP(ip)), strconv.Itoa(address.Port)))
	if err != nil {
		return 0, err
	}
	accepted, err := listener.Accept()
	if err != nil {
		return 0, errors.Join(err, client.Close())
	}
	// The side that closes first keeps TIME_WAIT, and that must be the listening port's.
	return address.Port, errors.Join(accepted.Close(), client.Close())
}

// reachableIP is how this machine reaches a listener on ip.
func reachableIP(ip net.IP) string {
	switch {
	case !ip.IsUnspecified():
		return ip.String()
	case ip.To4() != nil:
		return net.IPv4(127, 0, 0, 1).String()
	default:
		return net.IPv6loopback.String()
	}
}
