package blobtest

import (
	"bytes"
	"hash/crc32"
	"maps"

	"github.com/wholeblob/wholeblob/blob"
)

func getRules() []rule {
	return []rule{
		{name: "get/whole-object", says: "Get returns exactly the object's bytes; nil options are the zero options.", run: getWhole},
		{name: "get/empty-object", says: "An object of no bytes is read like any other.", run: getEmpty},
		{name: "get/large-object", says: "Get returns exactly the bytes of an object of many parts, whole and by range.", run: getLarge},
		{name: "get/missing-key", says: "Get of a missing key is ErrNotFound, whatever the options.", run: getMissing},
		{name: "get/info", says: "Get returns Key, Size, Version, ModTime, Metadata and ContentType, as Stat does.", run: getInfo},
		{name: "get/if-version", says: "Get with IfVersion of the current version reads it.", run: getIfVersion},
		{name: "get/if-version-mismatch", says: "Get with IfVersion of another version is ErrPrecondition.", run: getIfVersionMismatch},
		{name: "get/if-invalid", says: "Get with IfAbsent or with an empty version is ErrInvalidOption.", run: getIfInvalid},
		{name: "get/want", says: "A Want that is right changes nothing, whole and on ranges.", run: getWant},
		{name: "get/want-size-larger", says: "An object smaller than Want.Size is ErrTruncated.", run: getWantLarger},
		{name: "get/want-size-smaller", says: "An object larger than Want.Size is ErrCorrupt.", run: getWantSmaller},
		{name: "get/want-crc", says: "Another checksum than Want.CRC32C is ErrCorrupt when the whole object is read.", run: getWantCRC},
		{name: "get/want-invalid", says: "A Want that would be ignored or makes no sense is ErrInvalidOption.", run: getWantInvalid},
		{name: "get/dst", says: "Data lies in Dst when Dst is long enough, and nothing beyond Dst is written.", run: getDst},
		{name: "get/dst-short", says: "A Dst that is too short is not used, and is no error.", run: getDstShort},
		{name: "get/skip-cache", says: "SkipCache changes nothing in what is read.", run: func(e *env) {
			d := e.data("x", 100)
			e.mustSet(e.key("x"), d, nil)
			e.isPart(e.mustGet(e.key("x"), &blob.GetOptions{SkipCache: true}), e.key("x"), d, 0, 100)
		}},
		{name: "get/max-get", says: "More bytes than MaxGet are ErrTooLarge; exactly MaxGet are read.", run: getMaxGet, needs: func(c *Config, _ blob.Capabilities) string {
			if c.MaxGet == nil {
				return "Config.MaxGet is nil"
			}
			return ""
		}},
	}
}

func getWhole(e *env) {
	k, d := e.key("x"), e.data("x", 1234)
	e.mustSet(k, d, nil)
	e.isPart(e.mustGet(k, nil), k, d, 0, 1234)
	e.isPart(e.mustGet(k, &blob.GetOptions{}), k, d, 0, 1234)
}

func getEmpty(e *env) {
	k := e.key("empty")
	e.mustSet(k, nil, nil)
	for _, r := range []blob.Range{{}, blob.Span(0, 0), blob.Span(0, 10), blob.From(0), blob.Last(0), blob.Last(10)} {
		o, err := e.store.Get(e.ctx, k, &blob.GetOptions{Range: r})
		if err != nil {
			e.Errorf("Get %v of an empty object: %v", r, err)
			continue
		}
		e.isPart(o, k, nil, 0, 0)
	}
	_, err := e.store.Get(e.ctx, k, &blob.GetOptions{Range: blob.Span(1, 1)})
	e.refused(err, blob.OpGet, k, blob.ErrInvalidRange)
}

func getLarge(e *env) {
	k, size := e.key("large"), e.LargeObject
	d := e.data("large", size)
	if _, err := e.store.Set(e.ctx, k, blob.ReaderAt(bytes.NewReader(d), size), nil); err != nil {
		e.Fatalf("Set of %d bytes: %v", size, err)
	}
	e.holds(k, d)
	p := e.PartSize
	for _, c := range []struct{ off, n int64 }{
		{0, p}, {p - 1, 2}, {p, p}, {p + 1, p}, {1, 2*p + 1}, {p / 2, size - p}, {size - 1, 1}, {size - p - 1, p + 1},
	} {
		c.n = min(c.n, size-c.off)
		e.isPart(e.mustGet(k, &blob.GetOptions{Range: blob.Span(c.off, c.n)}), k, d, c.off, c.n)
	}
	e.isPart(e.mustGet(k, &blob.GetOptions{Range: blob.Last(p + 1)}), k, d, size-p-1, p+1)
	e.isPart(e.mustGet(k, &blob.GetOptions{Range: blob.From(size - 2*p)}), k, d, size-2*p, 2*p)
}

