package workercmd

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// killVariable names a point of landing.md at which this process kills itself
// once, the first time that it is reached: NAME, or NAME=FILE to do so only
// while FILE does not exist yet (it is made first). Crash tests set it.
const killVariable = "MENDFLOW_TEST_KILL_AT"

// killPoint returns the hook that crash tests ask for; nil in every other life.
func killPoint() func(string) {
	want, once, _ := strings.Cut(os.Getenv(killVariable), "=")
	if want == "" {
		return nil
	}
	var done atomic.Bool
	return func(point string) {
		if point != want || done.Swap(true) {
			return
		}
		if once != "" {
			f, err := os.OpenFile(once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return
			}
			_ = f.Close()
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
