package cache

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

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

// What a caller's condition is answered with under Always is not older than the question, for two who ask the same at once too.
func TestConditionalReadsThatAlwaysAskShareNothingFromBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, r := range map[string]blob.Range{"whole": {}, "range": blob.Span(0, 1), "tail": blob.Last(1)} {
			h := newHooked()
			v1 := set(t, h.inner, key, "v1").Version
			c := over(t, h, Options{Revalidate: Always, Block: block})
			g := hold(blob.OpGet)
			h.hook(nil, g.at)
			opts := &blob.GetOptions{Range: r, If: blob.IfVersion(v1)}
			first := make(chan error, 1)
			go func() { _, err := c.Get(t.Context(), key, opts); first <- err }()
			<-g.reached // it has read v1
			set(t, h.inner, key, "v2")
			second := make(chan error, 1)
			go func() { _, err := c.Get(t.Context(), key, opts); second <- err }()
			synctest.Wait()
			close(g.release)
			if err := <-first; err != nil {
				t.Error(name, err)
			}
			if err := <-second; !errors.Is(err, blob.ErrPrecondition) {
				t.Errorf("%s: a read of v1 that began after v2 was written: %v", name, err)
			}
			mustClose(t, c)
		}
	})
}

// The store is asked for what the copy does not meet, or must not answer, and what it says is heeded.
func TestReadThatFindsAnotherVersionInTheStoreDropsTheEntry(t *testing.T) {
	for name, tiers := range map[string]Options{"memory": {}, "disk": {Memory: -1, Dir: t.TempDir(), Disk: 8 << 20}} {
		for what, opts := range map[string]func(v1, v2 string) blob.GetOptions{
			"refused":  func(v1, _ string) blob.GetOptions { return blob.GetOptions{If: blob.IfVersion(v1), SkipCache: true} },
			"answered": func(_, v2 string) blob.GetOptions { return blob.GetOptions{If: blob.IfVersion(v2)} },
			"wanted":   func(_, _ string) blob.GetOptions { return blob.GetOptions{Want: blob.Want{Size: 6, HasSize: true}} },
			"skipped":  func(_, _ string) blob.GetOptions { return blob.GetOptions{SkipCache: true} },
		} {
			for _, ranges := range []bool{false, true} {
				t.Run(fmt.Sprint(name, what, ranges), func(t *testing.T) {
					inner := memblob.New(nil)
					v1 := set(t, inner, key, "v1").Version
					o := tiers
					if o.Dir != "" {
						o.Dir = t.TempDir()
					}
					c := over(t, inner, o)
					defer mustClose(t, c)
					wantGet(t, c, key, "v1")
					if c.disk != nil {
						written(t, c.disk)
					}
					v2 := set(t, inner, key, "theirs").Version
					wantGet(t, c, key, "v1") // by default keys are written once
					read := opts(v1, v2)
					if ranges {
						_, _ = c.GetRanges(t.Context(), key, []blob.Range{{}, blob.Span(0, 1)}, &read)
					} else {
						_, _ = c.Get(t.Context(), key, &read)
					}
					wantGet(t, c, key, "theirs")
					stateless(t, c)
				})
			}
		}
	}
}

// What the store deleted is found out by a read that must not be answered from the cache too.
func TestReadThatFindsNothingInTheStoreDropsTheEntry(t *testing.T) {
	inner := memblob.New(nil)
	set(t, inner, key, "v1")
	c := over(t, inner, Options{})
	defer mustClose(t, c)
	wantGet(t, c, key, "v1")
	if err := inner.Delete(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), key, &blob.GetOptions{SkipCache: true}); !errors.Is(err, blob.ErrNotFound) {
		t.Error(err)
	}
	if v := get(t, c, key); v != "absent" {
		t.Errorf("then Get is %q", v)
	}
}

