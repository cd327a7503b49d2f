package blobtest

import (
	"github.com/wholeblob/wholeblob/blob"
)

func getRangesRules() []rule {
	return []rule{
		{name: "getranges/callers-order", says: "GetRanges returns one object per range, in the caller's order; ranges may overlap and repeat.", run: getRangesOrder},
		{name: "getranges/none", says: "No ranges: no I/O, no objects, no error, even for a missing key.", run: getRangesNone},
		{name: "getranges/one-bad", says: "One range that Get would refuse fails the whole call.", run: getRangesOneBad},
		{name: "getranges/missing-key", says: "GetRanges of a missing key is ErrNotFound, with empty ranges too.", run: getRangesMissing},
		{name: "getranges/options", says: "Range and Dst in the options are ErrInvalidOption.", run: getRangesOptions},
		{name: "getranges/if-version", says: "IfVersion is as for Get.", run: getRangesIf},
		{name: "getranges/want", says: "Want is as for Get.", run: getRangesWant},
		{name: "getranges/one-version", says: "All objects of one call are of one version, while writers replace the object.", run: getRangesOneVersion},
		{name: "getranges/argument-kept", says: "GetRanges does not change the caller's slice of ranges.", run: getRangesArgument},
	}
}

func getRangesOrder(e *env) {
	p := e.PartSize
	size := 3*p + 5
	k, d := e.key("x"), e.data("x", size)
	e.mustSet(k, d, nil)
	cases := []rangeCase{
		{blob.Span(2*p, 100), 2 * p, 100}, {blob.Span(0, 10), 0, 10}, {blob.Span(5, 10), 5, 10}, {blob.Span(0, 10), 0, 10},
		{blob.Last(7), size - 7, 7}, {blob.Span(3, 0), 3, 0}, {blob.From(size), size, 0}, {blob.Range{}, 0, size}, {blob.Span(p-1, 2*p), p - 1, 2 * p},
		{blob.Span(size-2, 100), size - 2, 2}, {blob.Last(0), size, 0},
	}
	rs := make([]blob.Range, len(cases))
	for i, c := range cases {
		rs[i] = c.r
	}
	os, err := e.store.GetRanges(e.ctx, k, rs, nil)
	if err != nil {
		e.Fatalf("GetRanges: %v", err)
	}
	if len(os) != len(cases) {
		e.Fatalf("GetRanges of %d ranges returned %d objects", len(cases), len(os))
	}
	for i, c := range cases {
		e.isPart(os[i], k, d, c.off, c.n)
		if os[i].Version != os[0].Version {
			e.Errorf("objects of one call have versions %q and %q", os[0].Version, os[i].Version)
		}
	}
	e.sameInfo(os[0].Info, e.mustStat(k))
}

func getRangesNone(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 10), nil)
	for _, key := range []string{k, e.key("missing")} {
		for _, rs := range [][]blob.Range{nil, {}} {
			e.noRequests("GetRanges of no ranges", func() {
				os, err := e.store.GetRanges(e.ctx, key, rs, nil)
				if err != nil || len(os) != 0 {
					e.Errorf("GetRanges(%q) of no ranges: %d objects, %v", key, len(os), err)
				}
			})
		}
	}
}

func getRangesOneBad(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 100), nil)
	for _, rs := range [][]blob.Range{
		{blob.Span(0, 10), blob.Span(101, 1)}, {blob.Span(101, 1), blob.Span(0, 10)}, {blob.Span(0, 10), blob.From(200), blob.Last(5)}, {blob.Span(101, 0), blob.Span(0, 0)},
	} {
		os, err := e.store.GetRanges(e.ctx, k, rs, nil)
		e.refused(err, blob.OpGetRanges, k, blob.ErrInvalidRange)
		if len(os) != 0 {
			e.Errorf("GetRanges %v returned %d objects beside an error", rs, len(os))
		}
	}
}

func getRangesMissing(e *env) {
	k := e.key("missing")
	for _, rs := range [][]blob.Range{{blob.Span(0, 10)}, {blob.Span(0, 0)}, {blob.Last(0), blob.From(3)}, {{}}} {
		_, err := e.store.GetRanges(e.ctx, k, rs, nil)
		e.refused(err, blob.OpGetRanges, k, blob.ErrNotFound)
	}
}

func getRangesOptions(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 100), nil)
	for _, o := range []blob.GetOptions{{Range: blob.Span(0, 1)}, {Range: blob.Last(0)}, {Dst: make([]byte, 10)}, {Dst: []byte{}}} {
		_, err := e.store.GetRanges(e.ctx, k, []blob.Range{blob.Span(0, 1)}, &o)
		e.refused(err, blob.OpGetRanges, k, blob.ErrInvalidOption)
	}
}

