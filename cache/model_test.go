package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/memblob"
)

// sizes are those at which a cache of blocks of 4 KiB changes its ways.
var sizes = []int{0, 1, 100, block - 1, block, block + 1, 3 * block, 5*block + 77, 20 * block}

func drawOptions(t *rapid.T) Options {
	return Options{
		Memory:         rapid.SampledFrom([]int64{-1, 8 << 10, 64 << 10, 1 << 20}).Draw(t, "memory"),
		Block:          block * rapid.SampledFrom([]int64{1, 2}).Draw(t, "block"),
		MaxFill:        rapid.SampledFrom([]int64{0, 2 * block, 100 * block}).Draw(t, "maxfill"),
		FillBytes:      rapid.SampledFrom([]int64{0, block, 4 * block}).Draw(t, "fillbytes"),
		Revalidate:     rapid.SampledFrom([]time.Duration{0, 1, Always}).Draw(t, "revalidate"),
		NoWriteThrough: rapid.Bool().Draw(t, "nowritethrough"),
	}
}

func drawRange(t *rapid.T) blob.Range {
	at := rapid.OneOf(rapid.Int64Range(0, 21*block), rapid.SampledFrom([]int64{0, 1, block - 1, block, block + 1, 2 * block}))
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return blob.Range{}
	case 1:
		return blob.Span(at.Draw(t, "off"), at.Draw(t, "n"))
	case 2:
		return blob.From(at.Draw(t, "off"))
	default:
		return blob.Last(at.Draw(t, "n"))
	}
}

func drawGet(t *rapid.T, inner blob.Blob, k string) blob.GetOptions {
	var o blob.GetOptions
	info, _ := inner.Stat(t.Context(), k)
	switch rapid.IntRange(0, 5).Draw(t, "if") {
	case 0:
		o.If = blob.IfVersion("another")
	case 1:
		if info.Version != "" {
			o.If = blob.IfVersion(info.Version)
		}
	case 2:
		o.Want = blob.Want{Size: info.Size, HasSize: true}
	case 3:
		o.Want = blob.Want{CRC32C: 1, HasCRC32C: true}
	}
	o.SkipCache = rapid.IntRange(0, 9).Draw(t, "skip") == 0
	return o
}

// outcome is what two Blobs have to agree on.
func outcome(objs []blob.Object, err error) string {
	if err != nil {
		return fmt.Sprint("error: ", blob.KindOf(err))
	}
	s := ""
	for _, o := range objs {
		s += fmt.Sprintf("%q %d %q %v %v %q from %d: %d bytes %x;", o.Key, o.Size, o.Version, o.ModTime, o.Metadata, o.ContentType, o.Offset, len(o.Data), o.Data)
	}
	return s
}

// terse is a store whose Set says no more than it has to, as S3's.
type terse struct{ blob.Blob }

func (s terse) Set(ctx context.Context, key string, src blob.Source, o *blob.SetOptions) (blob.Info, error) {
	info, err := s.Blob.Set(ctx, key, src, o)
	return blob.Info{Key: info.Key, Size: info.Size, Version: info.Version}, err
}

