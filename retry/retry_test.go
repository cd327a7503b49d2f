package retry

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	if _, err := New(nil, Policy{}); !errors.Is(err, blob.ErrInvalidOption) {
		t.Errorf("nil Blob: %v", err)
	}
	f := newFake(t)
	f.self = true
	if _, err := New(f, Policy{Factor: 0.1}); !errors.Is(err, blob.ErrInvalidOption) {
		t.Errorf("bad policy: %v", err)
	}
}

func TestNewLeavesAloneWhatRetriesByItself(t *testing.T) {
	f := newFake(t)
	once := wrap(t, f, Policy{})
	if once == blob.Blob(f) {
		t.Fatal("New returned the store itself")
	}
	c := once.Capabilities()
	if want := (blob.Capabilities{Store: "memory", Conditions: true, Restore: true, BatchDelete: true, SelfRetrying: true}); c != want {
		t.Errorf("capabilities %+v, want %+v", c, want)
	}
	if twice, err := New(once, Policy{Attempts: 3}); err != nil || twice != once {
		t.Errorf("New of a New is %v, %v, want the inner one", twice, err)
	}
	view, err := blob.Prefixed(once, "p")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := New(view, Policy{}); err != nil || again != view {
		t.Errorf("New of a view of a New is %v, %v, want the view", again, err)
	}
	f.self = true
	if got, err := New(f, Policy{}); err != nil || got != blob.Blob(f) {
		t.Errorf("New of a store that retries by itself is %v, %v, want the store", got, err)
	}
}

// calls are all methods with one result, each on a key that exists.
var calls = []struct {
	op  string
	run func(ctx context.Context, b blob.Blob) (size int64, err error) // size: something of the result
}{
	{blob.OpGet, func(ctx context.Context, b blob.Blob) (int64, error) {
		obj, err := b.Get(ctx, "key", nil)
		return int64(len(obj.Data)), err
	}},
	{blob.OpGetRanges, func(ctx context.Context, b blob.Blob) (int64, error) {
		objs, err := b.GetRanges(ctx, "key", []blob.Range{blob.Span(0, 1), blob.Last(2)}, nil)
		n := int64(0)
		for _, o := range objs {
			n += int64(len(o.Data))
		}
		return n, err
	}},
	{blob.OpStat, func(ctx context.Context, b blob.Blob) (int64, error) {
		info, err := b.Stat(ctx, "key")
		return info.Size, err
	}},
	{blob.OpSet, func(ctx context.Context, b blob.Blob) (int64, error) {
		info, err := b.Set(ctx, "key", blob.Bytes([]byte("new")), nil)
		return info.Size, err
	}},
	{blob.OpRestore, func(ctx context.Context, b blob.Blob) (int64, error) {
		info, err := b.Restore(ctx, "key")
		return info.Size, err
	}},
	{blob.OpDelete, func(ctx context.Context, b blob.Blob) (int64, error) { return 3, b.Delete(ctx, "key", nil) }},
	{blob.OpDeleteAll, func(ctx context.Context, b blob.Blob) (int64, error) { return 3, b.DeleteAll(ctx, []string{"key"}) }},
}

func TestEveryMethodIsRetriedAfterAFailureAndAfterALostReply(t *testing.T) {
	for _, c := range calls {
		t.Run(c.op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				put(t, f, "key")
				f.before = failing(1, notApplied(blob.ErrThrottled))
				f.after = failing(2, unknown(blob.ErrUnavailable))
				if size, err := c.run(t.Context(), wrap(t, f, steady(3))); err != nil || size != 3 {
					t.Errorf("got %d, %v, want 3", size, err)
				}
				if f.n != 3 {
					t.Errorf("%d calls of the store, want 3", f.n)
				}
			})
		})
	}
}

