package blobtest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
)

func setRules() []rule {
	return []rule{
		{name: "set/round-trip", says: "What Set stored is what every read returns at once: Get, Stat and List.", run: setRoundTrip},
		{name: "set/info", says: "Set returns Key, Size and Version, the same as Stat's.", run: setInfo},
		{name: "set/overwrite", says: "A second Set replaces the object whole, whether larger, smaller or empty.", run: setOverwrite},
		{name: "set/new-version", says: "Another content of a key has another version.", run: setNewVersion},
		{name: "set/sizes-bytes", says: "Bytes of every size around the multiples of a part are stored exactly.", run: func(e *env) { e.sizes(blob.Bytes) }},
		{name: "set/sizes-readerat", says: "A ReaderAt of every size around the multiples of a part is stored exactly.", run: func(e *env) {
			e.sizes(func(d []byte) blob.Source { return blob.ReaderAt(bytes.NewReader(d), int64(len(d))) })
		}},
		{name: "set/readerat-holds-more", says: "A ReaderAt may hold more bytes than declared; the declared ones are stored.", run: setReaderAtMore},
		{name: "set/source-reusable", says: "Bytes and ReaderAt sources may serve several Sets.", run: setSourceReusable},
		{name: "set/content-type", says: "ContentType is kept; an empty one is application/octet-stream; one that no header can carry is ErrInvalidOption.", run: setContentType},
		{name: "set/sha256", says: "SHA256 changes nothing in what is stored and read.", run: func(e *env) { e.setNeutral(&blob.SetOptions{SHA256: true}) }},
		{name: "set/at-most-once", says: "AtMostOnce changes nothing in what is stored and read.", run: func(e *env) { e.setNeutral(&blob.SetOptions{AtMostOnce: true}) }},
		{name: "set/invisible-until-whole", says: "While a Set is running, readers see the old state: the old object, or none.", run: setInvisible},
		{name: "set/atomic-under-readers", says: "Readers beside writers see a whole old or a whole new object, never a part or a blend.", run: setAtomic},
		{name: "set/concurrent-writers", says: "Of concurrent Sets of one key exactly one whole object remains.", run: setConcurrent},
		{name: "set/invalid", says: "A zero Source, a nil reader, a negative size or an empty version is ErrInvalidOption before any I/O.", run: setInvalid},
	}
}

func setRoundTrip(e *env) {
	k, d := e.key("x"), e.data("x", 777)
	e.absent(k)
	e.mustSet(k, d, nil)
	e.holds(k, d)
	e.isInfo(e.mustStat(k), k, 777)
	if got := e.keys(e.prefix, nil); !slices.Equal(got, []string{"x"}) {
		e.Errorf("List yields %q, want x alone", got)
	}
}

func setInfo(e *env) {
	for _, size := range []int64{0, 10, 2*e.PartSize + 1} {
		k := e.key(fmt.Sprint(size))
		info := e.mustSet(k, e.data(k, size), nil)
		e.isInfo(info, k, size)
		if stat := e.mustStat(k); stat.Version != info.Version {
			e.Errorf("%d bytes: Set returned version %q, Stat %q", size, info.Version, stat.Version)
		}
	}
}

func setOverwrite(e *env) {
	k := e.key("x")
	for i, size := range []int64{100, 50, 3 * e.PartSize, 10, 0, 2*e.PartSize + 1, 2 * e.PartSize, 1} {
		d := e.data(fmt.Sprint(i), size)
		e.mustSet(k, d, nil)
		e.holds(k, d)
	}
}

func setNewVersion(e *env) {
	k, seen := e.key("x"), map[string]bool{}
	for i := range 10 {
		v := e.mustSet(k, e.data(fmt.Sprint(i), 100), nil).Version
		if seen[v] && v != "" {
			e.Errorf("version %q names two contents", v)
		}
		seen[v] = true
	}
}

// sizes stores and reads back objects of the sizes at which part arithmetic goes wrong.
func (e *env) sizes(source func(d []byte) blob.Source) {
	p := e.PartSize
	for _, size := range []int64{0, 1, p - 1, p, p + 1, 2*p - 1, 2 * p, 2*p + 1, e.LargeObject} {
		k := e.key(fmt.Sprint(size))
		d := e.data(k, size)
		info, err := e.store.Set(e.ctx, k, source(d), nil)
		if err != nil {
			e.Errorf("Set of %d bytes (parts of %d): %v", size, p, err)
			continue
		}
		e.isInfo(info, k, size)
		e.holds(k, d)
	}
}

func setReaderAtMore(e *env) {
	for _, size := range []int64{0, 10, 2*e.PartSize + 1} {
		k := e.key(fmt.Sprint(size))
		d := e.data(k, size+100)
		if _, err := e.store.Set(e.ctx, k, blob.ReaderAt(bytes.NewReader(d), size), nil); err != nil {
			e.Errorf("Set of the first %d of %d bytes: %v", size, len(d), err)
			continue
		}
		e.holds(k, d[:size])
	}
}

func setSourceReusable(e *env) {
	d := e.data("x", 2*e.PartSize)
	for name, src := range map[string]blob.Source{"bytes": blob.Bytes(d), "readerat": blob.ReaderAt(bytes.NewReader(d), int64(len(d)))} {
		for i := range 2 {
			k := e.key(fmt.Sprint(name, i))
			if _, err := e.store.Set(e.ctx, k, src, nil); err != nil {
				e.Fatalf("Set number %d of one %s source: %v", i, name, err)
			}
			e.holds(k, d)
		}
	}
}

