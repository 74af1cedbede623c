package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

const (
	// minABI is the first Landlock that can forbid truncating files outside and
	// allow renaming between folders inside (Linux 6.2).
	minABI = 3
	// devicesABI restricts ioctl on devices (Linux 6.10), signalsABI restricts
	// signals to processes outside (Linux 6.12).
	devicesABI, signalsABI = 5, 6
)

// What is forbidden everywhere but in the writable places. Making devices is
// allowed nowhere: a worker with root's rights could write to the disk itself.
const (
	writeFile  = ll.AccessFSWriteFile | ll.AccessFSTruncate
	writeInDir = writeFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	makeDevice = ll.AccessFSMakeChar | ll.AccessFSMakeBlock
)

// devices are what programs expect to be able to write to.
var (
	deviceFiles   = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"}
	deviceFolders = []string{"/dev/pts", "/dev/shm"}
)

// SandboxAvailable returns the Landlock ABI of the kernel, or why there is no
// sandbox; the error is [ErrNoSandbox].
func SandboxAvailable() (abi int, err error) {
	abi, err = ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, fmt.Errorf("%w: the kernel has no Landlock", ErrNoSandbox)
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, fmt.Errorf("%w: Landlock is disabled at boot", ErrNoSandbox)
	case err != nil:
		return 0, fmt.Errorf("%w: ask for the Landlock version: %w", ErrNoSandbox, err)
	case abi < minABI:
		return abi, fmt.Errorf("%w: Landlock ABI %d is older than %d (Linux 6.2)", ErrNoSandbox, abi, minABI)
	}
	return abi, nil
}

// enforce confines this process for good.
func (s *Sandbox) enforce() error {
	abi, err := SandboxAvailable()
	if err != nil {
		return err
	}
	config := landlock.Config{HandledAccessFS: writeInDir | makeDevice}
	deviceRights := landlock.AccessFSSet(writeFile)
	if abi >= devicesABI {
		config.HandledAccessFS |= ll.AccessFSIoctlDev
		deviceRights |= ll.AccessFSIoctlDev
	}
	if abi >= signalsABI {
		config.Scoped = ll.ScopeSignal
	}
	rules := []landlock.Rule{
		landlock.PathAccess(deviceRights, deviceFiles...).IgnoreIfMissing(),
		landlock.PathAccess(writeInDir|deviceRights, deviceFolders...).IgnoreIfMissing(),
	}
	for _, path := range s.Writable {
		rule, err := writable(path)
		if err != nil {
			return err
		}
		rules = append(rules, rule)
	}
	if err := config.Restrict(rules...); err != nil {
		return fmt.Errorf("confine program: %w", err)
	}
	return nil
}

func writable(path string) (landlock.Rule, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("confine program: writable path %q is not absolute", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("confine program: %w", err)
	}
	if info.IsDir() {
		return landlock.PathAccess(writeInDir, path), nil
	}
	return landlock.PathAccess(writeFile, path), nil
}

// The confined program is executed by a second copy of this binary that
// confines itself first. The supervisor cannot do that on a thread of its own:
// a confined program may trace a thread in its own domain, and through it would
// have the memory of the whole supervisor.
const (
	confineOrderFD  = 3
	confineReportFD = 4
)

// startConfined starts a program inside its sandbox. Like fork and exec, it
// returns an error if any step up to the program's own first instruction failed.
func startConfined(o order, attr *syscall.ProcAttr) (pid int, err error) {
	orders, err := pipe()
	if err != nil {
		return 0, err
	}
	defer orders.close()
	reports, err := pipe()
	if err != nil {
		return 0, err
	}
	defer reports.close()

	inner := *attr
	inner.Env = frugal
	inner.Files = append(append([]uintptr{}, attr.Files...), orders.r.Fd(), reports.w.Fd())
	pid, err = syscall.ForkExec("/proc/self/exe", []string{os.Args[0], confineArg}, &inner)
	if err != nil {
		return 0, err
	}
	_ = orders.r.Close()
	_ = reports.w.Close()
	sendErr := json.NewEncoder(orders.w).Encode(o)
	_ = orders.w.Close()
	text, readErr := io.ReadAll(reports.r)
	if err := errors.Join(sendErr, readErr); err == nil && len(text) == 0 {
		return pid, nil // the program has taken over, which closed the pipe
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return 0, errors.Join(sendErr, readErr, fmt.Errorf("confine program: %s", text))
	}
	return 0, &startFailure{r.StartError, r.Errno}
}

// confine is the whole life of the second copy.
func confine() int {
	runtime.LockOSThread()
	unix.CloseOnExec(confineOrderFD)
	unix.CloseOnExec(confineReportFD)
	var o order
	err := json.NewDecoder(os.NewFile(confineOrderFD, "order")).Decode(&o)
	if err == nil {
		err = o.Sandbox.enforce()
	}
	if err == nil {
		// The parent-death signal was set on the first thread, which need not be
		// the one that executes.
		err = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	}
	if err == nil {
		dropCapabilities()
		err = executing(o.Path, syscall.Exec(o.Path, o.Argv, o.Env))
	}
	_ = json.NewEncoder(os.NewFile(confineReportFD, "report")).Encode(startReport(err))
	return 1
}

// dropped are the capabilities of root that reach around Landlock: they read the
// memory of other processes, load code into the kernel, or touch devices.
var dropped = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_BPF, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO,
	unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_SYSLOG, unix.CAP_MKNOD, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
	unix.CAP_DAC_READ_SEARCH,
}

// dropCapabilities takes effect when this thread executes the program. Where it
// is not allowed, the process is not root's and has none to lose, nor can the
// program gain any.
func dropCapabilities() {
	for _, c := range dropped {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
}

type pipeEnds struct{ r, w *os.File }

func pipe() (pipeEnds, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return pipeEnds{}, fmt.Errorf("open pipe: %w", err)
	}
	return pipeEnds{os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")}, nil
}

// close closes what is still open.
func (p pipeEnds) close() {
	_ = p.r.Close()
	_ = p.w.Close()
}
