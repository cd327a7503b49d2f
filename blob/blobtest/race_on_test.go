//go:build race

package blobtest

// raceDetector says that a defect which is a data race is found by the detector, which fails the whole test.
const raceDetector = true