func TestEveryMethodGivesUpWithoutAResult(t *testing.T) {
	for _, c := range calls {
		t.Run(c.op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				put(t, f, "key")
				f.after = failing(9, &blob.Error{Op: c.op, Store: "memory", Kind: blob.ErrUnavailable}) // with a result beside it
				size, err := c.run(t.Context(), wrap(t, f, steady(2)))
				want := blob.NotApplied
				if blob.Mutates(c.op) {
					want = blob.Unknown
				} else if size != 0 {
					t.Errorf("got %d beside the error", size)
				}
				wantAttempts(t, wantError(t, err, blob.ErrUnavailable, want), 2, true)
				if f.n != 2 {
					t.Errorf("%d calls of the store, want 2", f.n)
				}
			})
		})
	}
}

func TestConditionsAndAtMostOnceStopAfterALostReply(t *testing.T) {
	for name, run := range map[string]func(b blob.Blob, version string) error{
		"IfAbsent": func(b blob.Blob, _ string) error {
			_, err := b.Set(t.Context(), "other", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()})
			return err
		},
		"IfVersion": func(b blob.Blob, v string) error {
			_, err := b.Set(t.Context(), "key", blob.Bytes(nil), &blob.SetOptions{If: blob.IfVersion(v)})
			return err
		},
		"AtMostOnce": func(b blob.Blob, _ string) error {
			_, err := b.Set(t.Context(), "key", blob.Bytes(nil), &blob.SetOptions{AtMostOnce: true})
			return err
		},
		"Delete IfVersion": func(b blob.Blob, v string) error {
			return b.Delete(t.Context(), "key", &blob.DeleteOptions{If: blob.IfVersion(v)})
		},
		"Delete AtMostOnce": func(b blob.Blob, _ string) error {
			return b.Delete(t.Context(), "key", &blob.DeleteOptions{AtMostOnce: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			put(t, f, "key")
			info, err := f.mem.Stat(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			f.after = failing(1, unknown(blob.ErrUnavailable))
			err = run(wrap(t, f, Policy{}), info.Version)
			wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.Unknown), 1, true)
			if f.n != 1 {
				t.Errorf("%d calls of the store, want 1", f.n)
			}
		})
	}
}

func TestASourceIsSentWholeAgain(t *testing.T) {
	data := strings.Repeat("x", 1000)
	for name, src := range map[string]func() blob.Source{
		"bytes":            func() blob.Source { return blob.Bytes([]byte(data)) },
		"reader at":        func() blob.Source { return blob.ReaderAt(strings.NewReader(data), 1000) },
		"stream not taken": func() blob.Source { return blob.Stream(iotest.HalfReader(strings.NewReader(data)), 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.before = failing(2, notApplied(blob.ErrThrottled))
				if _, err := wrap(t, f, Policy{}).Set(t.Context(), "key", src(), nil); err != nil {
					t.Fatal(err)
				}
				obj, err := f.mem.Get(t.Context(), "key", nil)
				if err != nil || !bytes.Equal(obj.Data, []byte(data)) || f.n != 3 {
					t.Errorf("stored %d bytes after %d attempts, %v", len(obj.Data), f.n, err)
				}
			})
		})
	}
}

func TestATakenStreamIsNeverReadAgain(t *testing.T) {
	f := newFake(t)
	f.after = failing(1, notApplied(blob.ErrThrottled))
	_, err := wrap(t, f, Policy{}).Set(t.Context(), "key", blob.Stream(strings.NewReader("abc"), 3), nil)
	// The store's own error, not one about a Stream that is spent.
	wantAttempts(t, wantError(t, err, blob.ErrThrottled, blob.NotApplied), 1, true)
	if f.n != 1 {
		t.Errorf("%d calls of the store, want 1", f.n)
	}
}

func TestASpentStreamIsRefusedAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.before = failing(1, notApplied(blob.ErrThrottled))
		src := blob.Stream(strings.NewReader("abc"), 3)
		src.Reader()
		_, err := wrap(t, f, Policy{}).Set(t.Context(), "key", src, nil)
		wantAttempts(t, wantError(t, err, blob.ErrInvalidOption, blob.NotApplied), 2, false)
	})
}

