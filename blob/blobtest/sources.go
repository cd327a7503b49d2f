package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
)

// errSource is what the sources that fail on purpose fail with.
var errSource = errors.New("blobtest: the source fails on purpose")

// readerAtFunc is an io.ReaderAt made of a function.
type readerAtFunc func(p []byte, off int64) (int, error)

// ReadAt implements io.ReaderAt.
func (f readerAtFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// readerFunc is an io.Reader made of a function.
type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// failsAt returns a ReaderAt of data whose reads that reach offset at call fail.
func failsAt(data []byte, at int64, fail func() (int, error)) io.ReaderAt {
	r := bytes.NewReader(data)
	return readerAtFunc(func(p []byte, off int64) (int, error) {
		if off+int64(len(p)) > at {
			return fail()
		}
		return r.ReadAt(p, off)
	})
}

// streamFailsAt returns a Reader of data[:at] that then calls fail.
func streamFailsAt(data []byte, at int64, fail func() (int, error)) io.Reader {
	r := bytes.NewReader(data[:at])
	return readerFunc(func(p []byte) (int, error) {
		if r.Len() == 0 {
			return fail()
		}
		return r.Read(p)
	})
}

func returnsErrSource() (int, error) { return 0, errSource }
func panics() (int, error)           { panic(errSource) }

// untouched is a ReaderAt that nobody may read.
func untouched(size int64) (src blob.Source, reads *atomic.Int64) {
	reads = new(atomic.Int64)
	return blob.ReaderAt(readerAtFunc(func(p []byte, _ int64) (int, error) {
		reads.Add(1)
		return len(p), nil
	}), size), reads
}

// held is a source that stops in the middle until it is let go.
type held struct {
	data    []byte
	at      int64 // reads that reach this offset wait
	reached chan struct{}
	release chan struct{}
	once    sync.Once
	giveUp  context.Context
}

func holdAt(ctx context.Context, data []byte, at int64) *held {
	return &held{data: data, at: at, reached: make(chan struct{}), release: make(chan struct{}), giveUp: ctx}
}

// ReadAt implements io.ReaderAt.
func (h *held) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > h.at {
		h.once.Do(func() { close(h.reached) })
		select {
		case <-h.release:
		case <-h.giveUp.Done():
			return 0, fmt.Errorf("blobtest: held source given up: %w", h.giveUp.Err())
		}
	}
	return bytes.NewReader(h.data).ReadAt(p, off)
}

func (h *held) source() blob.Source { return blob.ReaderAt(h, int64(len(h.data))) }

// startHeld starts a Set that stops in its source, and returns when it has. end lets it go on and
// returns what Set did.
func (e *env) startHeld(key string, data []byte) (end func() (blob.Info, error)) {
	h := holdAt(e.ctx, data, int64(len(data))/2)
	type result struct {
		info blob.Info
		err  error
	}
	done := make(chan result, 1)
	go func() {
		info, err := e.store.Set(e.ctx, key, h.source(), nil)
		done <- result{info, err}
	}()
	select {
	case <-h.reached:
	case r := <-done:
		e.Fatalf("Set(%q) returned without having read its whole source: %v", key, r.err)
	case <-e.ctx.Done():
		e.Fatalf("Set(%q) does not read its source", key)
	}
	return func() (blob.Info, error) {
		close(h.release)
		r := <-done
		return r.info, r.err
	}
}
