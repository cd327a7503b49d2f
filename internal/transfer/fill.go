package transfer

import (
	"errors"
	"fmt"
	"io"

	"github.com/wholeblob/wholeblob/blob"
)

// fill reads the reply's body, which begins at offset lo of the object, into the place of seg from done on.
//
// Bytes that came before a body failed count, and the next attempt goes on behind them; unless a checksum covers the
// body, which is known only at its end: then nothing of it counts before.
func (r *read) fill(a attempt, rep *ReadReply, lo int64, seg segment, done *int64) error {
	from, end := seg.off+*done, seg.off+seg.n
	if skip := from - lo; skip > 0 {
		if n, err := io.CopyN(io.Discard, a.w.reader(rep.Body), skip); err != nil {
			return cut(err, "body ended %d bytes before byte %d", skip-n, from)
		}
	}
	count := func(n int) {
		*done += int64(n)
		r.got.Add(int64(n))
		a.Progress()
	}
	dst := r.buf[from-r.lo : end-r.lo]
	var ended error // how the body ended, if it has
	n := 0
	for n < len(dst) && ended == nil {
		m, err := rep.Body.Read(dst[n:])
		n, ended = n+m, err
		switch {
		case m > 0 && rep.Checked:
			a.w.moved()
		case m > 0: // bytes that come with an error count
			count(m)
		}
	}
	if n < len(dst) {
		return cut(ended, "got %d of the %d bytes from %d", n, len(dst), from)
	}
	if hi := lo + rep.Length; rep.Length < 0 && end == r.total || rep.Length >= 0 && hi == end {
		if err := atEnd(rep, ended, end); err != nil {
			if !rep.Checked {
				a.Final() // all of seg is there: another attempt would find nothing left to do, and so not this fault
			}
			return err
		}
	}
	if rep.Checked {
		count(n)
	}
	return nil
}

// atEnd checks that a body which should have ended at end has. All wanted bytes are there, so an error of the connection is of no
// interest now, but one byte more would show that the lengths lied, and a checksum that does not match takes the place of the end.
func atEnd(rep *ReadReply, ended error, end int64) error {
	var b [1]byte
	for range 2 { // a reader may return 0, nil once
		if ended != nil {
			break
		}
		n, err := rep.Body.Read(b[:])
		if n > 0 {
			return badReply(fmt.Errorf("%w: the body goes on after byte %d", blob.ErrCorrupt, end))
		}
		ended = err
	}
	if rep.Checked && ended != nil && !errors.Is(ended, io.EOF) {
		return badReply(fmt.Errorf("%w: at the end of the body, whose checksum is checked there: %w", blob.ErrCorrupt, ended))
	}
	return nil
}
