//go:build race

package s3blob_test

// raceEnabled: the race detector multiplies memory, so limits on it are not checked.
const raceEnabled = true
