//go:build !linux

package realserver

import "syscall"

// dieWithParent has no equal outside Linux: a test process that is killed
// there leaves its server running.
func dieWithParent() *syscall.SysProcAttr { return nil }

// hasUserXattrs is false where it was not tried; servers then keep their
// metadata in files.
func hasUserXattrs(string) bool { return false }
