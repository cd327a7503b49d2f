package fakehttp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"
)

// Rope is content in pieces, so that an object of parts is its parts' bytes
// without a copy. Its bytes never change.
type Rope [][]byte

// Size is the number of bytes.
func (r Rope) Size() (n int64) {
	for _, b := range r {
		n += int64(len(b))
	}
	return n
}

// Slice returns the n bytes from off on, which must exist.
func (r Rope) Slice(off, n int64) Rope {
	var out Rope
	for _, b := range r {
		if n == 0 {
			break
		}
		if off >= int64(len(b)) {
			off -= int64(len(b))
			continue
		}
		piece := b[off:min(int64(len(b)), off+n)]
		out = append(out, piece)
		n -= int64(len(piece))
		off = 0
	}
	return out
}

// Bytes returns the content in a new slice.
func (r Rope) Bytes() []byte { return slices.Concat(r...) }

// readChunk is how much is read before it is hashed: it should still be in
// the cache then.
const readChunk = 256 << 10

// ErrTooLarge is returned by ReadBody for a body over the limit.
var ErrTooLarge = errors.New("body over the limit")

// ReadBody reads the body of the request and notes in the log what came; one of a known length in one allocation. With
// an error it returns what came before: a service may keep that.
func (c *Call) ReadBody(limit int64) ([]byte, error) {
	size := c.HTTP.ContentLength
	if size > limit {
		return nil, ErrTooLarge
	}
	var data []byte
	var err error
	if size >= 0 {
		var n int
		data = make([]byte, size)
		n, err = c.ReadFull(c.HTTP.Body, data, nil)
		data = data[:n]
	} else {
		data, err = c.readUnknown(limit)
	}
	c.Entry.BodyLen = int64(len(data))
	if c.s.opts.HashBodies && !c.s.opts.NoLog {
		sum := sha256.Sum256(data)
		c.Entry.BodySHA256 = hex.EncodeToString(sum[:])
	}
	return data, err
}

// readUnknown reads a body whose length was not announced.
func (c *Call) readUnknown(limit int64) ([]byte, error) {
	var data []byte
	piece := make([]byte, 64<<10)
	for {
		n, err := c.HTTP.Body.Read(piece)
		c.Throttle(n)
		data = append(data, piece[:n]...)
		switch {
		case int64(len(data)) > limit:
			return data[:limit], ErrTooLarge
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return data, err
		}
	}
}

// ReadFull fills data from r at the bandwidth of the server, and shows each piece to seen, unless that is nil. It returns how
// much came.
func (c *Call) ReadFull(r io.Reader, data []byte, seen func([]byte)) (n int, err error) {
	for n < len(data) {
		piece := data[n:min(len(data), n+readChunk)]
		m, err := io.ReadFull(r, piece)
		n += m
		if err != nil {
			return n, err
		}
		c.Throttle(m)
		if seen != nil {
			seen(piece)
		}
	}
	return n, nil
}

// Throttle spends the time that n bytes take at the set bandwidth.
func (c *Call) Throttle(n int) {
	if bw := c.Bandwidth; bw > 0 {
		c.Sleep(time.Duration(float64(n) / float64(bw) * float64(time.Second)))
	}
}
