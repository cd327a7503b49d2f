package transfer

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// summing are the kinds of service that compare sums; the fake refuses a write whose sum is missing or is not that of its bytes.
func summing() map[string]personality {
	s3, azure := s3Like(), azureLike()
	s3.traits.Sums, azure.traits.Sums = true, true
	return map[string]personality{"s3": s3, "azure": azure, "gcs": gcsLike()}
}

func TestWritesCarryTheSumOfTheWhole(t *testing.T) {
	for name, p := range summing() {
		for _, size := range []int{0, 10, 99, 100, 128, 300} {
			for kind, src := range sources(content(size)) {
				s := serve(t, p)
				if _, err := set(open(t, s), src, nil); err != nil {
					t.Errorf("%s, %d %s: %v", name, size, kind, err)
					continue
				}
				wantBytes(t, s.object().data, content(size))
			}
		}
	}
}

// changingSource has other bytes from the nth read of its byte at on.
type changingSource struct {
	at, nth int64
	seen    *atomic.Int64
	read    *atomic.Int64 // bytes, in all
}

func (c changingSource) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, content(300)[off:])
	c.read.Add(int64(n))
	if off <= c.at && c.at < off+int64(n) && c.seen.Add(1) >= c.nth {
		p[c.at-off] ^= 1
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func changing(at, nth int64) changingSource {
	return changingSource{at, nth, new(atomic.Int64), new(atomic.Int64)}
}

// A source that changes after its sum was taken, while it is sent or between two attempts, is refused by the service and never stored.
func TestSourceThatChangesIsRefused(t *testing.T) {
	for name, p := range summing() {
		for _, threshold := range []int64{100, 1000} {
			for _, nth := range []int64{2, 3} { // the first is for the sum
				s := serve(t, p)
				src := changing(130, nth)
				s.before = func(_ context.Context, r request) error { // the first request that brings the byte is lost
					if (r.verb == "put" || r.part == 2) && nth == 3 && src.seen.Load() <= 2 {
						return lost()
					}
					return nil
				}
				if name != "gcs" && threshold == 100 {
					continue // these are summed at the end: then the sum is that of the bytes as they are now
				}
				_, err := set(open(t, s, func(o *Options) { o.Threshold = threshold }), blob.ReaderAt(src, 300), nil)
				wantKind(t, err, blob.ErrCorrupt)
				if s.object() != nil {
					t.Errorf("%s: stored", name)
				}
			}
		}
	}
}

// Parts that have changed since they were sent do not have the sum that is taken before the commit.
func TestSourceThatChangesBehindItsParts(t *testing.T) {
	s := serve(t, summing()["s3"])
	_, err := set(open(t, s, concurrency(1)), blob.ReaderAt(changing(130, 2), 300), nil)
	wantKind(t, err, blob.ErrCorrupt)
	wantOutcome(t, err, blob.NotApplied)
}

// Each byte is read once for the sum, and once for each request that brings it.
func TestSourceIsReadOnceForItsSum(t *testing.T) {
	for threshold, want := range map[int64]int64{1000: 300 * 3, 100: 300*2 + 128} {
		s := serve(t, gcsLike())
		s.keep = func(_ request, n int) int { return n }
		s.before = func(_ context.Context, r request) error {
			if r.nth == 1 && (r.verb == "put" || r.part == 1) {
				return lost()
			}
			return nil
		}
		src := changing(-1, 0)
		if _, err := set(open(t, s, func(o *Options) { o.Threshold = threshold }), blob.ReaderAt(src, 300), nil); err != nil {
			t.Fatal(err)
		}
		if got := src.read.Load(); got != want {
			t.Errorf("%d bytes read, want %d", got, want)
		}
	}
}

type cancellingSource struct {
	cancel func()
	read   *atomic.Int64
}

func (c cancellingSource) ReadAt(p []byte, _ int64) (int, error) {
	c.cancel()
	c.read.Add(int64(len(p)))
	return len(p), nil
}

// A cancel ends the summing of a large source soon, and no request is made.
func TestCancelledSum(t *testing.T) {
	for _, threshold := range []int64{1, 1 << 40} {
		s := serve(t, gcsLike())
		ctx, cancel := contextOf(t)
		src := cancellingSource{cancel, new(atomic.Int64)}
		st := open(t, s, func(o *Options) { o.Threshold, o.PartSize = threshold, 3*sumStep })
		_, err := st.Set(ctx, "k", blob.ReaderAt(src, 4*sumStep), nil)
		wantKind(t, err, context.Canceled)
		wantOutcome(t, err, blob.NotApplied)
		if got := src.read.Load(); got > sumStep || s.requests("put") > 0 || s.requests("part") > 0 {
			t.Errorf("%d bytes read, requests %q", got, s.takeLog())
		}
	}
}

// Get, GetRanges of the whole, and Stat tell the sum that the service states, and none where it states none.
func TestStatedSumIsTold(t *testing.T) {
	for name, p := range personalities() {
		s := serve(t, p)
		s.put("k", content(250))
		st := open(t, s)
		info, err := st.Stat(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		part := get(t, st, &blob.GetOptions{Range: blob.Span(10, 5)})
		for _, i := range []blob.Info{info, get(t, st, nil).Info, part.Info} {
			want := uint32(0)
			if p.traits.Sums {
				want = crc32.Checksum(content(250), castagnoli)
			}
			if i.HasCRC32C != p.traits.Sums || i.CRC32C != want {
				t.Errorf("%s: %+v", name, i)
			}
		}
	}
}

// Bytes that do not have the stated sum are read once more, since they may have been damaged on the way; then the read is ErrCorrupt.
func TestDamagedBytes(t *testing.T) {
	good := crc32.Checksum(content(250), castagnoli)
	for _, c := range []struct {
		what   string
		size   int
		times  int32 // how often the byte is damaged
		o      blob.GetOptions
		works  bool
		rounds int
	}{
		{"never", 250, 0, blob.GetOptions{}, true, 1},
		{"once", 250, 1, blob.GetOptions{}, true, 2},
		{"always", 250, 99, blob.GetOptions{}, false, 2},
		{"once, in a condition", 250, 1, blob.GetOptions{If: blob.IfVersion("v1")}, true, 2},
		{"once, with a manifest", 250, 1, blob.GetOptions{Want: blob.Want{CRC32C: good, HasCRC32C: true}}, true, 2},
		{"always, with a manifest", 250, 99, blob.GetOptions{Want: blob.Want{CRC32C: good, HasCRC32C: true}}, false, 2},
		{"never, with another manifest", 250, 0, blob.GetOptions{Want: blob.Want{CRC32C: good + 1, HasCRC32C: true}}, false, 1},
		{"always, in a range", 250, 99, blob.GetOptions{Range: blob.Span(0, 249)}, true, 1}, // no sum is of these bytes
		{"always, in a range that is the whole", 250, 99, blob.GetOptions{Range: blob.Span(0, 1000)}, false, 2},
		{"once, with the size known", 250, 1, blob.GetOptions{Want: blob.Want{Size: 250, HasSize: true}}, true, 2},
	} {
		s := serve(t, gcsLike())
		s.put("k", content(c.size))
		var n atomic.Int32
		s.edit = func(r ReadRequest, rep *ReadReply) {
			if r.Off == 100 && n.Add(1) <= c.times {
				rep.replace(func(r io.Reader) io.Reader {
					b, _ := io.ReadAll(r)
					b[0] ^= 1
					return bytes.NewReader(b)
				})
			}
		}
		obj, err := open(t, s).Get(t.Context(), "k", &c.o)
		if (err == nil) != c.works {
			t.Errorf("%s: %v", c.what, err)
		}
		if err != nil {
			if e := wantKind(t, err, blob.ErrCorrupt); !e.Exhausted || obj.Data != nil {
				t.Errorf("%s: %#v", c.what, e)
			}
		}
		if got := s.requests("read"); got != 3*c.rounds {
			t.Errorf("%s: %d requests, want %d rounds of 3", c.what, got, c.rounds)
		}
	}
}

// A sum belongs to its version: two of them in one read are two versions, also where the service tells neither versions nor times.
func TestTwoSumsAreTwoVersions(t *testing.T) {
	s := serve(t, gcsLike())
	s.noVersions = true
	old, now := bytes.Repeat([]byte{1}, 250), bytes.Repeat([]byte{2}, 250)
	s.put("k", old)
	first := true
	s.edit = func(r ReadRequest, rep *ReadReply) {
		rep.ModTime = time.Time{}
		if first && r.Off == 0 {
			first = false
			s.put("k", now)
		}
	}
	wantBytes(t, get(t, open(t, s, concurrency(1)), nil).Data, now)
	wantLog(t, s, "read 0+100", "read 100+100", "read 0+100", "read 100+100", "read 200+50")
}

// A sum that not every reply states counts if the reply that does is of the same version, and no other: without versions it is nobody's.
func TestSumOfALaterReply(t *testing.T) {
	for _, versions := range []bool{true, false} {
		s := serve(t, gcsLike())
		s.noVersions = !versions
		s.put("k", content(250))
		s.edit = func(r ReadRequest, rep *ReadReply) {
			if rep.HasCRC32C = r.Off == 200; rep.HasCRC32C {
				rep.CRC32C++
			}
		}
		obj, err := open(t, s).Get(t.Context(), "k", nil)
		if versions {
			wantKind(t, err, blob.ErrCorrupt)
		} else if err != nil || obj.HasCRC32C {
			t.Error(err, obj.Info)
		}
	}
}

// The sum of bytes in memory is taken where they lie.
func TestBytesAreSummedInPlace(t *testing.T) {
	data := content(1 << 20)
	for kind, src := range sources(data) {
		w := &write{s: &Store{traits: Traits{Sums: true}}, src: src}
		sum, err := w.wholeSum(t.Context())
		if err != nil || !sum.Has || sum.CRC32C != crc32.Checksum(data, castagnoli) {
			t.Errorf("%s: %+v, %v", kind, sum, err)
		}
		most := map[string]float64{"bytes": 4, "reader": 10}[kind] // and none of them of the size of the data
		if n := testing.AllocsPerRun(10, func() { _, _ = w.wholeSum(context.Background()) }); n > most {
			t.Errorf("%s: %v allocations", kind, n)
		}
	}
	if fmt.Sprint((&running{}).of(Traits{Sums: true}, 5)) != fmt.Sprint(Sum{}) {
		t.Error("the sum of less counts for the whole")
	}
}
