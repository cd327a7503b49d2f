package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

const key = "key"

// writes are the ways to change a key, each with what is read afterwards of a key that held v1.
var writes = map[string]struct {
	do   func(ctx context.Context, b blob.Blob) error
	op   string
	then string
}{
	"set": {func(ctx context.Context, b blob.Blob) error {
		_, err := b.Set(ctx, key, blob.Bytes([]byte("v2")), nil)
		return err
	}, blob.OpSet, "v2"},
	"set-stream": {func(ctx context.Context, b blob.Blob) error {
		_, err := b.Set(ctx, key, blob.Stream(strings.NewReader("v2"), -1), nil)
		return err
	}, blob.OpSet, "v2"},
	"delete":    {func(ctx context.Context, b blob.Blob) error { return b.Delete(ctx, key, nil) }, blob.OpDelete, "absent"},
	"deleteall": {func(ctx context.Context, b blob.Blob) error { return b.DeleteAll(ctx, []string{"other", key, key}) }, blob.OpDeleteAll, "absent"},
}

func TestFillThatRacedWithAWriteIsDropped(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHooked()
				set(t, h.inner, key, "v1")
				c := over(t, h, Options{})
				defer mustClose(t, c)
				// The fetch has read v1 when the write begins and ends.
				g := hold(blob.OpGet)
				h.hook(nil, g.at)
				got := make(chan string, 1)
				go func() { got <- get(t, c, key) }()
				<-g.reached
				if err := w.do(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				close(g.release)
				if v := <-got; v != "v1" {
					t.Errorf("the read that began before the write is %q", v)
				}
				synctest.Wait()
				wantGet(t, c, key, w.then)
				wantGet(t, c, key, w.then)
				stateless(t, c)
				if n := c.Stats().FillsDropped; n != 1 {
					t.Errorf("%d fills were dropped, want 1", n)
				}
			})
		})
	}
}

func TestFillThatRacedWithARestoreIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{})
		defer mustClose(t, c)
		wantGet(t, c, key, "v1")
		if err := c.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		wantGet(t, c, key, "absent")
		if _, err := c.Restore(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		wantGet(t, c, key, "v1")
	})
}

func TestReadsBesideAWriteLeaveNothingBehind(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHooked()
				set(t, h.inner, key, "v1")
				c := over(t, h, Options{NoWriteThrough: true})
				defer mustClose(t, c)
				wantGet(t, c, key, "v1")
				// The write has begun and is not applied yet: a read beside it sees v1, and must not keep it.
				g := hold(w.op)
				h.hook(g.at, nil)
				done := make(chan error, 1)
				go func() { done <- w.do(t.Context(), c) }()
				<-g.reached
				wantGet(t, c, key, "v1")
				wantGet(t, c, key, "v1")
				wantCalls(t, h, blob.OpGet, 3)
				close(g.release)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				wantGet(t, c, key, w.then)
				stateless(t, c)
			})
		})
	}
}

// A fetch that began before the write and ends within it has v1 as well.
func TestFillThatEndsWithinAWriteIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{NoWriteThrough: true})
		defer mustClose(t, c)
		g, s := hold(blob.OpGet), hold(blob.OpSet)
		h.hook(s.at, g.at)
		got, done := make(chan string, 1), make(chan error, 1)
		go func() { got <- get(t, c, key) }()
		<-g.reached
		go func() { done <- writes["set"].do(t.Context(), c) }()
		<-s.reached
		close(g.release)
		<-got
		synctest.Wait()
		close(s.release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantGet(t, c, key, "v2")
	})
}

func TestReadAfterASetDoesNotJoinAFetchFromBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{NoWriteThrough: true})
		defer mustClose(t, c)
		g := hold(blob.OpGet)
		h.hook(nil, g.at)
		got := make(chan string, 1)
		go func() { got <- get(t, c, key) }()
		<-g.reached
		set(t, c, key, "v2")
		wantGet(t, c, key, "v2") // while the first fetch still hangs
		close(g.release)
		if v := <-got; v != "v1" {
			t.Errorf("the first read is %q", v)
		}
		wantGet(t, c, key, "v2")
	})
}

// Both sets return; which came last is known to nobody but the store.
func TestOverlappingSetsKeepNeither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		c := over(t, h, Options{})
		defer mustClose(t, c)
		s := hold(blob.OpSet)
		h.hook(nil, s.at) // the first is applied first and returns last
		var wg sync.WaitGroup
		wg.Go(func() { set(t, c, key, "v1") })
		<-s.reached
		set(t, c, key, "v2")
		close(s.release)
		wg.Wait()
		wantGet(t, c, key, "v2")
		if n := c.Stats().WriteThroughs; n != 0 {
			t.Errorf("%d overlapping sets were kept", n)
		}
		stateless(t, c)
	})
}

