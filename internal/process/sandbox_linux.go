package process

import (
	"errors"
	"fmt"
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

// confineThread confines the calling thread for good, and what it starts. The
// thread must be locked to its goroutine, and end with it.
func (s *Sandbox) confineThread() error {
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
	ruleset, flags, err := config.NewRulesetFD(rules...)
	if err != nil {
		return fmt.Errorf("confine program: %w", err)
	}
	defer func() { _ = unix.Close(ruleset) }()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine program: forbid new privileges: %w", err)
	}
	if err := ll.LandlockRestrictSelf(ruleset, flags); err != nil {
		return fmt.Errorf("confine program: restrict thread: %w", err)
	}
	dropCapabilities()
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

// startConfined starts a program inside its sandbox: from a thread that is
// confined alone, the supervisor itself stays free.
//
// A program may trace threads of its own Landlock domain, and through that one
// would have the memory of the whole supervisor. So the supervisor's memory is
// closed to tracing first, for everybody without a capability that the program
// does not have.
func startConfined(o order, attr *syscall.ProcAttr) (pid int, err error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("close the supervisor to tracing: %w", err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: what a failure leaves ends with the goroutine
		err := o.Sandbox.confineThread()
		if err == nil {
			pid, err = syscall.ForkExec(o.Path, o.Argv, attr)
			err = executing(o.Path, err)
		}
		started <- err
		if err == nil {
			select {} // the program's parent-death signal comes when this thread ends
		}
	}()
	err = <-started
	return pid, err
}

// dropped are the capabilities of root that reach around Landlock: they read the
// memory of other processes, load code into the kernel, or touch devices.
var dropped = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_BPF, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO,
	unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_SYSLOG, unix.CAP_MKNOD, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
	unix.CAP_DAC_READ_SEARCH,
}

// dropCapabilities takes effect when the program is executed. Where it is not
// allowed, the process is not root's and has none to lose, nor can the program
// gain any.
func dropCapabilities() {
	for _, c := range dropped {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
}
