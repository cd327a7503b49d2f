//go:build unix && !linux

package main

import (
	"runtime"
	"syscall"
	"time"
)

// processCPU is the user and system time of the process so far.
func processCPU() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// threadCPU stands in for a clock that these systems do not share: time that passes while the
// bench makes and checks content, which it does without waiting.
func threadCPU() time.Duration { return time.Duration(time.Now().UnixNano()) }

// peakRSS is the largest resident size of the process in bytes, or 0 if it is not known. ru_maxrss is
// in bytes on Darwin and in KiB on the BSDs (getrusage(2) of each).
func peakRSS() int64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(ru.Maxrss)
	}
	return int64(ru.Maxrss) << 10
}
