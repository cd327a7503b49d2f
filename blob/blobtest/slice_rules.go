package blobtest

import (
	"bytes"
	"context"
	"maps"

	"github.com/wholeblob/wholeblob/blob"
)

func sliceRules() []rule {
	return []rule{
		{name: "slices/set-bytes", says: "The caller may change its bytes after Set: the object stays as it was set.", run: slicesSet},
		{name: "slices/metadata", says: "The caller may change its metadata map after Set: the object stays as it was set.", run: slicesMetadata},
		{name: "slices/dst", says: "Data in the caller's Dst is the caller's: changing it changes nothing stored.", run: slicesDst},
		{name: "slices/dst-left-alone", says: "No Get returns while it may still write to Dst, cancelled or not.", run: slicesDstLeftAlone},
		{name: "slices/data-stays", says: "Data that was returned never changes, whatever becomes of the object.", run: slicesDataStays},
		{name: "slices/options", says: "Options are the caller's: no call changes them.", run: slicesOptions},
	}
}

func scribble(b []byte) {
	for i := range b {
		b[i] ^= 0xFF
	}
}

func slicesSet(e *env) {
	for name, size := range map[string]int64{"small": 100, "parts": 2*e.PartSize + 1} {
		k, d, mine := e.key(name), e.data(name, size), e.data(name, size)
		e.mustSet(k, mine, nil)
		scribble(mine)
		e.holds(k, d)
	}
}

func slicesMetadata(e *env) {
	k, m := e.key("x"), map[string]string{"a": "1"}
	e.mustSet(k, nil, &blob.SetOptions{Metadata: m})
	m["a"], m["b"] = "2", "3"
	if got := e.mustStat(k).Metadata; !maps.Equal(got, map[string]string{"a": "1"}) {
		e.Errorf("metadata is %v after the caller changed its own map", got)
	}
}

func slicesDst(e *env) {
	for name, size := range map[string]int64{"small": 100, "parts": 2*e.PartSize + 1} {
		k, d := e.key(name), e.data(name, size)
		e.mustSet(k, d, nil)
		dst := make([]byte, size)
		e.mustGet(k, &blob.GetOptions{Dst: dst})
		scribble(dst)
		e.holds(k, d)
		again := e.mustGet(k, &blob.GetOptions{Dst: dst})
		e.isPart(again, k, d, 0, size)
	}
}

// slicesDstLeftAlone cancels reads of many parts at different moments and looks for late writes to Dst; the
// race detector finds those that come while nobody looks.
func slicesDstLeftAlone(e *env) {
	k, size := e.key("x"), 8*e.PartSize
	e.mustSet(k, e.data("x", size), nil)
	dst := make([]byte, size)
	for i := range 20 {
		ctx, cancel := context.WithCancel(e.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = e.store.Get(ctx, k, &blob.GetOptions{Dst: dst})
		}()
		for range i * 50 {
			yieldProcessor()
		}
		cancel()
		<-done
		clear(dst)
		for range 200 {
			yieldProcessor()
		}
		if n := bytes.Count(dst, []byte{0}); int64(n) != size {
			e.Errorf("%d bytes of Dst were written after Get had returned", size-int64(n))
		}
	}
}

func slicesDataStays(e *env) {
	for name, size := range map[string]int64{"small": 100, "parts": 2*e.PartSize + 1} {
		k, d := e.key(name), e.data(name, size)
		e.mustSet(k, d, nil)
		whole := e.mustGet(k, nil)
		part := e.mustGet(k, &blob.GetOptions{Range: blob.Span(10, 20)})
		e.mustSet(k, e.data("other", size), nil)
		e.mustGet(k, nil)
		e.mustDelete(k)
		e.isPart(whole, k, d, 0, size)
		e.isPart(part, k, d, 10, 20)
	}
}

func slicesOptions(e *env) {
	k := e.key("x")
	set := blob.SetOptions{Metadata: map[string]string{"a": "1"}}
	e.mustSet(k, e.data("x", 100), &set)
	if set.ContentType != "" || !set.If.IsZero() || len(set.Metadata) != 1 || set.SHA256 || set.AtMostOnce {
		e.Errorf("Set changed its options to %+v", set)
	}
	get := blob.GetOptions{Range: blob.Last(5000)}
	e.mustGet(k, &get)
	if get.Range != blob.Last(5000) || !get.If.IsZero() || get.Want != (blob.Want{}) || get.Dst != nil || get.SkipCache {
		e.Errorf("Get changed its options to %+v", get)
	}
	list := blob.ListOptions{StartAfter: e.key("a")}
	if _, err := e.list(e.ctx, e.prefix, &list); err != nil {
		e.Errorf("List: %v", err)
	}
	if list != (blob.ListOptions{StartAfter: e.key("a")}) {
		e.Errorf("List changed its options to %+v", list)
	}
}
