package blobtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// data returns n incompressible bytes that depend on the seed and the label.
func (e *env) data(label string, n int64) []byte {
	b := make([]byte, n)
	fill(b, fmt.Sprintf("%d %s", e.Seed, label))
	return b
}

func fill(b []byte, label string) {
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(label))).Read(b)
}

const selfHeader = 16

// selfDescribing returns content of n bytes, at least selfHeader, that says by itself what it is: a blend of two
// such contents, or a part of one, is neither.
func selfDescribing(id uint64, n int64) []byte {
	b := make([]byte, max(n, selfHeader))
	fill(b[selfHeader:], fmt.Sprint("self-describing ", id))
	binary.BigEndian.PutUint64(b, id)
	binary.BigEndian.PutUint64(b[8:], uint64(len(b)))
	return b
}

// identify returns the id of content that is whole and unmixed.
func identify(b []byte) (id uint64, err error) {
	if len(b) < selfHeader {
		return 0, fmt.Errorf("%d bytes, which is a part of some content", len(b))
	}
	id = binary.BigEndian.Uint64(b)
	n := binary.BigEndian.Uint64(b[8:])
	if n != uint64(len(b)) {
		return 0, fmt.Errorf("%d bytes of a content %d that has %d", len(b), id, n)
	}
	if want := selfDescribing(id, int64(n)); !bytes.Equal(b, want) {
		return 0, fmt.Errorf("bytes that begin as content %d and are not it: %s", id, diff(b, want))
	}
	return id, nil
}

func beUint64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// diff describes how got differs from want, in one line whatever their size.
func diff(got, want []byte) string {
	n := min(len(got), len(want))
	at := n
	for i := range n {
		if got[i] != want[i] {
			at = i
			break
		}
	}
	switch {
	case at < n:
		return fmt.Sprintf("%d bytes, want %d; the first difference is at offset %d: %#02x, want %#02x", len(got), len(want), at, got[at], want[at])
	case len(got) != len(want):
		return fmt.Sprintf("%d bytes, want %d; equal as far as they go", len(got), len(want))
	}
	return "equal"
}
