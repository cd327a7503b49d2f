package transfer

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// What a read costs on each kind of service: small objects one request, large ones one for each part or segment.
func TestRequestsOfReads(t *testing.T) {
	span, last := blob.Span(50, 20), blob.Last(7)
	for _, c := range []struct {
		what  string
		p     personality
		size  int
		parts []int
		r     blob.Range
		want  []string
	}{
		{"small", s3Like(), 70, nil, blob.Range{}, []string{"read part 1"}},
		{"small, by range", azureLike(), 70, nil, blob.Range{}, []string{"read 0+100"}},
		{"a segment", azureLike(), 100, nil, blob.Range{}, []string{"read 0+100"}},
		{"one byte more", azureLike(), 101, nil, blob.Range{}, []string{"read 0+100", "read 100+1 of v1"}},
		{"empty, by range", azureLike(), 0, nil, blob.Range{}, []string{"read 0+100", "head"}},
		{"parts", s3Like(), 250, []int{100, 100, 50}, blob.Range{}, []string{"read part 1", "read part 2 of v1", "read part 3 of v1"}},
		{"one part", s3Like(), 100, []int{100}, blob.Range{}, []string{"read part 1"}},
		{"small parts", s3Like(), 50, []int{20, 20, 10}, blob.Range{}, []string{"read part 1", "read part 2 of v1", "read part 3 of v1"}},
		{"huge part", s3Like(), 350, []int{300, 50}, blob.Range{},
			[]string{"read part 1", "read 100+100 of v1", "read 200+100 of v1", "read 300+50 of v1"}},
		{"huge part, and as many parts as segments", s3Like(), 300, []int{250, 25, 25}, blob.Range{},
			[]string{"read part 1", "read 100+100 of v1", "read 200+100 of v1"}},
		{"twice a segment", s3Like(), 200, nil, blob.Range{}, []string{"read part 1"}},
		{"from", s3Like(), 250, []int{100, 100, 50}, blob.From(60), []string{"read 60+100", "read 160+90 of v1"}},
		{"span", s3Like(), 250, []int{100, 100, 50}, span, []string{"read 50+20"}},
		{"span past the end", azureLike(), 60, nil, span, []string{"read 50+20"}},
		{"span at the end", azureLike(), 50, nil, span, []string{"read 50+20", "head"}},
		{"long span", azureLike(), 900, nil, blob.Span(10, 250), []string{"read 10+100", "read 110+100 of v1", "read 210+50 of v1"}},
		{"no bytes", s3Like(), 250, nil, blob.Span(60, 0), []string{"head"}},
		{"last", s3Like(), 250, nil, last, []string{"read last 7"}},
		{"last of less", s3Like(), 5, nil, last, []string{"read last 7"}},
		{"long last", s3Like(), 950, nil, blob.Last(250), []string{"read last 100", "read 700+100 of v1", "read 800+50 of v1"}},
		{"last, no suffixes", azureLike(), 250, nil, last, []string{"head", "read 243+7 of v1"}},
		{"long last, no suffixes", azureLike(), 250, nil, blob.Last(120), []string{"head", "read 130+100 of v1", "read 230+20 of v1"}},
		{"last, no suffixes, empty", azureLike(), 0, nil, last, []string{"head"}},
		{"chunks", gcsLike(), 250, nil, blob.Range{}, []string{"read 0+100", "read 100+100 of v1", "read 200+50 of v1"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serve(t, c.p)
			data := content(c.size)
			s.put("k", data, c.parts...)
			obj := get(t, open(t, s), &blob.GetOptions{Range: c.r})
			lo, n, _ := c.r.Resolve(int64(c.size))
			wantBytes(t, obj.Data, data[lo:lo+n])
			if obj.Offset != lo || obj.Size != int64(c.size) || obj.Version != "v1" || obj.Key != "k" || obj.ModTime.IsZero() {
				t.Errorf("%+v", obj.Info)
			}
			wantLog(t, s, c.want...)
		})
	}
}

// Parts that are not where equal parts would lie, an empty first one too, are read by range.
func TestUnequalPartsAreReadByRange(t *testing.T) {
	for _, parts := range [][]int{{100, 30, 120}, {30, 100, 120}, {0, 100, 150}, {120, 130}, {100, 100, 50, 0}, {1, 249}} {
		s := serve(t, s3Like())
		data := content(250)
		s.put("k", data, parts...)
		s.edit = func(_ ReadRequest, rep *ReadReply) {
			if rep.End == rep.Off { // an empty part has no range that could be told
				rep.HasRange, rep.Partial = false, false
			}
		}
		wantBytes(t, get(t, open(t, s), nil).Data, data)
	}
}