// So does a Stat that goes to the store.
func TestStatThatFindsAnotherVersionInTheStoreDropsTheEntry(t *testing.T) {
	inner := memblob.New(nil)
	set(t, inner, key, "v1")
	c := over(t, inner, Options{Revalidate: Always})
	defer mustClose(t, c)
	for _, step := range []struct {
		change func() error
		want   error
	}{
		{func() error { return nil }, nil},
		{func() error { set(t, inner, key, "theirs"); return nil }, nil},
		{func() error { return inner.Delete(t.Context(), key, nil) }, blob.ErrNotFound},
	} {
		_, _ = c.Get(t.Context(), key, nil)
		kept := c.memory.peek(key)
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		info, err := c.Stat(t.Context(), key)
		if !errors.Is(err, step.want) {
			t.Fatal(err)
		}
		if kept == nil || (c.memory.peek(key) == kept) != (kept.obj.Version == info.Version) {
			t.Errorf("the store says %+v, %v; what was cached of %+v is still there: %t", info, err, kept.obj.Info, c.memory.peek(key) == kept)
		}
	}
}

// A reader that asks for a version of long ago does not cost everyone the entry of today.
func TestRefusalOfAnotherVersionLeavesTheEntry(t *testing.T) {
	h := newHooked()
	old := set(t, h.inner, key, "v1").Version
	set(t, h.inner, key, "v2")
	c := over(t, h, Options{})
	defer mustClose(t, c)
	wantGet(t, c, key, "v2")
	if _, err := c.Get(t.Context(), key, &blob.GetOptions{If: blob.IfVersion(old)}); !errors.Is(err, blob.ErrPrecondition) {
		t.Error(err)
	}
	before := h.count(blob.OpGet)
	wantGet(t, c, key, "v2")
	wantCalls(t, h, blob.OpGet, before)
}

// What was found again by a request that began later is as new as that one, whoever found it first.
func TestWhatWasFoundAgainDoesNotYieldToAnOlderAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, pattern(10*block))
		c := over(t, h, Options{Block: block})
		defer mustClose(t, c)
		read := func(off int64) (done chan error) {
			done = make(chan error, 1)
			go func() {
				_, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(off, 1)})
				done <- err
			}()
			return done
		}
		first := hold(blob.OpGet)
		h.hook(first.at, nil)
		one := read(0)
		<-first.reached // it has begun and asked nothing yet
		second := hold(blob.OpGet)
		h.hook(nil, second.at)
		two := read(block)
		<-second.reached // it began later and has read the first version
		h.hook(nil, nil)
		theirs := set(t, h.inner, key, pattern(11*block)).Version
		close(first.release)
		if err := <-one; err != nil {
			t.Error(err)
		}
		if err := <-read(5 * block); err != nil { // finds the second version again, having begun last
			t.Error(err)
		}
		close(second.release)
		if err := <-two; err != nil {
			t.Error(err)
		}
		if now := c.memory.peek(key); now == nil || now.obj.Version != theirs {
			t.Errorf("kept: %+v", now)
		}
	})
}

// Everybody waits for the same answer, which says that what they have is out of date, or gone. The first to hear it must not begin something that the
// second, for the same reason, throws away.
func TestCrowdThatFindsAnotherVersionAsksOnce(t *testing.T) {
	const crowd = 64
	for name, read := range map[string]struct {
		r    blob.Range
		gets int // but for what warms it
	}{"due": {blob.Range{}, 2}, "due block": {blob.Span(1, 1), 2}, "refused": {blob.Span(5*block, 1), 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHooked()
				set(t, h.inner, key, pattern(10*block))
				c := over(t, h, Options{Block: block, Revalidate: time.Minute})
				defer mustClose(t, c)
				wantRange(t, c, blob.Span(1, 1), pattern(10*block))
				<-time.After(2 * time.Minute)
				if name == "refused" { // what is missing is asked for by version
					if _, err := c.Stat(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				}
				theirs := pattern(11 * block)
				set(t, h.inner, key, theirs)
				g := hold(blob.OpGet)
				h.hook(g.at, nil)
				before := h.count(blob.OpGet)
				var wg sync.WaitGroup
				for range crowd {
					wg.Go(func() { wantRange(t, c, read.r, theirs) })
				}
				synctest.Wait()
				close(g.release)
				wg.Wait()
				if n := h.count(blob.OpGet) - before; n > read.gets {
					t.Errorf("%d requests for a crowd of %d, want %d", n, crowd, read.gets)
				}
				wantCalls(t, h, blob.OpStat, 0)
			})
		})
	}
}

