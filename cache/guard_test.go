package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// hung is a store whose Get ends with its context.
type hung struct {
	blob.Blob
	began, ended chan struct{}
}

func (h *hung) Get(ctx context.Context, _ string, _ *blob.GetOptions) (blob.Object, error) {
	close(h.began)
	<-ctx.Done()
	close(h.ended)
	return blob.Object{}, ctx.Err()
}

// A request that hangs ends with the last of those who wait for it, and not with the one before.
func TestRequestThatHangsEndsWithTheLastWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{memblob.New(nil), make(chan struct{}), make(chan struct{})}
		c := over(t, h, Options{})
		var leave [2]context.CancelFunc
		var gone [2]chan error
		for i := range leave {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i], gone[i] = cancel, make(chan error, 1)
			go func() { _, err := c.Get(ctx, key, nil); gone[i] <- err }()
			synctest.Wait()
		}
		for i := range leave {
			select {
			case <-h.ended:
				t.Error("ended while someone waits")
			default:
			}
			leave[i]()
			if err := <-gone[i]; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		<-h.ended
		mustClose(t, c)
		stateless(t, c)
	})
}

// Two requests of one epoch bring two versions, as another process writes: the one that began later wins, whichever comes last.
func TestAnswerToTheOlderQuestionDoesNotReplaceTheNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, pattern(2*block))
		c := over(t, h, Options{Block: block})
		defer mustClose(t, c)
		g := hold(blob.OpGet)
		h.hook(nil, g.at)
		first := make(chan error, 1)
		go func() {
			_, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(0, 1)})
			first <- err
		}()
		<-g.reached // it has read the first version
		theirs := set(t, h.inner, key, pattern(3*block))
		wantRange(t, c, blob.Span(block, 1), pattern(3*block))
		close(g.release)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if now := c.memory.peek(key); now == nil || now.obj.Version != theirs.Version {
			t.Errorf("kept: %+v", now)
		}
	})
}

// What is above an eighth of the capacity does not go into memory: neither an object, nor a run of blocks.
func TestMemoryTakesNothingAboveAnEighth(t *testing.T) {
	inner := memblob.New(nil)
	set(t, inner, "whole", pattern(8*block+1))
	set(t, inner, "run", pattern(100*block))
	c := over(t, inner, Options{Memory: 64 * block, Block: block, Dir: t.TempDir(), Disk: 64 << 20})
	defer mustClose(t, c)
	if _, err := c.Get(t.Context(), "whole", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "run", &blob.GetOptions{Range: blob.Span(0, 9*block)}); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"whole", "run"} {
		if h := c.memory.peek(k); h == nil || h.whole || h.blocks.Load() != nil {
			t.Errorf("%s: kept %+v", k, h)
		}
	}
	if _, err := c.Get(t.Context(), "run", &blob.GetOptions{Range: blob.Span(20*block, 8*block)}); err != nil {
		t.Fatal(err)
	}
	if h := c.memory.peek("run"); h.blocks.Load() == nil {
		t.Error("a run of an eighth was not kept")
	}
}

// A small result of a run does not keep the run: what is handed out is a part of one block, or no more than twice what was asked for.
func TestSmallResultDoesNotKeepALargeBuffer(t *testing.T) {
	const size = 64 * block
	inner := memblob.New(nil)
	content := pattern(size)
	set(t, inner, key, content)
	store := &bent{Blob: inner, content: []byte(content)}
	var sent []byte // of the last request
	store.bend = func(_ *bent, _ blob.Range, o *blob.Object) { sent = o.Data }
	c := over(t, store, Options{Block: block})
	defer mustClose(t, c)
	keeps := func(o blob.Object) bool {
		if len(sent) <= block || len(o.Data) > len(sent)/2 {
			return false
		}
		for i := range sent {
			if &sent[i] == &o.Data[0] {
				return true
			}
		}
		return false
	}
	// The first request for the object is as long as the first of the ranges, the others are cut from it.
	objs, err := c.GetRanges(t.Context(), key, []blob.Range{blob.Span(0, 10*block), blob.Span(7, 9), blob.Span(2*block-4, 8)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range objs[1:] {
		if keeps(o) {
			t.Errorf("the result %d, of %d bytes, keeps %d", i+1, len(o.Data), len(sent))
		}
	}
	// A run of two known blocks, of each of which a little is asked for.
	if objs, err = c.GetRanges(t.Context(), key, []blob.Range{blob.Span(20*block+7, 9), blob.Span(21*block+7, 9)}, nil); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 2*block {
		t.Fatalf("%d bytes were sent for two blocks", len(sent))
	}
	for i, o := range objs {
		if keeps(o) {
			t.Errorf("the result %d of a run keeps it", i)
		}
	}
}

// An entry whose object is gone or replaced goes when a read of what it lacks finds that out.
func TestReadOfAMissingBlockDropsWhatOthersReplaced(t *testing.T) {
	inner := memblob.New(nil)
	content := pattern(10 * block)
	set(t, inner, key, content)
	c := over(t, inner, Options{Block: block})
	defer mustClose(t, c)
	wantRange(t, c, blob.Span(0, 1), content)
	if err := inner.Delete(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	wantRange(t, c, blob.Span(0, 1), content) // by default keys are written once
	if _, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(block, 1)}); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a block of what is gone: %v", err)
	}
	if v := get(t, c, key); v != "absent" {
		t.Errorf("then Get has %d bytes", len(v))
	}
	if c.memory.peek(key) != nil {
		t.Error("the entry is still there")
	}
}

// On some stores equal content has an equal version, whatever its metadata: who asks whether an object is current asks for all of it.
func TestEqualVersionWithOtherMetadataIsAnotherObject(t *testing.T) {
	inner := memblob.New(nil)
	store := &bent{Blob: inner, bend: func(_ *bent, _ blob.Range, o *blob.Object) { o.Version = "of the content" }}
	c := over(t, store, Options{Revalidate: Always})
	defer mustClose(t, c)
	for _, n := range []string{"1", "2"} {
		if _, err := inner.Set(t.Context(), key, blob.Bytes([]byte("v")), &blob.SetOptions{Metadata: map[string]string{"n": n}}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if o, err := c.Get(t.Context(), key, nil); err != nil || o.Metadata["n"] != n {
				t.Errorf("%v, %v, want n = %s", o.Metadata, err, n)
			}
		}
	}
}
