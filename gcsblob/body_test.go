package gcsblob

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A body is read as one, and one whose source ends early ends there: what comes after the content never stands in its place.
func TestABodyEndsWhereItsSourceEnds(t *testing.T) {
	for _, c := range []struct {
		src      string
		n        int64
		want     string
		complete bool
	}{
		{"content", 7, "<content>", true},
		{"", 0, "<>", true},
		{"cont", 7, "<cont", false},
		{"", 7, "<", false},
		{"contents", 7, "<content>", true},
	} {
		for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
			b := newBody("<", read(strings.NewReader(c.src)), c.n, ">")
			got, err := io.ReadAll(b)
			if err != nil || string(got) != c.want || b.Complete() != c.complete || b.Size() != c.n+2 {
				t.Errorf("%+v: %q, complete %t, %v", c, got, b.Complete(), err)
			}
		}
	}
}