// TestReadsAreThoseOfTheStore compares every read through a cache with the same read of its store, while writes go through the cache and some
// of the cache's requests fail. A read may fail with an injected error; otherwise it must be the same to the last byte.
func TestReadsAreThoseOfTheStore(t *testing.T) {
	dir := t.TempDir()
	var runs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		inner := memblob.New(&memblob.Options{Restore: true, MaxGet: 15 * block})
		o := drawOptions(t)
		o.MaxGet = 15 * block
		faults := blobtest.NewFaults(inner,
			blobtest.Fault{Do: blobtest.FailAfter, Chance: 0.05}, blobtest.Fault{Do: blobtest.FailBefore, Chance: 0.05},
		).Seed(rapid.Uint64().Draw(t, "seed"))
		var store blob.Blob = faults
		if rapid.Bool().Draw(t, "terse") {
			store = terse{faults}
		}
		if rapid.IntRange(0, 2).Draw(t, "disk") == 0 {
			o.Disk, o.Dir = 4<<20, filepath.Join(dir, fmt.Sprint(runs.Add(1)))
		}
		c, err := New(t.Context(), store, &o)
		if err != nil {
			t.Fatal(err)
		}
		check := func(t *rapid.T, got, want string, err error) {
			injected := errors.Is(err, blob.ErrUnavailable)
			if got != want && !injected {
				t.Fatalf("through the cache: %.300s\nfrom the store:    %.300s\nerror %v", got, want, err)
			}
		}
		keys := rapid.SampledFrom([]string{"a", "b", "c"})
		write := 0
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				g := drawGet(t, inner, k)
				g.Range = drawRange(t)
				if rapid.Bool().Draw(t, "dst") {
					g.Dst = make([]byte, rapid.SampledFrom(sizes).Draw(t, "len"))
				}
				want, wantErr := inner.Get(t.Context(), k, &g)
				wanted := outcome([]blob.Object{want}, wantErr) // before Dst is used again
				got, err := c.Get(t.Context(), k, &g)
				check(t, outcome([]blob.Object{got}, err), wanted, err)
			},
			"getranges": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				g := drawGet(t, inner, k)
				var rs []blob.Range
				for range rapid.IntRange(0, 5).Draw(t, "ranges") {
					rs = append(rs, drawRange(t))
				}
				want, wantErr := inner.GetRanges(t.Context(), k, rs, &g)
				got, err := c.GetRanges(t.Context(), k, rs, &g)
				check(t, outcome(got, err), outcome(want, wantErr), err)
			},
			"stat": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				want, wantErr := inner.Stat(t.Context(), k)
				got, err := c.Stat(t.Context(), k)
				check(t, outcome([]blob.Object{{Info: got}}, err), outcome([]blob.Object{{Info: want}}, wantErr), err)
			},
			"set": func(t *rapid.T) {
				write++
				data := bytes.Repeat([]byte{byte(write), byte(write >> 8)}, 10*block)[:rapid.SampledFrom(sizes).Draw(t, "size")]
				for i := 0; i < len(data); i += 64 {
					data[i] = byte(i >> 6)
				}
				src := blob.Bytes(data)
				if rapid.Bool().Draw(t, "stream") {
					src = blob.Stream(bytes.NewReader(data), -1)
				}
				var o blob.SetOptions
				if rapid.Bool().Draw(t, "conditional") {
					o.If = blob.IfAbsent()
				}
				o.Metadata = map[string]string{"n": fmt.Sprint(write)}
				_, _ = c.Set(t.Context(), keys.Draw(t, "key"), src, &o)
			},
			"delete":    func(t *rapid.T) { _ = c.Delete(t.Context(), keys.Draw(t, "key"), nil) },
			"deleteall": func(t *rapid.T) { _ = c.DeleteAll(t.Context(), []string{"a", keys.Draw(t, "key")}) },
			"restore":   func(t *rapid.T) { _, _ = c.Restore(t.Context(), keys.Draw(t, "key")) },
			"evict":     func(*rapid.T) { c.memory.clear() },
			"restart": func(t *rapid.T) {
				if err := c.shut(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c, err = New(t.Context(), store, &o); err != nil {
					t.Fatal(err)
				}
			},
		})
		if err := c.Close(t.Context()); err != nil && !errors.Is(err, blob.ErrUnavailable) {
			t.Fatal(err)
		}
		for i := range c.epochs.shards {
			if n := len(c.epochs.shards[i].keys); n != 0 {
				t.Fatalf("%d keys have a state after Close", n)
			}
		}
	})
}

// TestConcurrentReadsAreOfOneVersion has writers and readers of all kinds at once. Every content names its version in each of its bytes, versions only
// grow, and a reader never sees one that is older than the newest that a Set had returned before the read began.
func TestConcurrentReadsAreOfOneVersion(t *testing.T) {
	for name, o := range map[string]Options{
		"default": {Block: block}, "tiny": {Memory: 64 << 10, Block: block}, "no-write-through": {Block: block, NoWriteThrough: true}, "few-fills": {Block: block, FillBytes: 3 * block},
	} {
		t.Run(name, func(t *testing.T) {
			c := over(t, memblob.New(nil), o)
			var mu sync.Mutex
			done := byte(0) // newest version that was set
			newest := func() byte { mu.Lock(); defer mu.Unlock(); return done }
			write := func(v byte) {
				if _, err := c.Set(t.Context(), key, blob.Bytes(bytes.Repeat([]byte{v}, 5*block+int(v))), nil); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				done = v
			}
			write(1)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			ranges := []blob.Range{{}, blob.Span(10, 10), blob.Span(block-5, 10), blob.Last(10), blob.Span(2*block, 3*block)}
			for i := range 8 {
				wg.Go(func() {
					for n := i; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						least := newest()
						objs, err := c.GetRanges(t.Context(), key, ranges[:2+n%4], nil)
						if n%2 == 0 {
							var obj blob.Object
							obj, err = c.Get(t.Context(), key, &blob.GetOptions{Range: ranges[n%len(ranges)]})
							objs = []blob.Object{obj}
						}
						if err != nil {
							t.Error(err)
							return
						}
						v := objs[0].Data[0]
						for _, obj := range objs {
							if bytes.Count(obj.Data, []byte{v}) != len(obj.Data) || obj.Size != 5*block+int64(v) || v < least {
								t.Errorf("a read of version %d, size %d, after version %d was set", v, obj.Size, least)
								return
							}
						}
					}
				})
			}
			for v := byte(2); v < 200; v++ {
				write(v)
			}
			close(stop)
			wg.Wait()
			stateless(t, c)
			mustClose(t, c)
		})
	}
}
