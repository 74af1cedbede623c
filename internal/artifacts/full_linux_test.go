package artifacts_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mendflow/internal/artifacts"
)

// fill mounts a small file system in a namespace of its own and fills it.
func fill(folder string) int {
	if err := unix.Mount("none", folder, "tmpfs", 0, "size=64k"); err != nil {
		fmt.Println("mount:", err)
		return 3
	}
	ctx := context.Background()
	s, err := artifacts.Open(ctx, "file://"+folder)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, err = s.Put(ctx, "big", make([]byte, 1<<20))
	left, _ := os.ReadDir(folder)
	fmt.Println(err)
	if !errors.Is(err, artifacts.ErrFull) || !errors.Is(err, syscall.ENOSPC) || len(left) > 0 {
		return 1
	}
	return 0
}

func TestFullDiskIsToldApart(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "__fill", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 3 {
		t.Skipf("this machine allows no mount in a namespace: %v %s", err, out)
	}
	require.NoError(t, err, string(out))
}