// A service that once sent a huge part, or could not serve parts, is asked by range from then on; with an option from
// the beginning. That an object defeats ranges is not remembered.
func TestModeOfReadingIsRemembered(t *testing.T) {
	first := func(t *testing.T, s *service, st *Store) string {
		s.takeLog()
		_, _ = st.Get(t.Context(), "small", nil)
		return s.takeLog()[0]
	}
	t.Run("huge part", func(t *testing.T) {
		s := serve(t, s3Like())
		st := open(t, s)
		s.put("k", content(300))
		s.put("small", content(10))
		if got := first(t, s, st); got != "read part 1" {
			t.Error(got)
		}
		get(t, st, nil)
		if got := first(t, s, st); got != "read 0+100" {
			t.Error(got)
		}
	})
	t.Run("parts refused", func(t *testing.T) {
		s := serve(t, s3Like())
		st := open(t, s)
		s.put("small", content(10))
		s.edit = func(r ReadRequest, rep *ReadReply) {
			if r.Part > 0 {
				rep.HasRange = false
			}
		}
		for _, want := range []string{"read part 1", "read 0+100"} {
			if got := first(t, s, st); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	t.Run("ranges ignored", func(t *testing.T) {
		s := serve(t, s3Like())
		st := open(t, s, func(o *Options) { o.ReadRanges = true })
		s.put("small", content(10))
		s.edit = func(r ReadRequest, rep *ReadReply) {
			if r.N > 0 {
				rep.HasRange = false // still partial
			}
		}
		for range 2 {
			if got := first(t, s, st); got != "read 0+100" {
				t.Error(got)
			}
		}
	})
	t.Run("a range says nothing about parts", func(t *testing.T) {
		s := serve(t, s3Like())
		st := open(t, s)
		s.put("k", content(50))
		s.put("small", content(10))
		s.edit = func(r ReadRequest, rep *ReadReply) {
			if r.N > 0 {
				rep.HasRange = false
			}
		}
		get(t, st, &blob.GetOptions{Range: blob.Span(5, 5)})
		wantLog(t, s, "read 5+5", "read all")
		if got := first(t, s, st); got != "read part 1" {
			t.Error(got)
		}
	})
}

// More than MaxGet is refused before memory is got for it or its bytes are read, by whatever way the size becomes known.
func TestMaxGetIsCheckedBeforeAllocation(t *testing.T) {
	const huge = 1 << 40
	for name, edit := range map[string]func(ReadRequest, *ReadReply){
		"range": func(_ ReadRequest, rep *ReadReply) {
			rep.HasRange, rep.Off, rep.End, rep.Total = true, 0, rep.Length, huge
		},
		"length": func(_ ReadRequest, rep *ReadReply) { rep.HasRange, rep.Partial, rep.Length = false, false, huge },
	} {
		s := serve(t, s3Like())
		s.put("k", content(50))
		s.edit = func(r ReadRequest, rep *ReadReply) {
			edit(r, rep)
			rep.replace(func(io.Reader) io.Reader { return failingReader{errors.New("the body was read")} })
		}
		st := open(t, s)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o := &blob.GetOptions{}
		if name == "length" {
			o.Want = blob.Want{Size: huge, HasSize: true}
		}
		e := wantKind(t, getError(st, o), blob.ErrTooLarge)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
		if e.Attempts > 1 {
			t.Errorf("%s: tried again: %v", name, e)
		}
	}
	s := serve(t, s3Like())
	s.put("k", content(101))
	st := open(t, s, func(o *Options) { o.MaxGet = 100 })
	wantKind(t, getError(st, nil), blob.ErrTooLarge)
	get(t, st, &blob.GetOptions{Range: blob.From(1)}) // exactly MaxGet
	wantKind(t, getError(st, &blob.GetOptions{Range: blob.Last(101)}), blob.ErrTooLarge)
}

// Dst is read into if it is long enough; what lies beyond in it is not touched, nor reachable through Data.
func TestDst(t *testing.T) {
	s := serve(t, s3Like())
	data := content(250)
	s.put("k", data, 100, 100, 50)
	st := open(t, s)
	long := bytes.Repeat([]byte{0xAA}, 300)
	obj := get(t, st, &blob.GetOptions{Dst: long})
	wantBytes(t, obj.Data, data)
	if &obj.Data[0] != &long[0] || cap(obj.Data) != 250 || !bytes.Equal(long[250:], bytes.Repeat([]byte{0xAA}, 50)) {
		t.Error("not read into Dst, or beyond")
	}
	short := bytes.Repeat([]byte{0xAA}, 249)
	obj = get(t, st, &blob.GetOptions{Dst: short})
	wantBytes(t, obj.Data, data)
	if !bytes.Equal(short, bytes.Repeat([]byte{0xAA}, 249)) {
		t.Error("a Dst that is too short was written to")
	}
}

// A size or checksum other than the caller's manifest says is an error at once: the same object would come again.
func TestWantIsCheckedAndNotRetried(t *testing.T) {
	s := serve(t, s3Like())
	s.put("k", content(270))
	st := open(t, s, func(o *Options) { o.ReadRanges = true })
	for _, c := range []struct {
		w    blob.Want
		r    blob.Range
		kind error
	}{
		{blob.Want{Size: 271, HasSize: true}, blob.Range{}, blob.ErrTruncated},
		{blob.Want{Size: 269, HasSize: true}, blob.Range{}, blob.ErrCorrupt},
		{blob.Want{Size: 271, HasSize: true}, blob.Span(3, 4), blob.ErrTruncated},
		{blob.Want{CRC32C: 1, HasCRC32C: true}, blob.Range{}, blob.ErrCorrupt}, // once all of it is there
	} {
		wantKind(t, getError(st, &blob.GetOptions{Want: c.w, Range: c.r}), c.kind)
		// A size that is known lets all segments begin at once, but each is asked for once.
		log := sorted(s.takeLog())
		if once := slices.Compact(slices.Clone(log)); len(once) != len(log) || len(log) > 3 {
			t.Errorf("%+v: %q", c.w, log)
		}
	}
	wantKind(t, getError(st, &blob.GetOptions{Want: blob.Want{Size: 1, HasSize: true}, Range: blob.Span(0, 0)}), blob.ErrCorrupt)
	get(t, st, &blob.GetOptions{Want: blob.Want{CRC32C: 1, HasCRC32C: true}, Range: blob.Span(3, 4)}) // covers other bytes
	s.put("k", nil)
	wantKind(t, getError(st, &blob.GetOptions{Want: blob.Want{Size: 1, HasSize: true}}), blob.ErrTruncated)
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// Bytes count whatever way the reader delivers them (cockroachdb/cockroach #57748).
func TestOddReaders(t *testing.T) {
	for name, odd := range map[string]func(io.Reader) io.Reader{
		"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with EOF": iotest.DataErrReader,
		"empty reads": func(r io.Reader) io.Reader { return &hesitantReader{r: r} },
		"data with a reset": func(r io.Reader) io.Reader {
			return iotest.DataErrReader(io.MultiReader(r, failingReader{errors.New("connection reset")}))
		},
	} {
		s := serve(t, s3Like())
		data := content(250)
		s.put("k", data, 100, 100, 50)
		s.edit = func(_ ReadRequest, rep *ReadReply) { rep.replace(odd) }
		wantBytes(t, get(t, open(t, s, policy(retry.Off())), nil).Data, data)
		if got := s.requests("read"); got != 3 {
			t.Errorf("%s: %d requests, want 3", name, got)
		}
	}
}

// hesitantReader returns 0, nil every other time.
type hesitantReader struct {
	r     io.Reader
	ready bool
}

func (h *hesitantReader) Read(p []byte) (int, error) {
	h.ready = !h.ready
	if h.ready {
		return 0, nil
	}
	return h.r.Read(p)
}

// What comes back is what was stored, without the entries that are ours.
func TestInfoOfAnObject(t *testing.T) {
	s := serve(t, s3Like())
	s.mu.Lock()
	meta := blob.Stamp{Token: blob.NewToken()}.Seal(map[string]string{"a": "b"})
	s.store("p/k", content(10), nil, Meta{ContentType: "text/plain", Metadata: meta})
	s.mu.Unlock()
	st := open(t, s, func(o *Options) { o.Prefix = "p/" })
	info, err := st.Stat(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []blob.Info{info, get(t, st, nil).Info} {
		if i.Key != "k" || i.Size != 10 || i.Version != "v1" || i.ContentType != "text/plain" || len(i.Metadata) != 1 || i.Metadata["a"] != "b" {
			t.Errorf("%+v", i)
		}
	}
}
