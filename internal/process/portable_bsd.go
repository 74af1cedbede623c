//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package process

import (
	"context"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Without Linux there is no supervisor: programs are direct children, only
// their process group is followed, and there is no sandbox and no sweep.

func start(spec *Spec, path string, files stdio) (child, error) {
	if spec.Sandbox != nil {
		_, err := SandboxAvailable()
		return nil, &StartError{Program: spec.argv()[0], Err: err}
	}
	return startDirect(spec, path, files)
}

func directAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// observeExit returns when the child pid has ended, and leaves it unreaped.
func observeExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(queue)
	change := make([]unix.Kevent_t, 1)
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	for {
		_, err := unix.Kevent(queue, change, make([]unix.Kevent_t, 1), nil)
		if !errors.Is(err, unix.EINTR) {
			return // ended, or ended before we asked
		}
	}
}

// groupAlive is not known here; a group gets no more time than its leader.
func groupAlive(int) bool { return false }

// BecomeSubreaper does nothing on this system.
func BecomeSubreaper(context.Context) error { return nil }

// Sweep finds nothing on this system.
func Sweep(context.Context, string) ([]LeftProcess, error) { return nil, nil }

// SandboxAvailable returns the reason why there is no sandbox on this system.
func SandboxAvailable() (abi int, err error) { return 0, ErrNoSandbox }
