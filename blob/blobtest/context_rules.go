package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func contextRules() []rule {
	return []rule{
		{name: "context/done-at-entry", says: "A call whose context is already done does no I/O, changes nothing and returns an error that matches ctx.Err().", run: contextDone},
		{name: "context/deadline", says: "A deadline that has passed is context.DeadlineExceeded.", run: contextDeadline},
		{name: "context/cancel-during-set", says: "A Set cancelled midway leaves the old state, or has committed and says so.", run: contextCancelSet},
		{name: "context/cancel-during-stream", says: "A Set of a Stream cancelled midway leaves the old state, or has committed and says so.", run: contextCancelStream},
		{name: "context/works-on", says: "After cancelled calls the store works as before.", run: contextWorksOn},
	}
}

// everyCall calls every method on key with ctx and checks that each is refused with want.
func (e *env) everyCall(ctx context.Context, key string, want error) {
	_, err := e.store.Get(ctx, key, nil)
	e.refused(err, blob.OpGet, key, want)
	_, err = e.store.Get(ctx, key, &blob.GetOptions{Range: blob.Last(0)})
	e.refused(err, blob.OpGet, key, want)
	_, err = e.store.GetRanges(ctx, key, []blob.Range{blob.Span(0, 1)}, nil)
	e.refused(err, blob.OpGetRanges, key, want)
	src, reads := untouched(10)
	_, err = e.store.Set(ctx, key, src, nil)
	e.refused(err, blob.OpSet, key, want)
	if reads.Load() != 0 {
		e.Errorf("a refused Set has read its source")
	}
	_, err = e.store.Stat(ctx, key)
	e.refused(err, blob.OpStat, key, want)
	infos, err := e.list(ctx, key, nil)
	e.refused(err, blob.OpList, key, want)
	if len(infos) != 0 {
		e.Errorf("a refused List yields %d keys", len(infos))
	}
	err = e.store.Delete(ctx, key, nil)
	e.refused(err, blob.OpDelete, key, want)
	e.refusedDeleteAll(ctx, []string{key, key + "2"}, want)
	_, err = e.store.Restore(ctx, key)
	e.refused(err, blob.OpRestore, key, want)
}

// refusedDeleteAll checks a DeleteAll that did nothing: one *blob.Error, or a *blob.DeleteError that names every key.
func (e *env) refusedDeleteAll(ctx context.Context, keys []string, want error) {
	err := e.store.DeleteAll(ctx, keys)
	if !errors.Is(err, want) {
		e.Errorf("DeleteAll: error is %v, want one that matches %q", err, want)
		return
	}
	if blob.OutcomeOf(err) != blob.NotApplied {
		e.Errorf("DeleteAll: the outcome is %v: %v", blob.OutcomeOf(err), err)
	}
	var d *blob.DeleteError
	if errors.As(err, &d) {
		named := map[string]bool{}
		for _, f := range d.Failed {
			named[f.Key] = true
		}
		for _, k := range keys {
			if !named[k] {
				e.Errorf("DeleteAll did nothing, but its error does not name %q", k)
			}
		}
	}
}

func contextDone(e *env) {
	k, d := e.key("x"), e.data("x", 100)
	e.mustSet(k, d, nil)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	e.noRequests("calls with a done context", func() {
		e.everyCall(ctx, k, context.Canceled)
		e.everyCall(ctx, e.key("missing"), context.Canceled)
	})
	e.holds(k, d)
	e.absent(e.key("missing"))
}

func contextDeadline(e *env) {
	k, d := e.key("x"), e.data("x", 100)
	e.mustSet(k, d, nil)
	ctx, cancel := context.WithDeadline(e.ctx, time.Unix(1, 0))
	defer cancel()
	e.noRequests("calls after their deadline", func() { e.everyCall(ctx, k, context.DeadlineExceeded) })
	e.holds(k, d)
}

// cancelDuring sets the content that source makes; source calls cancel when it is read halfway. A Set of unknown outcome may happen
// yet, so each has a key of its own.
func (e *env) cancelDuring(size int64, source func(d []byte, cancel func()) blob.Source) {
	for _, exists := range []bool{false, true} {
		k, old, d := e.key(fmt.Sprint(size, exists)), e.data("old", 50), e.data("new", size)
		if exists {
			e.mustSet(k, old, nil)
		}
		ctx, cancel := context.WithCancel(e.ctx)
		_, err := e.store.Set(ctx, k, source(d, cancel), nil)
		cancel()
		if err == nil {
			e.holds(k, d)
			continue
		}
		e.hasKind(err, blob.OpSet, k, context.Canceled)
		o, getErr := e.store.Get(e.ctx, k, nil)
		isOld := exists && getErr == nil && bytes.Equal(o.Data, old) || !exists && errors.Is(getErr, blob.ErrNotFound)
		isNew := getErr == nil && bytes.Equal(o.Data, d)
		if !isOld && !(isNew && blob.OutcomeOf(err) == blob.Unknown) {
			e.Errorf("after a cancelled Set of %d bytes (outcome %v) the key has %d bytes, %v", size, blob.OutcomeOf(err), len(o.Data), getErr)
		}
	}
}

func contextCancelSet(e *env) {
	for _, size := range []int64{100, 5*e.PartSize + 1} {
		e.cancelDuring(size, func(d []byte, cancel func()) blob.Source {
			r := bytes.NewReader(d)
			return blob.ReaderAt(readerAtFunc(func(p []byte, off int64) (int, error) {
				if off+int64(len(p)) > int64(len(d))/2 {
					cancel()
				}
				return r.ReadAt(p, off)
			}), int64(len(d)))
		})
	}
}

func contextCancelStream(e *env) {
	for _, size := range []int64{100, 5*e.PartSize + 1} {
		_, err := e.store.Set(e.ctx, e.key("probe"), blob.Stream(bytes.NewReader(nil), -1), nil)
		if err != nil {
			e.Fatalf("Set of a Stream: %v", err)
		}
		e.cancelDuring(size, func(d []byte, cancel func()) blob.Source {
			r := bytes.NewReader(d)
			return blob.Stream(readerFunc(func(p []byte) (int, error) {
				if r.Len() < len(d)/2 {
					cancel()
				}
				return r.Read(p)
			}), -1)
		})
	}
}

func contextWorksOn(e *env) {
	k := e.key("x")
	for i := range 20 {
		ctx, cancel := context.WithCancel(e.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = e.store.Get(ctx, k, nil)
			_, _ = e.store.Set(ctx, k, blob.Bytes(e.data("x", 2*e.PartSize)), nil)
		}()
		for range i * 50 { // at a different moment each time
			yieldProcessor()
		}
		cancel()
		<-done
	}
	d := e.data("after", 2*e.PartSize+1)
	e.mustSet(k, d, nil)
	e.holds(k, d)
	e.lists("", nil, "x")
}