func getMissing(e *env) {
	k := e.key("missing")
	for _, o := range []*blob.GetOptions{
		nil, {Range: blob.Span(0, 0)}, {Range: blob.Span(5, 5)}, {Range: blob.Last(0)}, {Range: blob.Last(3)},
		{If: blob.IfVersion("some-version")}, {Want: blob.Want{Size: 3, HasSize: true}}, {Dst: make([]byte, 10)},
	} {
		_, err := e.store.Get(e.ctx, k, o)
		e.refused(err, blob.OpGet, k, blob.ErrNotFound)
	}
}

func getInfo(e *env) {
	k, d := e.key("x"), e.data("x", 100)
	meta := map[string]string{"owner": "blobtest", "n": "1"}
	set := e.mustSet(k, d, &blob.SetOptions{Metadata: meta, ContentType: "text/plain"})
	for _, r := range []blob.Range{{}, blob.Span(10, 5), blob.Last(0)} {
		o := e.mustGet(k, &blob.GetOptions{Range: r})
		e.isInfo(o.Info, k, 100)
		e.sameInfo(o.Info, e.mustStat(k))
		if o.Version != set.Version {
			e.Errorf("Get %v: Version is %q, Set returned %q", r, o.Version, set.Version)
		}
		if o.ModTime.IsZero() {
			e.Errorf("Get %v: ModTime is zero", r)
		}
		if !maps.Equal(o.Metadata, meta) {
			e.Errorf("Get %v: Metadata is %v, want %v", r, o.Metadata, meta)
		}
		if o.ContentType != "text/plain" {
			e.Errorf("Get %v: ContentType is %q, want text/plain", r, o.ContentType)
		}
	}
}

// sameInfo compares what Get and Stat promise alike.
func (e *env) sameInfo(a, b blob.Info) {
	if a.Key != b.Key || a.Size != b.Size || a.Version != b.Version || !a.ModTime.Equal(b.ModTime) ||
		!maps.Equal(a.Metadata, b.Metadata) || a.ContentType != b.ContentType || a.IsPrefix != b.IsPrefix {
		e.Errorf("the same object has two Infos:\n%+v\n%+v", a, b)
	}
}

func getIfVersion(e *env) {
	k, d := e.key("x"), e.data("x", 3*e.PartSize)
	v := e.mustSet(k, d, nil).Version
	e.isPart(e.mustGet(k, &blob.GetOptions{If: blob.IfVersion(v)}), k, d, 0, 3*e.PartSize)
	e.isPart(e.mustGet(k, &blob.GetOptions{If: blob.IfVersion(v), Range: blob.Span(5, 7)}), k, d, 5, 7)
	e.isPart(e.mustGet(k, &blob.GetOptions{If: blob.IfVersion(v), Range: blob.Last(0)}), k, d, 3*e.PartSize, 0)
}

func getIfVersionMismatch(e *env) {
	k := e.key("x")
	old := e.mustSet(k, e.data("old", 100), nil).Version
	e.mustSet(k, e.data("new", 100), nil)
	for _, v := range []string{old, "some-version"} {
		for _, r := range []blob.Range{{}, blob.Span(5, 5), blob.Last(5), blob.Span(0, 0), blob.Last(0), blob.From(100)} {
			_, err := e.store.Get(e.ctx, k, &blob.GetOptions{If: blob.IfVersion(v), Range: r})
			e.refused(err, blob.OpGet, k, blob.ErrPrecondition)
		}
	}
}

func getIfInvalid(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 10), nil)
	for _, c := range []blob.Condition{blob.IfAbsent(), blob.IfVersion("")} {
		e.noRequests("Get with "+c.String(), func() {
			_, err := e.store.Get(e.ctx, k, &blob.GetOptions{If: c})
			e.refused(err, blob.OpGet, k, blob.ErrInvalidOption)
			_, err = e.store.GetRanges(e.ctx, k, []blob.Range{blob.Span(0, 1)}, &blob.GetOptions{If: c})
			e.refused(err, blob.OpGetRanges, k, blob.ErrInvalidOption)
		})
	}
}

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func getWant(e *env) {
	for name, size := range map[string]int64{"empty": 0, "small": 100, "parts": 2*e.PartSize + 1} {
		k, d := e.key(name), e.data(name, size)
		e.mustSet(k, d, nil)
		w := blob.Want{Size: size, HasSize: true, CRC32C: castagnoli(d), HasCRC32C: true}
		e.isPart(e.mustGet(k, &blob.GetOptions{Want: w}), k, d, 0, size)
		n := size / 2
		e.isPart(e.mustGet(k, &blob.GetOptions{Want: w, Range: blob.Span(n/2, n)}), k, d, n/2, n)
		e.isPart(e.mustGet(k, &blob.GetOptions{Want: w, Range: blob.Last(n)}), k, d, size-n, n)
		// The checksum of the whole proves nothing about a part and must not be compared with it.
		if size > 0 {
			w.CRC32C++
			e.isPart(e.mustGet(k, &blob.GetOptions{Want: w, Range: blob.Span(0, n)}), k, d, 0, n)
		}
	}
}

func getWantLarger(e *env) { wantSize(e, +1, blob.ErrTruncated) }

func getWantSmaller(e *env) { wantSize(e, -1, blob.ErrCorrupt) }

