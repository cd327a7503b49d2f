//go:build !unix

package main

import "time"

// Processor time and resident size are not measured on this system: 0, shown as "-".
func processCPU() time.Duration { return 0 }
func threadCPU() time.Duration  { return 0 }
func peakRSS() int64            { return 0 }
