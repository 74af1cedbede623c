//go:build !linux

package process

import "syscall"

func daemonAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
