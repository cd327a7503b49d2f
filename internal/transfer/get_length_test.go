package transfer

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// The length of a body is taken from nowhere else than a statement: without one in the reply, the manifest or a
// Stat the read fails, and a body longer than the statement is no object of that length.
func TestLengthMustBeProven(t *testing.T) {
	blank := func(_ ReadRequest, rep *ReadReply) { rep.whole([]byte("twelve bytes"), -1) }
	manifest := func(n int64) blob.Want { return blob.Want{Size: n, HasSize: true} }
	for _, c := range []struct {
		what   string
		stated int // the size of a Stat; -1: none
		want   blob.Want
		kind   error
	}{
		{"by a Stat", 12, blob.Want{}, nil},
		{"by the manifest", -1, manifest(12), nil},
		{"not at all", -1, blob.Want{}, blob.ErrTruncated},
		{"a smaller Stat", 11, blob.Want{}, blob.ErrCorrupt},
		{"a smaller manifest", -1, manifest(11), blob.ErrCorrupt},
		{"a larger Stat", 13, blob.Want{}, blob.ErrTruncated}, // or ErrChanged: it was as long as that a moment ago
		{"a larger manifest", -1, manifest(13), blob.ErrTruncated},
	} {
		for _, r := range []blob.Range{{}, blob.From(3), blob.Last(4)} {
			s := serve(t, s3Like())
			s.put("k", content(12))
			s.edit = blank
			s.head = func(h *Head) { h.Size = int64(c.stated) }
			err := getError(open(t, s), &blob.GetOptions{Range: r, Want: c.want})
			kind := c.kind
			if r == blob.Last(4) && c.stated == -1 {
				kind = blob.ErrTruncated // without ranges, a Stat must say where they are
			}
			if !errors.Is(err, kind) && !(kind == blob.ErrTruncated && errors.Is(err, blob.ErrChanged)) {
				t.Errorf("%s, %v: %v, want %v", c.what, r, err, kind)
			}
			if n := len(s.takeLog()); n > 12 {
				t.Errorf("%s, %v: %d requests", c.what, r, n)
			}
		}
	}
}

// A Stat in place of a missing total must be of the same version; of another it makes the read begin anew.
func TestStatOfAnotherVersionProvesNothing(t *testing.T) {
	for _, odd := range []string{"no total", "whole, blank"} {
		s := serve(t, s3Like())
		old, now := content(70), content(60)
		s.put("k", old)
		first := true
		s.edit = func(_ ReadRequest, rep *ReadReply) {
			oddities[odd](rep, s.object().data)
			if first {
				first = false
				s.put("k", now)
			}
		}
		wantBytes(t, get(t, open(t, s), nil).Data, now)
	}
}

// A size by a Stat or the manifest that is less than what the reply itself says is believed by nobody.
func TestSizeThatContradictsTheReply(t *testing.T) {
	for _, r := range []blob.Range{{}, blob.Span(0, 100)} {
		s := serve(t, s3Like())
		s.put("k", content(100))
		s.edit = func(_ ReadRequest, rep *ReadReply) { rep.Total = -1 }
		s.head = func(h *Head) { h.Size = 60 }
		st := open(t, s)
		wantKind(t, getError(st, &blob.GetOptions{Range: r}), blob.ErrTruncated)
		s.takeLog()
		wantKind(t, getError(st, &blob.GetOptions{Range: r, Want: blob.Want{Size: 60, HasSize: true}}), blob.ErrCorrupt)
		if n := len(s.takeLog()); n != 1 {
			t.Errorf("%d requests", n)
		}
	}
}

// A refused range says that nothing lies there, but the size must still be stated by somebody.
func TestRefusedRangeOfUnknownSize(t *testing.T) {
	s := serve(t, azureLike())
	s.put("k", nil)
	s.head = func(h *Head) { h.Size = -1 }
	wantKind(t, getError(open(t, s), nil), blob.ErrTruncated)
	_, err := open(t, s).Stat(t.Context(), "k")
	wantKind(t, err, blob.ErrTruncated)
}

// Ranges after a first part fall on the borders of parts, also where the service does not count them.
func TestRangesFallOnTheBordersOfParts(t *testing.T) {
	s := serve(t, s3Like())
	data := content(140)
	s.put("k", data, 50, 50, 40)
	s.edit = func(_ ReadRequest, rep *ReadReply) { rep.Parts = 0 }
	wantBytes(t, get(t, open(t, s), nil).Data, data)
	wantLog(t, s, "read part 1", "read 50+50 of v1", "read 100+40 of v1")
}

