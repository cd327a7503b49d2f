package faultsweep

// Pending returns the rules of blobtest that the engine of the cloud stores cannot keep yet, each with what it waits for. The map is the caller's.
func Pending() map[string]string {
	const streams = "uploads of streams, with Writes"
	return map[string]string{
		"set/sha256":                   "checksums of whole objects, with Reads",
		"stream/known-length":          streams,
		"stream/unknown-length":        streams,
		"stream/readers":               streams,
		"stream/short":                 streams,
		"stream/long":                  streams,
		"stream/fails":                 streams,
		"stream/unexpected-eof":        streams,
		"stream/panics":                streams,
		"stream/used-twice":            streams,
		"stream/conditions":            streams,
		"stream/metadata":              streams,
		"context/cancel-during-stream": streams,
	}
}
