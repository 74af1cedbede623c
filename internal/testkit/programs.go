package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// binVariable names a folder with programs to test instead of bin/ of the module.
const binVariable = "MENDFLOW_BIN"

// Root is the folder of the module.
func Root() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		panic("testkit: no source position") // it was compiled from a file
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Bin is the folder of the built programs.
func Bin() string {
	if dir := os.Getenv(binVariable); dir != "" {
		return dir
	}
	return filepath.Join(Root(), "bin")
}

// CheckBuilt returns an error that says what to do when a program is missing.
func CheckBuilt() error {
	for _, name := range []string{"devserver", "starter", "worker"} {
		info, err := os.Stat(filepath.Join(Bin(), name))
		if err != nil || info.IsDir() {
			return fmt.Errorf("find program %s in %s: run make build", name, Bin())
		}
	}
	return nil
}

// Program is the path of a built program.
func Program(name string) string { return filepath.Join(Bin(), name) }