func setContentType(e *env) {
	k := e.key("x")
	for _, c := range []struct{ set, want string }{
		{"", blob.DefaultContentType}, {"text/plain", "text/plain"}, {"text/plain; charset=utf-8", "text/plain; charset=utf-8"}, {"", blob.DefaultContentType},
	} {
		for _, size := range []int64{10, 2*e.PartSize + 1} {
			e.mustSet(k, e.data("x", size), &blob.SetOptions{ContentType: c.set})
			if got := e.mustStat(k).ContentType; got != c.want {
				e.Errorf("%d bytes set with content type %q: Stat says %q, want %q", size, c.set, got, c.want)
			}
		}
	}
	for _, bad := range []string{"text/\nplain", " text/plain", "texté"} {
		_, err := e.store.Set(e.ctx, e.key("bad"), blob.Bytes(nil), &blob.SetOptions{ContentType: bad})
		e.refused(err, blob.OpSet, e.key("bad"), blob.ErrInvalidOption)
	}
	e.absent(e.key("bad"))
}

func (e *env) setNeutral(o *blob.SetOptions) {
	for _, size := range []int64{0, 10, 2*e.PartSize + 1} {
		k := e.key(fmt.Sprint(size))
		d := e.data(k, size)
		e.mustSet(k, d, o)
		e.holds(k, d)
		if m := e.mustStat(k).Metadata; len(m) != 0 {
			e.Errorf("metadata %v shows that the caller did not set", m)
		}
	}
}

func setInvisible(e *env) {
	for _, size := range []int64{100, 3*e.PartSize + 1} {
		for _, exists := range []bool{false, true} {
			k := e.key(fmt.Sprint(size, exists))
			old, d := e.data("old", 50), e.data("new", size)
			if exists {
				e.mustSet(k, old, nil)
			}
			end := e.startHeld(k, d)
			if exists {
				e.holds(k, old)
				e.isInfo(e.mustStat(k), k, 50)
			} else {
				e.absent(k)
				if got := e.keys(k, nil); len(got) != 0 {
					e.Errorf("List yields %q while its first Set runs", got)
				}
			}
			if _, err := end(); err != nil {
				e.Errorf("Set of %d bytes: %v", size, err)
			}
			e.holds(k, d)
		}
	}
}

// lengths are the object sizes that writers take turns with.
func (e *env) lengths() []int64 {
	return []int64{selfHeader, 3*e.PartSize + 7, 500, e.PartSize, 2 * e.PartSize}
}

func setAtomic(e *env) {
	k, lengths := e.key("x"), e.lengths()
	e.mustSet(k, selfDescribing(0, lengths[0]), nil)
	e.besideReaders(func() {
		o, err := e.store.Get(e.ctx, k, nil)
		if blob.KindOf(err) == blob.ErrChanged { // a read may give up when the object keeps changing
			return
		}
		if err != nil {
			e.Errorf("Get beside a writer: %v", err)
			return
		}
		if _, err := identify(o.Data); err != nil {
			e.Errorf("Get beside a writer: %v", err)
		}
		if o.Size != int64(len(o.Data)) {
			e.Errorf("Get beside a writer: %d bytes, Info.Size %d", len(o.Data), o.Size)
		}
	}, func(i uint64) {
		if _, err := e.store.Set(e.ctx, k, blob.Bytes(selfDescribing(i, lengths[i%uint64(len(lengths))])), nil); err != nil {
			e.Errorf("Set: %v", err)
		}
	})
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func setConcurrent(e *env) {
	for round := range 3 {
		k, lengths := e.key(fmt.Sprint(round)), e.lengths()
		atOnce(e.Racers, func(i int) {
			d := selfDescribing(uint64(i), lengths[i%len(lengths)])
			if _, err := e.store.Set(e.ctx, k, blob.Bytes(d), nil); err != nil && blob.KindOf(err) != blob.ErrConflict {
				e.Errorf("Set beside others: %v", err)
			}
		})
		o := e.mustGet(k, nil)
		if _, err := identify(o.Data); err != nil {
			e.Errorf("after %d concurrent Sets: %v", e.Racers, err)
		}
	}
}

func setInvalid(e *env) {
	k, d := e.key("x"), e.data("x", 10)
	e.mustSet(k, d, nil)
	for name, c := range map[string]struct {
		src  blob.Source
		opts *blob.SetOptions
	}{
		"the zero Source":         {blob.Source{}, nil},
		"a nil ReaderAt":          {blob.ReaderAt(nil, 10), nil},
		"a negative size":         {blob.ReaderAt(bytes.NewReader(d), -1), nil},
		"a nil Reader":            {blob.Stream(nil, 10), nil},
		"IfVersion of no version": {blob.Bytes(d), &blob.SetOptions{If: blob.IfVersion("")}},
	} {
		for _, key := range []string{k, e.key("missing")} {
			e.noRequests("Set of "+name, func() {
				_, err := e.store.Set(e.ctx, key, c.src, c.opts)
				e.refused(err, blob.OpSet, key, blob.ErrInvalidOption)
			})
		}
	}
	e.holds(k, d)
	e.absent(e.key("missing"))
}