func TestFailedWritesLeaveNothingThatTheStoreDoesNotHave(t *testing.T) {
	for name, tt := range map[string]struct {
		fault blobtest.Fault
		opts  *blob.SetOptions
		kind  error
		then  string
	}{
		"refused":          {fault: blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpSet, Err: blob.ErrPermission}, kind: blob.ErrPermission, then: "v1"},
		"failed":           {fault: blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpSet}, kind: blob.ErrUnavailable, then: "v1"},
		"lost-reply":       {fault: blobtest.Fault{Do: blobtest.FailAfter, Op: blob.OpSet}, kind: blob.ErrUnavailable, then: "v2"},
		"condition-failed": {opts: &blob.SetOptions{If: blob.IfVersion("another")}, kind: blob.ErrPrecondition, then: "v1"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := memblob.New(nil)
			set(t, inner, key, "v1")
			var plan []blobtest.Fault
			if tt.fault.Do != 0 {
				plan = append(plan, tt.fault)
			}
			faults := blobtest.NewFaults(inner, plan...)
			c := over(t, faults, Options{})
			defer mustClose(t, c)
			wantGet(t, c, key, "v1")
			_, err := c.Set(t.Context(), key, blob.Bytes([]byte("v2")), tt.opts)
			if !errors.Is(err, tt.kind) {
				t.Fatalf("Set: %v", err)
			}
			before := faults.Calls(blob.OpGet)
			wantGet(t, c, key, tt.then)
			if n := faults.Calls(blob.OpGet) - before; n != 1 {
				t.Errorf("the read after the failed write sent %d requests, want 1", n)
			}
		})
	}
}

// Someone else has changed the key, as the refused condition tells.
func TestRefusedConditionDropsTheEntry(t *testing.T) {
	inner := memblob.New(nil)
	c := over(t, inner, Options{})
	defer mustClose(t, c)
	v1 := set(t, c, key, "v1").Version
	set(t, inner, key, "theirs")
	wantGet(t, c, key, "v1") // by default keys are written once
	_, err := c.Set(t.Context(), key, blob.Bytes([]byte("v2")), &blob.SetOptions{If: blob.IfVersion(v1)})
	if !errors.Is(err, blob.ErrPrecondition) {
		t.Fatal(err)
	}
	wantGet(t, c, key, "theirs")
	set(t, inner, key, "again")
	if err := c.Delete(t.Context(), key, &blob.DeleteOptions{If: blob.IfVersion(v1)}); !errors.Is(err, blob.ErrPrecondition) {
		t.Fatal(err)
	}
	wantGet(t, c, key, "again")
}

func TestAbsenceAndErrorsAreNotKept(t *testing.T) {
	inner := memblob.New(nil)
	faults := blobtest.NewFaults(inner,
		blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpGet, Err: blob.ErrPermission, Call: 2},
		blobtest.Fault{Do: blobtest.FailBefore, Op: blob.OpGet, Call: 3})
	c := over(t, faults, Options{})
	defer mustClose(t, c)
	wantGet(t, c, key, "absent")
	set(t, inner, key, "theirs") // another process
	for _, kind := range []error{blob.ErrPermission, blob.ErrUnavailable} {
		if _, err := c.Get(t.Context(), key, nil); !errors.Is(err, kind) {
			t.Errorf("Get: %v, want %v", err, kind)
		}
	}
	wantGet(t, c, key, "theirs")
}

func TestLookupInFlightDuringASetDoesNotHideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		c := over(t, h, Options{NoWriteThrough: true})
		defer mustClose(t, c)
		g := hold(blob.OpGet)
		h.hook(nil, g.at)
		got := make(chan string, 1)
		go func() { got <- get(t, c, key) }()
		<-g.reached // the store has said that there is nothing
		set(t, c, key, "v1")
		close(g.release)
		if v := <-got; v != "absent" {
			t.Errorf("the lookup is %q", v)
		}
		wantGet(t, c, key, "v1")
	})
}

func TestLinearizable(t *testing.T) {
	for name, o := range map[string]Options{
		"default": {}, "no-write-through": {NoWriteThrough: true}, "always": {Revalidate: Always}, "tiny": {Memory: 8 << 10, Block: 4 << 10},
		"disk": {Memory: 8 << 10, Block: 4 << 10, Disk: 1 << 20}, "disk-always": {Memory: -1, Revalidate: Always, Disk: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				var inner blob.Blob = memblob.New(nil)
				if o.Disk > 0 {
					inner, o.Dir = terse{inner}, t.TempDir()
				}
				c := over(t, inner, o)
				blobtest.Linearizable(t, []blob.Blob{c}, &blobtest.LinearOptions{Deletes: true, Size: 10 << 10})
				stateless(t, c)
				mustClose(t, c)
			}
		})
	}
}

// Caches of several processes, each of which writes behind the backs of the others.
func TestLinearizableOverSeveralCachesThatAlwaysAsk(t *testing.T) {
	inner := memblob.New(nil)
	for i := range 20 {
		var stores []blob.Blob
		for range 3 {
			stores = append(stores, over(t, inner, Options{Revalidate: Always, Block: 4 << 10}))
		}
		blobtest.Linearizable(t, stores, &blobtest.LinearOptions{Prefix: string(rune('a'+i)) + "/", Deletes: true, Size: 10 << 10})
	}
}

func TestLinearizableWithLostReplies(t *testing.T) {
	for i := range uint64(20) {
		faults := blobtest.NewFaults(memblob.New(nil),
			blobtest.Fault{Do: blobtest.FailAfter, Chance: 0.1}, blobtest.Fault{Do: blobtest.FailBefore, Chance: 0.1}).Seed(i + 1)
		c := over(t, faults, Options{})
		blobtest.Linearizable(t, []blob.Blob{c}, &blobtest.LinearOptions{Deletes: true, Tolerate: true})
	}
}