func getRangesIf(e *env) {
	k, d := e.key("x"), e.data("new", 100)
	old := e.mustSet(k, e.data("old", 100), nil).Version
	v := e.mustSet(k, d, nil).Version
	rs := []blob.Range{blob.Span(0, 10), blob.Span(0, 0), blob.Last(3)}
	_, err := e.store.GetRanges(e.ctx, k, rs, &blob.GetOptions{If: blob.IfVersion(old)})
	e.refused(err, blob.OpGetRanges, k, blob.ErrPrecondition)
	_, err = e.store.GetRanges(e.ctx, k, []blob.Range{blob.Span(0, 0)}, &blob.GetOptions{If: blob.IfVersion(old)})
	e.refused(err, blob.OpGetRanges, k, blob.ErrPrecondition)
	os, err := e.store.GetRanges(e.ctx, k, rs, &blob.GetOptions{If: blob.IfVersion(v)})
	if err != nil || len(os) != 3 {
		e.Fatalf("GetRanges with IfVersion of the current version: %d objects, %v", len(os), err)
	}
	e.isPart(os[0], k, d, 0, 10)
	e.isPart(os[2], k, d, 97, 3)
}

func getRangesWant(e *env) {
	k := e.key("x")
	d := e.data("x", 100)
	e.mustSet(k, d, nil)
	rs := []blob.Range{blob.Span(0, 10), blob.Last(3)}
	for _, c := range []struct {
		size int64
		kind error
	}{{101, blob.ErrTruncated}, {99, blob.ErrCorrupt}} {
		_, err := e.store.GetRanges(e.ctx, k, rs, &blob.GetOptions{Want: blob.Want{Size: c.size, HasSize: true}})
		e.refused(err, blob.OpGetRanges, k, c.kind)
	}
	os, err := e.store.GetRanges(e.ctx, k, rs, &blob.GetOptions{Want: blob.Want{Size: 100, HasSize: true, CRC32C: castagnoli(d), HasCRC32C: true}})
	if err != nil || len(os) != 2 {
		e.Fatalf("GetRanges with a Want that is right: %d objects, %v", len(os), err)
	}
	e.isPart(os[1], k, d, 97, 3)
}

func getRangesOneVersion(e *env) {
	k, size := e.key("x"), 2*e.PartSize+100
	whole := func(id uint64) []byte { return selfDescribing(id, size) }
	e.mustSet(k, whole(0), nil)
	e.besideReaders(func() {
		os, err := e.store.GetRanges(e.ctx, k, []blob.Range{blob.Last(50), blob.Span(0, selfHeader), blob.Span(e.PartSize-5, 10)}, nil)
		switch {
		case err == nil:
			e.oneVersion(os, k, whole)
		case blob.KindOf(err) != blob.ErrChanged: // a read may give up when the object keeps changing
			e.Errorf("GetRanges while writers replace the object: %v", err)
		}
	}, func(i uint64) {
		if _, err := e.store.Set(e.ctx, k, blob.Bytes(whole(i)), nil); err != nil {
			e.Errorf("Set: %v", err)
		}
	})
}

// oneVersion checks that os, of which the second is the header, are parts of one content.
func (e *env) oneVersion(os []blob.Object, k string, whole func(id uint64) []byte) {
	if len(os) != 3 || len(os[1].Data) != selfHeader {
		e.Errorf("GetRanges of 3 ranges returned %d objects", len(os))
		return
	}
	d := whole(beUint64(os[1].Data))
	e.isPart(os[0], k, d, int64(len(d))-50, 50)
	e.isPart(os[2], k, d, e.PartSize-5, 10)
	if os[0].Version != os[1].Version || os[1].Version != os[2].Version {
		e.Errorf("objects of one call have versions %q, %q, %q", os[0].Version, os[1].Version, os[2].Version)
	}
}

func getRangesArgument(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 100), nil)
	rs := []blob.Range{blob.Last(5), blob.Span(90, 1000), blob.Span(3, 3)}
	was := append([]blob.Range(nil), rs...)
	if _, err := e.store.GetRanges(e.ctx, k, rs, nil); err != nil {
		e.Fatalf("GetRanges: %v", err)
	}
	for i := range rs {
		if rs[i] != was[i] {
			e.Errorf("range %d is %v after the call, was %v", i, rs[i], was[i])
		}
	}
}