// A Stat asks as a Get would: when the answer is due again, and once for all.
func TestStatRenewsWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{Revalidate: time.Minute})
		defer mustClose(t, c)
		wantGet(t, c, key, "v1")
		asked := func() int { return h.count(blob.OpGet) + h.count(blob.OpStat) }
		want := func(size int64, requests int) {
			t.Helper()
			before := asked()
			if i, err := c.Stat(t.Context(), key); err != nil || i.Size != size || i.Key != key || i.ModTime.IsZero() {
				t.Errorf("%+v, %v", i, err)
			}
			if n := asked() - before; n != requests {
				t.Errorf("%d requests, want %d", n, requests)
			}
		}
		want(2, 0)
		<-time.After(61 * time.Second)
		want(2, 1)
		want(2, 0)
		set(t, h.inner, key, "theirs")
		want(2, 0)
		<-time.After(61 * time.Second)
		want(6, 2) // one that finds out, and one that is not answered by half of it
		want(6, 0)
		wantGet(t, c, key, "theirs")
		if err := h.inner.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(61 * time.Second)
		_, err := c.Stat(t.Context(), key)
		var e *blob.Error
		if !errors.Is(err, blob.ErrNotFound) || !errors.As(err, &e) || e.Op != blob.OpStat {
			t.Errorf("Stat of what is gone: %v", err)
		}
		stateless(t, c)
	})
}

// An answer of another version takes what the disk has along, also if it has no bytes to put in its place.
func TestAnswerOfAnotherVersionDropsWhatIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memblob.New(nil)
		v1 := set(t, inner, key, "v1").Version
		c := over(t, inner, Options{Revalidate: time.Minute, Dir: t.TempDir(), Disk: 8 << 20})
		defer mustClose(t, c)
		wantGet(t, c, key, "v1")
		synctest.Wait()
		if !c.disk.Has(key, v1, 0, 2) {
			t.Fatal("not on disk")
		}
		set(t, inner, key, "v2")
		<-time.After(2 * time.Minute)
		if i, err := c.Stat(t.Context(), key); err != nil || i.Version == v1 {
			t.Errorf("%+v, %v", i, err)
		}
		if c.disk.Has(key, v1, 0, 2) {
			t.Error("the disk still has the old version")
		}
	})
}

// What is found on disk is from nobody knows when: any answer of the store is newer.
func TestHeadFromDiskYieldsToAnAnswerOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{Revalidate: time.Minute, Dir: t.TempDir(), Disk: 8 << 20})
		defer mustClose(t, c)
		wantGet(t, c, key, "v1")
		synctest.Wait()
		theirs := set(t, h.inner, key, "v2").Version
		<-time.After(2 * time.Minute)
		g := hold(blob.OpGet)
		h.hook(nil, g.at)
		first := make(chan string, 1)
		go func() { first <- get(t, c, key) }()
		<-g.reached
		c.memory.clear()
		if h := c.known(key); h == nil || h.obj.Version == theirs {
			t.Fatalf("known: %+v", h)
		}
		h.hook(nil, nil)
		close(g.release)
		if v := <-first; v != "v2" {
			t.Errorf("Get is %q", v)
		}
		if now := c.memory.peek(key); now == nil || now.obj.Version != theirs {
			t.Errorf("kept: %+v", now)
		}
		wantCalls(t, h, blob.OpGet, 3) // v1, the question, and v2
	})
}