// Without ranges the last bytes are taken from one body of the whole, not from one for each segment.
func TestLastBytesWithoutRanges(t *testing.T) {
	s := serve(t, s3Like())
	data := content(250)
	s.put("k", data)
	s.edit = func(_ ReadRequest, rep *ReadReply) { rep.HasRange = false }
	wantBytes(t, get(t, open(t, s), &blob.GetOptions{Range: blob.Last(150)}).Data, data[100:])
	wantLog(t, s, "read last 100", "head", "read all of v1")
}

// slowReader brings a byte in a while.
type slowReader struct{ r io.Reader }

func (s slowReader) Read(p []byte) (int, error) {
	<-time.After(100 * time.Millisecond)
	return s.r.Read(p[:1])
}

// A service that ignores ranges, and does not say how long its body is, is given the time that the whole takes, not that of a range.
func TestBodyOfUnknownLengthHasTheTimeOfTheWhole(t *testing.T) {
	for _, length := range []int64{-1, 250} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, s3Like())
			data := content(250)
			s.put("k", data)
			s.edit = func(_ ReadRequest, rep *ReadReply) {
				rep.whole(data, length)
				rep.replace(func(r io.Reader) io.Reader { return slowReader{r} })
			}
			o := &blob.GetOptions{Range: blob.From(0)}
			st := open(t, s, policy(retry.Policy{Total: 10 * time.Second, Attempt: 5 * time.Second, MinRate: 1 << 30, Attempts: 1}))
			obj := get(t, st, o)
			wantBytes(t, obj.Data, data)
			if obj.Size != 250 {
				t.Errorf("%d bytes", obj.Size)
			}
		})
	}
}

// A first part of a few bytes does not make a request of each part, even if the service counts them.
func TestTinyPartsAreReadByRange(t *testing.T) {
	for part, want := range map[int]int{1: 6, 11: 6, 12: 42, 50: 10} { // an eighth of a segment is 12 bytes
		s := serve(t, s3Like())
		data := content(500)
		var parts []int
		for n := len(data); n > 0; n -= part {
			parts = append(parts, min(part, n))
		}
		s.put("k", data, parts...)
		wantBytes(t, get(t, open(t, s), nil).Data, data)
		if got := s.requests("read"); got != want {
			t.Errorf("parts of %d: %d requests, want %d", part, got, want)
		}
	}
}

// Of a body that is passed over for nothing no byte is asked for again.
func TestNothingWantedOfAWholeBody(t *testing.T) {
	s := serve(t, s3Like())
	data := content(250)
	s.put("k", data)
	s.edit = func(_ ReadRequest, rep *ReadReply) {
		rep.whole(data, 250)
		rep.replace(cutAfter(100))
	}
	if obj := get(t, open(t, s), &blob.GetOptions{Range: blob.From(250)}); len(obj.Data) != 0 || obj.Size != 250 {
		t.Errorf("%+v", obj)
	}
}

// A body that goes on beyond its announced length is no body of that length, on every way of reading.
func TestBodyThatGoesOnIsCorrupt(t *testing.T) {
	for _, r := range []blob.Range{{}, blob.From(10), blob.Span(0, 10), blob.Last(10)} {
		s := serve(t, s3Like())
		s.put("k", content(250), 100, 100, 50)
		s.edit = func(_ ReadRequest, rep *ReadReply) { oddities["goes on"](rep, nil) }
		wantKind(t, getError(open(t, s), &blob.GetOptions{Range: r}), blob.ErrCorrupt)
	}
}

// A reader may hesitate before it shows that a body goes on.
func TestBodyThatGoesOnAfterAPause(t *testing.T) {
	s := serve(t, s3Like())
	s.put("k", content(50))
	s.edit = func(_ ReadRequest, rep *ReadReply) {
		oddities["goes on"](rep, nil)
		rep.replace(func(r io.Reader) io.Reader { return &hesitantReader{r: r} })
	}
	wantKind(t, getError(open(t, s), nil), blob.ErrCorrupt)
}

// A service that sends less than it was asked for, and hides that there is more, is asked once for the whole.
func TestServiceThatSendsLess(t *testing.T) {
	s := serve(t, s3Like())
	data := content(500)
	s.put("k", data)
	s.edit = func(r ReadRequest, rep *ReadReply) {
		if r.N > 0 {
			rep.End = min(rep.End, rep.Off+5)
			rep.Total, rep.Length = -1, rep.End-rep.Off
			rep.replace(func(b io.Reader) io.Reader { return io.LimitReader(b, rep.Length) })
		}
	}
	st := open(t, s, concurrency(1), func(o *Options) { o.ReadRanges = true })
	wantBytes(t, get(t, st, nil).Data, data)
	wantLog(t, s, "read 0+100", "head", "read 5+100 of v1", "read all")
}
