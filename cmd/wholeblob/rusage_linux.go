package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU is the user and system time of the process so far.
func processCPU() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// threadCPU is the processor time of the calling thread, to which the caller is locked.
func threadCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// peakRSS is the largest resident size of the process in bytes, or 0 if it is not known. It is read from VmHWM:
// ru_maxrss survives execve, so under "go run" it can be that of the parent (getrusage(2)).
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		f := bytes.Fields(line)
		if len(f) == 3 && string(f[0]) == "VmHWM:" {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			return n << 10 // the unit is always kB, of 1024 bytes (proc(5))
		}
	}
	return 0
}
