//go:build !race

package s3blob_test

// raceEnabled: see the other file.
const raceEnabled = false
