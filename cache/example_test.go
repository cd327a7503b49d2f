package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/memblob"
)

// A cache is a Blob in front of another: what was read once is read again without a request.
func ExampleNew() {
	ctx := context.Background()
	store := memblob.New(nil) // in practice a store across a network
	requests := blobtest.NewFaults(store)
	b, err := cache.New(ctx, requests, &cache.Options{Memory: 64 << 20, Block: 64 << 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := store.Set(ctx, "tables/1.parquet", blob.Bytes(make([]byte, 1<<20)), nil); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range []blob.Range{blob.Last(8), blob.Span(200, 100), blob.Span(60_000, 5000), blob.Span(300, 1000)} {
		obj, err := b.Get(ctx, "tables/1.parquet", &blob.GetOptions{Range: r})
		fmt.Println(len(obj.Data), "bytes of", obj.Size, "after", requests.Calls(blob.OpGet), "requests,", err)
	}
	s := b.Stats()
	fmt.Println(s.MemoryHits, "hit,", s.Misses, "misses,", b.Close(ctx))
	// Output:
	// 8 bytes of 1048576 after 1 requests, <nil>
	// 100 bytes of 1048576 after 2 requests, <nil>
	// 5000 bytes of 1048576 after 2 requests, <nil>
	// 1000 bytes of 1048576 after 2 requests, <nil>
	// 2 hit, 2 misses, <nil>
}

// With a directory the cache is warm after a restart. Programs that overwrite keys which others cache have each read ask whether the copy is
// still current, which sends no payload while it is.
func ExampleNew_disk() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	opts := &cache.Options{Dir: dir, Disk: 1 << 30, Revalidate: cache.Always}
	store := memblob.New(nil)
	if _, err := store.Set(ctx, "manifest", blob.Bytes([]byte("v1")), nil); err != nil {
		fmt.Println(err)
		return
	}
	read := func(b *cache.Cache) {
		obj, err := b.Get(ctx, "manifest", nil)
		fmt.Printf("%s %v, misses: %d\n", obj.Data, err, b.Stats().Misses)
	}

	b, err := cache.New(ctx, shared{store}, opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	read(b)
	_, err = cache.New(ctx, shared{store}, opts) // the directory belongs to one cache at a time
	fmt.Println("another cache on it is refused:", errors.Is(err, blob.ErrConflict))
	fmt.Println(b.Close(ctx))

	if b, err = cache.New(ctx, shared{store}, opts); err != nil { // the next run of the program
		fmt.Println(err)
		return
	}
	read(b)
	if _, err := store.Set(ctx, "manifest", blob.Bytes([]byte("v2")), nil); err != nil { // by somebody else
		fmt.Println(err)
		return
	}
	read(b)
	fmt.Println(b.Close(ctx))
	// Output:
	// v1 <nil>, misses: 1
	// another cache on it is refused: true
	// <nil>
	// v1 <nil>, misses: 0
	// v2 <nil>, misses: 1
	// <nil>
}

// shared is a store that outlives the caches in front of it.
type shared struct{ blob.Blob }

// Close leaves the store open.
func (shared) Close(context.Context) error { return nil }
