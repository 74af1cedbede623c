package process

import "errors"

// Sandbox confines a program to writing in the places that it names. Everything
// that the program may read or execute stays so. On Linux it is Landlock; it
// also takes away privileges gained by executing a file, the tracing of
// processes outside and, from Landlock ABI 6 on, signals to them. It does not
// stop changes of mode, owner and extended attributes of existing files, nor the
// network, and it forbids mounts, so that programs that bring a sandbox of
// mounts cannot use that inside.
type Sandbox struct {
	// Writable are absolute paths of existing folders and files. The usual
	// devices (null, zero, full, tty, ptmx, pts, shm) are added.
	Writable []string `json:"writable"`
}

// ErrNoSandbox is what the start of a sandboxed program fails with where there
// is no sandbox, and what [SandboxAvailable] returns there.
var ErrNoSandbox = errors.New("no sandbox on this system")
