package cache

import (
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// Reads beside a write are not shared: one that begins after the write was seen would be given what another had asked for before it was applied.
func TestReadBesideAWriteDoesNotJoinAnotherFromBeforeItWasApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, Options{NoWriteThrough: true})
		defer mustClose(t, c)
		apply, answer, end := hold(blob.OpSet), hold(blob.OpGet), hold(blob.OpSet)
		h.hook(apply.at, func(op string) { answer.at(op); end.at(op) })
		written, first, later := make(chan error, 1), make(chan string, 1), make(chan string, 1)
		go func() { written <- writes["set"].do(t.Context(), c) }()
		<-apply.reached
		go func() { first <- get(t, c, key) }()
		<-answer.reached // it has read v1, and the write is not applied yet
		close(apply.release)
		<-end.reached // now it is, and has not returned
		if o, err := c.Get(t.Context(), key, &blob.GetOptions{SkipCache: true}); err != nil || string(o.Data) != "v2" {
			t.Fatalf("%q, %v", o.Data, err)
		}
		go func() { later <- get(t, c, key) }()
		synctest.Wait()
		close(answer.release)
		if v := <-later; v != "v2" {
			t.Errorf("a read that began after v2 was seen is %q", v)
		}
		if v := <-first; v != "v1" {
			t.Errorf("the first read is %q", v)
		}
		close(end.release)
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		wantGet(t, c, key, "v2")
		stateless(t, c)
	})
}

// Whatever was learned, and whenever the learning began: while a write of the key goes on nothing is put.
func TestNothingIsPutWhileAWriteGoesOn(t *testing.T) {
	c := over(t, memblob.New(nil), Options{})
	defer mustClose(t, c)
	never := func(when string) func() { return func() { t.Errorf("put %s", when) } }
	before := c.epochs.watch(key)
	one := c.begin(key)
	within, flying := c.epochs.watch(key), c.epochs.watch(key)
	before.end(never("what was known before"))
	within.end(never("what was learned within, within"))
	(&flight{watch: flying}).land(never("what was fetched within, within"), &c.count)
	two := c.begin(key)
	overlap := c.epochs.watch(key)
	two.written(never("one of two overlapping writes"))
	one.written(never("the other of them"))
	overlap.end(never("what was learned in an overlap, afterwards"))
	after, put := c.epochs.watch(key), false
	after.end(func() { put = true })
	if !put {
		t.Error("what was learned when nothing went on is not put")
	}
	stateless(t, c)
}

// The lookup hangs with the store's word that there is nothing. Who asks after the Set has returned does not wait for it, and does not hear it.
func TestReadAfterASetDoesNotJoinALookupThatFoundNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		c := over(t, h, Options{NoWriteThrough: true})
		defer mustClose(t, c)
		g := hold(blob.OpGet)
		h.hook(nil, g.at)
		got := make(chan string, 1)
		go func() { got <- get(t, c, key) }()
		<-g.reached
		set(t, c, key, "v1")
		wantGet(t, c, key, "v1")
		if info, err := c.Stat(t.Context(), key); err != nil || info.Size != 2 {
			t.Errorf("Stat: %+v, %v", info, err)
		}
		close(g.release)
		if v := <-got; v != "absent" {
			t.Errorf("the lookup is %q", v)
		}
		wantGet(t, c, key, "v1")
		stateless(t, c)
	})
}
