//go:build !race

package blobtest

const raceDetector = false
