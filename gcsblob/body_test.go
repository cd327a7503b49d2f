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
			if err != nil || string(got) != c.want || b.complete() != c.complete || b.size != c.n+2 {
				t.Errorf("%+v: %q, complete %t, %v", c, got, b.complete(), err)
			}
		}
	}
}

// After letGo nobody reads the source any more.
func TestABodyLetGoIsNotRead(t *testing.T) {
	b := newBody("", iotest.ErrReader(io.ErrClosedPipe), 5, "")
	b.letGo()
	if _, err := b.Read(make([]byte, 1)); err != errLetGo { //nolint:errorlint // that one
		t.Error(err)
	}
	if b.sourceError() != nil {
		t.Error("the source was read")
	}
}