func TestOnlyCallsWhoseBytesAreKnownAreCutOff(t *testing.T) {
	span := &blob.GetOptions{Range: blob.Span(0, 1<<20)}
	want := &blob.GetOptions{Range: blob.From(1 << 20), Want: blob.Want{Size: 3 << 20, HasSize: true}}
	for _, tc := range []struct {
		name  string
		run   func(ctx context.Context, b blob.Blob) error
		limit time.Duration // 0: none
	}{
		{"stat", func(ctx context.Context, b blob.Blob) error { _, err := b.Stat(ctx, "key"); return err }, time.Second},
		{"get", func(ctx context.Context, b blob.Blob) error { _, err := b.Get(ctx, "key", nil); return err }, 0},
		{"get of a span", func(ctx context.Context, b blob.Blob) error { _, err := b.Get(ctx, "key", span); return err }, 2 * time.Second},
		{"get with Want", func(ctx context.Context, b blob.Blob) error { _, err := b.Get(ctx, "key", want); return err }, 3 * time.Second},
		{"ranges", func(ctx context.Context, b blob.Blob) error {
			_, err := b.GetRanges(ctx, "key", []blob.Range{blob.Span(0, 1<<20), blob.Last(1 << 20)}, nil)
			return err
		}, 3 * time.Second},
		{"ranges, one open", func(ctx context.Context, b blob.Blob) error {
			_, err := b.GetRanges(ctx, "key", []blob.Range{blob.Span(0, 1<<20), blob.From(0)}, nil)
			return err
		}, 0},
		{"ranges beyond counting", func(ctx context.Context, b blob.Blob) error {
			_, err := b.GetRanges(ctx, "key", []blob.Range{blob.Last(1<<63 - 1), blob.Last(1<<63 - 1)}, nil)
			return err
		}, 0},
		{"set", func(ctx context.Context, b blob.Blob) error {
			_, err := b.Set(ctx, "key", blob.Bytes(make([]byte, 1<<20)), nil)
			return err
		}, 2 * time.Second},
		{"set of a stream", func(ctx context.Context, b blob.Blob) error {
			_, err := b.Set(ctx, "key", blob.Stream(strings.NewReader("abc"), 3), nil)
			return err
		}, 0},
		{"delete", func(ctx context.Context, b blob.Blob) error { return b.Delete(ctx, "key", nil) }, time.Second},
		{"deleteall", func(ctx context.Context, b blob.Blob) error { return b.DeleteAll(ctx, []string{"key"}) }, 0},
		{"restore", func(ctx context.Context, b blob.Blob) error { _, err := b.Restore(ctx, "key"); return err }, time.Second},
		{"list", func(ctx context.Context, b blob.Blob) error {
			for _, err := range b.List(ctx, "", nil) {
				return err
			}
			return nil
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				put(t, f, "key")
				_ = tc.run(t.Context(), wrap(t, f, Policy{Attempt: time.Second, MinRate: 1 << 20}))
				deadline, ok := f.ctx.Deadline()
				if got := time.Until(deadline); ok != (tc.limit > 0) || ok && got != tc.limit {
					t.Errorf("limit %v (%v), want %v", got, ok, tc.limit)
				}
			})
		})
	}
}

func TestCloseLetsASleepingCallFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.before = failing(1, notApplied(blob.ErrThrottled))
		b := wrap(t, f, steady(3))
		done := make(chan error, 1)
		go func() {
			_, err := b.Set(t.Context(), "key", blob.Bytes(nil), nil)
			done <- err
		}()
		synctest.Wait() // asleep

		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		err := b.Close(ctx)
		if owed, ok := errors.AsType[*blob.OwedError](err); !ok || !errors.Is(owed, context.DeadlineExceeded) {
			t.Errorf("Close whose context ends: %v, want a *OwedError", err)
		}
		_, err = b.Stat(t.Context(), "key")
		if e := wantError(t, err, blob.ErrClosed, blob.NotApplied); e.Store != "memory" {
			t.Errorf("error %q names no store", e)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the call in flight: %v", err)
			}
		default:
			t.Error("Close returned before the call in flight")
		}
		if _, err := f.mem.Stat(t.Context(), "key"); !errors.Is(err, blob.ErrClosed) {
			t.Errorf("the inner store is not closed: %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close after Close: %v", err)
		}
	})
}
