package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wholeblob/wholeblob/blob"
)

func sourceRules() []rule {
	return []rule{
		{name: "source/short", says: "A ReaderAt of fewer bytes than declared is ErrSourceLength, and nothing becomes visible.", run: func(e *env) {
			e.badSource(blob.ErrSourceLength, func(d []byte) blob.Source {
				return blob.ReaderAt(bytes.NewReader(d[:len(d)-1]), int64(len(d)))
			})
		}},
		{name: "source/empty", says: "A ReaderAt of no bytes where some are declared is ErrSourceLength, and nothing becomes visible.", run: func(e *env) {
			e.badSource(blob.ErrSourceLength, func(d []byte) blob.Source { return blob.ReaderAt(bytes.NewReader(nil), int64(len(d))) })
		}},
		{name: "source/fails", says: "A ReaderAt that fails is an error that wraps its own, and nothing becomes visible.", run: func(e *env) {
			e.badSource(errSource, func(d []byte) blob.Source {
				return blob.ReaderAt(failsAt(d, int64(len(d))*6/10, returnsErrSource), int64(len(d)))
			})
		}},
		{name: "source/unexpected-eof", says: "io.ErrUnexpectedEOF of a source is a failure, never the end of a short object.", run: func(e *env) {
			e.badSource(io.ErrUnexpectedEOF, func(d []byte) blob.Source {
				return blob.ReaderAt(failsAt(d, int64(len(d))*6/10, func() (int, error) { return 0, io.ErrUnexpectedEOF }), int64(len(d)))
			})
		}},
		{name: "source/panics", says: "A source that panics fails the Set, not the program, and nothing becomes visible.", run: func(e *env) {
			e.badSource(nil, func(d []byte) blob.Source {
				return blob.ReaderAt(failsAt(d, int64(len(d))*6/10, panics), int64(len(d)))
			})
		}},
		{name: "source/eof-with-data", says: "A ReaderAt may return io.EOF with its last bytes, or without.", run: sourceEOF},
		{name: "source/left-alone", says: "No Set returns while it may still read its source.", run: sourceLeftAlone},
	}
}

// badSource checks that a Set of a source that goes wrong leaves the old state, in one request and in
// many, and on a missing and an existing key. kind nil is the panic of errSource.
func (e *env) badSource(kind error, source func(d []byte) blob.Source) {
	for _, size := range []int64{100, e.PartSize, 3*e.PartSize + 7} {
		for _, exists := range []bool{false, true} {
			k := e.key(fmt.Sprint(size, exists))
			old := e.data("old", 50)
			if exists {
				e.mustSet(k, old, nil)
			}
			_, err := e.store.Set(e.ctx, k, source(e.data("new", size)), nil)
			switch {
			case kind != nil:
				e.refused(err, blob.OpSet, k, kind)
			case err == nil:
				e.Errorf("Set of a source that panics succeeded")
			default:
				e.isPanic(err, k)
			}
			if exists {
				e.holds(k, old)
			} else {
				e.absent(k)
			}
			if got := e.keys(k, nil); exists != (len(got) == 1) {
				e.Errorf("after the failed Set List yields %q", got)
			}
		}
	}
}

func (e *env) isPanic(err error, key string) {
	e.isTyped(err, blob.OpSet, key)
	var s *blob.SourceError
	if !errors.As(err, &s) || !strings.Contains(err.Error(), errSource.Error()) {
		e.Errorf("Set of a source that panics: want a *blob.SourceError with what it panicked with: %v", err)
	}
	if blob.OutcomeOf(err) != blob.NotApplied {
		e.Errorf("Set of a source that panics: the outcome is %v: %v", blob.OutcomeOf(err), err)
	}
}

func sourceEOF(e *env) {
	for _, size := range []int64{1, 100, e.PartSize, 3*e.PartSize + 7} {
		for _, with := range []bool{true, false} {
			k := e.key(fmt.Sprint(size, with))
			d := e.data(k, size)
			src := readerAtFunc(func(p []byte, off int64) (int, error) {
				n, err := bytes.NewReader(d).ReadAt(p, off)
				if n == len(p) { // the one case in which io.ReaderAt leaves it open
					err = nil
					if with && off+int64(n) == size {
						err = io.EOF
					}
				}
				return n, err
			})
			if _, err := e.store.Set(e.ctx, k, blob.ReaderAt(src, size), nil); err != nil {
				e.Errorf("Set of %d bytes, io.EOF with the last of them: %v: %v", size, with, err)
				continue
			}
			e.holds(k, d)
		}
	}
}

// sourceLeftAlone lets the read of the first bytes fail while reads of others, where the store has several
// in flight, return only later: Set has to wait for them.
func sourceLeftAlone(e *env) {
	k, size := e.key("x"), 8*e.PartSize
	d := e.data("x", size)
	var active, late atomic.Int64
	var returned atomic.Bool
	failing := make(chan struct{})
	var once sync.Once
	src := readerAtFunc(func(p []byte, off int64) (int, error) {
		active.Add(1)
		defer active.Add(-1)
		if returned.Load() {
			late.Add(1)
		}
		if off == 0 {
			once.Do(func() { close(failing) })
			return 0, errSource
		}
		select {
		case <-failing: // the Set is failing by now: take much longer than the failure itself, or until it is certain
			for i := 0; i < 20_000 && !returned.Load(); i++ {
				yieldProcessor()
			}
		case <-e.ctx.Done():
		}
		return bytes.NewReader(d).ReadAt(p, off)
	})
	_, err := e.store.Set(e.ctx, k, blob.ReaderAt(src, size), nil)
	stillActive := active.Load()
	returned.Store(true)
	e.refused(err, blob.OpSet, k, errSource)
	if stillActive != 0 {
		e.Errorf("Set returned with %d reads of its source in flight", stillActive)
	}
	for range 1000 {
		yieldProcessor()
	}
	if n := late.Load(); n != 0 {
		e.Errorf("%d reads of the source began after Set had returned", n)
	}
	e.absent(k)
}
