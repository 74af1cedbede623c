package testkit

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Network is a small network inside of this machine: a hub place with an address,
// and places that reach it over a link each, all in network namespaces of their
// own. Nothing outside of them changes. It needs root and ends with the test.
type Network struct {
	t      testing.TB
	prefix string
	Hub    Place
	Places []Place
}

// Place is a network namespace.
type Place struct {
	Name string
	IP   string // of the hub: the address at which all places reach it
	link string // its end of the link, in its namespace
	peer string // the hub's end, in the hub's namespace
}

// hubIP is what every place routes to. It exists in the namespaces only.
const hubIP = "10.77.0.1"

// NewNetwork makes a hub and n places. It skips the test, with the reason, only
// where network namespaces are not permitted.
func NewNetwork(t testing.TB, n int) *Network {
	t.Helper()
	nw := &Network{t: t, prefix: fmt.Sprintf("mf%d", os.Getpid()%100000)}
	nw.Hub = Place{Name: nw.prefix + "h", IP: hubIP}
	if out, err := exec.Command("ip", "netns", "add", nw.Hub.Name).CombinedOutput(); err != nil {
		t.Skipf("network namespaces are not permitted here: ip netns add: %v: %s", err, out)
	}
	nw.dropAtEnd(nw.Hub.Name)
	nw.In(nw.Hub, "ip", "link", "set", "lo", "up")
	nw.In(nw.Hub, "ip", "addr", "add", hubIP+"/32", "dev", "lo")
	for i := range n {
		nw.Places = append(nw.Places, nw.connect(i+1))
	}
	return nw
}

func (nw *Network) dropAtEnd(name string) {
	nw.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
}

func (nw *Network) connect(i int) Place {
	p := Place{Name: fmt.Sprintf("%s%d", nw.prefix, i), link: fmt.Sprintf("%sl%d", nw.prefix, i), peer: fmt.Sprintf("%sp%d", nw.prefix, i)}
	p.IP = fmt.Sprintf("10.77.%d.2", i)
	nw.run("ip", "netns", "add", p.Name)
	nw.dropAtEnd(p.Name)
	// Made in the hub's namespace, so that this machine's own never sees it.
	nw.In(nw.Hub, "ip", "link", "add", p.peer, "type", "veth", "peer", "name", p.link, "netns", p.Name)
	nw.In(nw.Hub, "ip", "addr", "add", fmt.Sprintf("10.77.%d.1/30", i), "dev", p.peer)
	nw.In(nw.Hub, "ip", "link", "set", p.peer, "up")
	nw.In(p, "ip", "link", "set", "lo", "up")
	nw.In(p, "ip", "addr", "add", p.IP+"/30", "dev", p.link)
	nw.restore(p)
	return p
}

func (nw *Network) restore(p Place) {
	nw.In(p, "ip", "link", "set", p.link, "up")
	nw.In(p, "ip", "route", "replace", "default", "via", strings.TrimSuffix(p.IP, "2")+"1")
}

// Enter is what starts a program in a place.
func (p Place) Enter() []string { return []string{"ip", "netns", "exec", p.Name} }

// In runs a command in a place.
func (nw *Network) In(p Place, args ...string) { nw.t.Helper(); nw.run(append(p.Enter(), args...)...) }

func (nw *Network) run(args ...string) {
	nw.t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	require.NoError(nw.t, err, "%v: %s", args, out)
}

// Cut takes a place's link down; Mend brings it back.
func (nw *Network) Cut(p Place) { nw.t.Helper(); nw.In(p, "ip", "link", "set", p.link, "down") }

// Mend brings a cut link back.
func (nw *Network) Mend(p Place) { nw.t.Helper(); nw.restore(p) }

// Slow bounds a link in both directions, and delays it where the kernel can. It
// returns what it did.
func (nw *Network) Slow(p Place, rate, delay string) string {
	nw.t.Helper()
	ends := []struct {
		at   Place
		link string
	}{{p, p.link}, {nw.Hub, p.peer}}
	how := "rate " + rate + " and delay " + delay
	for _, e := range ends {
		netem := append(e.at.Enter(), "tc", "qdisc", "add", "dev", e.link, "root", "netem", "rate", rate, "delay", delay)
		if exec.Command(netem[0], netem[1:]...).Run() == nil {
			continue
		}
		how = "rate " + rate + ", without a delay: this kernel has no netem"
		nw.In(e.at, "tc", "qdisc", "add", "dev", e.link, "root", "tbf", "rate", rate, "burst", "16kb", "latency", "2s")
	}
	return how
}

// Proxy lets this process and its children reach an address of the hub: it
// returns one on loopback that passes on to it.
func (nw *Network) Proxy(address string) string {
	nw.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(nw.t, err)
	var wait sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	nw.t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		wait.Wait()
	})
	wait.Go(func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { pass(ctx, here, nw.Hub, address) })
		}
	})
	return listener.Addr().String()
}

// pass copies both ways until one side ends or ctx does.
func pass(ctx context.Context, here net.Conn, at Place, address string) {
	defer func() { _ = here.Close() }()
	there, err := at.dial(address)
	if err != nil {
		return
	}
	defer func() { _ = there.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = here.Close(), there.Close() })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(there, here)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
	_ = here.Close()
	<-done
}

// dial connects from within a place: a socket belongs to the namespace of the
// thread that makes it. The thread is not used for anything else afterwards.
func (p Place) dial(address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	dialled := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		file, err := os.Open("/var/run/netns/" + p.Name)
		if err == nil {
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
			_ = file.Close()
		}
		var conn net.Conn
		if err == nil {
			conn, err = net.Dial("tcp", address)
		}
		dialled <- result{conn, err}
	}()
	r := <-dialled
	return r.conn, r.err
}