func wantSize(e *env, by int64, kind error) {
	for name, size := range map[string]int64{"small": 100, "parts": 2*e.PartSize + 1} {
		k := e.key(name)
		e.mustSet(k, e.data(name, size), nil)
		w := blob.Want{Size: size + by, HasSize: true}
		for _, r := range []blob.Range{{}, blob.Span(10, 20), blob.Last(20), blob.Span(3, 0), blob.From(size - 1)} {
			_, err := e.store.Get(e.ctx, k, &blob.GetOptions{Want: w, Range: r})
			e.refused(err, blob.OpGet, k, kind)
		}
	}
}

func getWantCRC(e *env) {
	for name, size := range map[string]int64{"empty": 0, "small": 100, "parts": 2*e.PartSize + 1} {
		k, d := e.key(name), e.data(name, size)
		e.mustSet(k, d, nil)
		w := blob.Want{CRC32C: castagnoli(d) + 1, HasCRC32C: true}
		for _, r := range []blob.Range{{}, blob.Span(0, size+1), blob.Last(size + 1)} {
			_, err := e.store.Get(e.ctx, k, &blob.GetOptions{Want: w, Range: r})
			e.refused(err, blob.OpGet, k, blob.ErrCorrupt)
		}
	}
}

func getWantInvalid(e *env) {
	k := e.key("x")
	e.mustSet(k, e.data("x", 10), nil)
	for _, w := range []blob.Want{{Size: -1, HasSize: true}, {Size: 10}, {CRC32C: 1}} {
		_, err := e.store.Get(e.ctx, k, &blob.GetOptions{Want: w})
		e.refused(err, blob.OpGet, k, blob.ErrInvalidOption)
	}
}

func getDst(e *env) {
	for name, size := range map[string]int64{"small": 100, "parts": 2*e.PartSize + 1} {
		k, d := e.key(name), e.data(name, size)
		e.mustSet(k, d, nil)
		for _, c := range []struct {
			r           blob.Range
			off, n, dst int64
		}{
			{blob.Range{}, 0, size, size}, {blob.Range{}, 0, size, size + 10},
			{blob.Span(10, 20), 10, 20, 20}, {blob.Last(30), size - 30, 30, 40}, {blob.From(size - 5), size - 5, 5, 5},
			{blob.Span(size-5, 50), size - 5, 5, 50},
		} {
			dst := bytes.Repeat([]byte{0xAA}, int(c.dst)+16)
			o := e.mustGet(k, &blob.GetOptions{Range: c.r, Dst: dst[:c.dst]})
			e.isPart(o, k, d, c.off, c.n)
			if len(o.Data) == 0 || &o.Data[0] != &dst[0] {
				e.Errorf("Get(%q) %v: Data does not lie in a Dst of %d bytes", k, c.r, c.dst)
			}
			if rest := dst[c.dst:]; !bytes.Equal(rest, bytes.Repeat([]byte{0xAA}, len(rest))) {
				e.Errorf("Get(%q) %v: bytes after a Dst of %d were written", k, c.r, c.dst)
			}
		}
	}
}

func getDstShort(e *env) {
	k, size := e.key("x"), 2*e.PartSize+1
	d := e.data("x", size)
	e.mustSet(k, d, nil)
	for _, n := range []int64{0, 1, size - 1} {
		// Spare capacity is the caller's and none of the store's business.
		dst := bytes.Repeat([]byte{0xAA}, int(2*size))
		e.isPart(e.mustGet(k, &blob.GetOptions{Dst: dst[:n]}), k, d, 0, size)
		if rest := dst[n:]; !bytes.Equal(rest, bytes.Repeat([]byte{0xAA}, len(rest))) {
			e.Errorf("the capacity of a Dst of length %d was used", n)
		}
	}
}

func getMaxGet(e *env) {
	const limit = 1000
	e.use(e.MaxGet(e.rt, limit))
	k, d := e.key("x"), e.data("x", 2*limit)
	e.mustSet(k, d, nil)
	for _, r := range []blob.Range{{}, blob.Span(0, limit+1), blob.Last(limit + 1), blob.From(limit - 1)} {
		_, err := e.store.Get(e.ctx, k, &blob.GetOptions{Range: r})
		e.refused(err, blob.OpGet, k, blob.ErrTooLarge)
	}
	e.isPart(e.mustGet(k, &blob.GetOptions{Range: blob.Span(0, limit)}), k, d, 0, limit)
	e.isPart(e.mustGet(k, &blob.GetOptions{Range: blob.Last(limit)}), k, d, limit, limit)
	e.isPart(e.mustGet(k, &blob.GetOptions{Range: blob.From(limit)}), k, d, limit, limit)

	_, err := e.store.GetRanges(e.ctx, k, []blob.Range{blob.Span(0, 501), blob.Span(0, 500)}, nil)
	e.refused(err, blob.OpGetRanges, k, blob.ErrTooLarge)
	if _, err := e.store.GetRanges(e.ctx, k, []blob.Range{blob.Span(0, 500), blob.Span(0, 500)}, nil); err != nil {
		e.Errorf("GetRanges of exactly MaxGet bytes: %v", err)
	}
}
