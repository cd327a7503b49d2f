package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func set(st *Store, src blob.Source, o *blob.SetOptions) (blob.Info, error) {
	return st.Set(context.Background(), "k", src, o)
}

// sources are the kinds of source that can be read again.
func sources(data []byte) map[string]blob.Source {
	return map[string]blob.Source{"bytes": blob.Bytes(data), "reader": blob.ReaderAt(bytes.NewReader(data), int64(len(data)))}
}

// Below the threshold one request; from there on equal parts, the last one shorter, none empty but for the lack of any
// (seaweedfs/seaweedfs #6728, apache/opendal #6252).
func TestRequestsOfSets(t *testing.T) {
	for _, c := range []struct {
		p    personality
		size int
		want []string
	}{
		{s3Like(), 0, []string{"put 0"}},
		{s3Like(), 99, []string{"put 99"}},
		{s3Like(), 100, []string{"begin 100", "part 1: 0+100 of 100", "commit 1"}},
		{s3Like(), 101, []string{"begin 101", "part 1: 0+100 of 101", "part 2: 100+1 of 101", "commit 2"}},
		{s3Like(), 200, []string{"begin 200", "part 1: 0+100 of 200", "part 2: 100+100 of 200", "commit 2"}},
		{s3Like(), 201, []string{"begin 201", "part 1: 0+100 of 201", "part 2: 100+100 of 201", "part 3: 200+1 of 201", "commit 3"}},
		{azureLike(), 99, []string{"put 99"}},
		{azureLike(), 150, []string{"part 1: 0+100 of 150", "part 2: 100+50 of 150", "commit 2"}},
		{gcsLike(), 150, []string{"begin 150", "part 1: 0+128 of 150", "commit 2: 128+22 of 150"}},
	} {
		data := content(c.size)
		for name, src := range sources(data) {
			s := serve(t, c.p)
			info, err := set(open(t, s), src, &blob.SetOptions{Metadata: map[string]string{"a": "b"}, ContentType: "text/x"})
			if err != nil {
				t.Fatal(err)
			}
			wantLog(t, s, c.want...)
			o := s.object()
			wantBytes(t, o.data, data)
			if info.Version != o.version || info.Size != int64(c.size) || info.Key != "k" {
				t.Errorf("%s: %+v", name, info)
			}
			user, stamp := blob.Unseal(o.meta.Metadata)
			if o.meta.ContentType != "text/x" || len(user) != 1 || user["a"] != "b" || stamp.Token == "" {
				t.Errorf("%s of %d: stored with %+v", c.p.traits.Store, c.size, o.meta)
			}
			if s.openUploads() != 0 {
				t.Error("an upload is left")
			}
		}
	}
}

// A threshold of none makes even an empty object one of parts: of one, for no service commits none.
func TestEmptyObjectInParts(t *testing.T) {
	s := serve(t, s3Like())
	if _, err := set(open(t, s, func(o *Options) { o.Threshold = 0 }), blob.Bytes(nil), nil); err != nil {
		t.Fatal(err)
	}
	wantLog(t, s, "begin 0", "part 1: 0+0 of 0", "commit 1")
}

// Parts grow so that there are not too many, and keep to what the service asks of their size.
func TestPartSize(t *testing.T) {
	s3 := Traits{MinPart: 5 << 20, MaxParts: 10_000}
	for _, c := range []struct {
		t                Traits
		size, want, part int64
	}{
		{Traits{}, 1 << 40, 100, 100},
		{Traits{}, 0, 100, 100},
		{s3, 100, 100, 5 << 20},
		{s3, 100, 8 << 20, 8 << 20},
		{s3, 10_000 * (8 << 20), 8 << 20, 8 << 20},
		{s3, 10_000*(8<<20) + 1, 8 << 20, 8<<20 + 1},
		{s3, 5 << 40, 8 << 20, 549_755_814},
		{Traits{PartMultiple: 256}, 1 << 20, 100, 256},
		{Traits{PartMultiple: 256}, 1 << 20, 256, 256},
		{Traits{PartMultiple: 256, MaxParts: 3}, 1000, 100, 512},
	} {
		got := c.t.partSize(c.size, c.want)
		if got != c.part {
			t.Errorf("%+v: parts of %d for %d bytes, want %d", c.t, got, c.size, c.part)
		}
		if m := int64(c.t.MaxParts); m > 0 && ceilDiv(c.size, got) > m {
			t.Errorf("%+v: more than %d parts", c.t, m)
		}
	}
	for size, want := range map[int]int{500: 5, 501: 5, 999: 5, 10_007: 5} {
		p := s3Like()
		p.traits.MaxParts = 5
		s := serve(t, p)
		if _, err := set(open(t, s), blob.Bytes(content(size)), nil); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, s.object().data, content(size))
		if got := s.requests("part"); got != want {
			t.Errorf("%d bytes: %d parts, want %d", size, got, want)
		}
	}
}

// The barrier before the commit: nothing but all parts, each accepted, of all bytes together.
func TestBarrier(t *testing.T) {
	part := func(n int, size int64, tag string) Part { return Part{Number: n, Size: size, Tag: tag} }
	good := []Part{part(1, 100, "a"), part(2, 100, "b"), part(3, 50, "c")}
	for what, c := range map[string]struct {
		parts []Part
		ok    bool
	}{
		"all":            {good, true},
		"one missing":    {good[:2], false},
		"not sent":       {[]Part{good[0], {}, good[2]}, false},
		"not accepted":   {[]Part{good[0], part(2, 100, ""), good[2]}, false},
		"wrong order":    {[]Part{good[1], good[0], good[2]}, false},
		"twice the same": {[]Part{good[0], part(2, 150, "b"), good[1]}, false},
		"too many bytes": {[]Part{good[0], good[1], part(3, 51, "c")}, false},
		"too few bytes":  {[]Part{good[0], good[1], part(3, 49, "c")}, false},
		"none":           {nil, false},
	} {
		err := barrier(c.parts, 250)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for name, p := range map[string]personality{"s3": s3Like(), "azure": azureLike()} {
		s := serve(t, p)
		old := s.put("k", []byte("old"))
		s.tag = func(p PartRequest) string { return map[bool]string{true: "tag1"}[p.Number == 1] }
		st := open(t, s)
		_, err := set(st, blob.Bytes(content(250)), nil)
		wantKind(t, err, blob.ErrCorrupt)
		wantOutcome(t, err, blob.NotApplied)
		if s.requests("commit") != 0 || s.object().version != old {
			t.Error(name, "committed")
		}
	}
}

// Parts are sent in parallel within bounds, on a serial service one after the other.
func TestPartsInFlight(t *testing.T) {
	for _, c := range []struct {
		p          personality
		allow, get int
	}{{s3Like(), 1, 1}, {s3Like(), 3, 3}, {s3Like(), 99, 10}, {azureLike(), 4, 4}, {gcsLike(), 4, 1}} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, c.p)
			s.before = func(context.Context, request) error {
				<-time.After(time.Second)
				return nil
			}
			if _, err := set(open(t, s, concurrency(c.allow)), blob.Bytes(content(1000)), nil); err != nil {
				t.Fatal(err)
			}
			if got := s.takePeak(); got != c.get {
				t.Errorf("%s: %d requests in flight, want %d of %d", c.p.traits.Store, got, c.get, c.allow)
			}
		})
	}
}

// Conditions mean the same in one request and in parts, on every kind of service.
func TestConditionsOfSets(t *testing.T) {
	for name, p := range personalities() {
		for _, size := range []int{10, 250} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				s := serve(t, p)
				st := open(t, s)
				try := func(c blob.Condition) error {
					_, err := set(st, blob.Bytes(content(size)), &blob.SetOptions{If: c})
					return err
				}
				refused := func(c blob.Condition, kind error) {
					t.Helper()
					before := s.object()
					err := try(c)
					wantKind(t, err, kind)
					wantOutcome(t, err, blob.NotApplied)
					if s.object() != before {
						t.Error("applied all the same")
					}
				}
				refused(blob.IfVersion("v0"), blob.ErrPrecondition)
				if err := try(blob.IfAbsent()); err != nil {
					t.Fatal(err)
				}
				refused(blob.IfAbsent(), blob.ErrExists)
				refused(blob.IfVersion("v0"), blob.ErrPrecondition)
				if err := try(blob.IfVersion(s.object().version)); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	s := serve(t, s3Like())
	st := open(t, s)
	_, _ = set(st, blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()})
	_, _ = set(st, blob.Bytes(content(100)), &blob.SetOptions{If: blob.IfVersion("v1")})
	wantLog(t, s, "put 0 IfAbsent()", "begin 100", "part 1: 0+100 of 100", `commit 1 IfVersion("v1")`)
}

// badSource is a source of size bytes that fails at byte at.
type badSource struct {
	at  int64
	err error // nil: a panic
}

func (b badSource) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, content(int(b.at))[min(off, b.at):])
	if n < len(p) && b.err == nil {
		panic("the source is broken")
	}
	if n < len(p) {
		return n, b.err
	}
	return n, nil
}

// A failing source fails the Set: nothing is retried, committed or visible (aws/aws-sdk-go #780).
func TestFailingSource(t *testing.T) {
	broken := errors.New("broken")
	for name, bad := range map[string]badSource{
		"error": {60, broken}, "in part 3": {230, broken}, "panic": {130, nil}, "too short": {249, io.EOF}, "cut": {120, io.ErrUnexpectedEOF},
	} {
		for _, p := range personalities() {
			for _, size := range []int64{bad.at + 1, 250} {
				s := serve(t, p)
				old := s.put("k", []byte("old"))
				_, err := set(open(t, s, func(o *Options) {
					if size != 250 {
						o.Threshold = 1 << 20
					}
				}), blob.ReaderAt(bad, size), nil)
				var src *blob.SourceError
				if !errors.As(err, &src) || errors.Is(bad.err, broken) && !errors.Is(err, broken) {
					t.Errorf("%s: %v", name, err)
				}
				if errors.Is(bad.err, io.EOF) {
					wantKind(t, err, blob.ErrSourceLength)
				}
				wantOutcome(t, err, blob.NotApplied)
				if s.object().version != old || s.requests("commit") > 0 {
					t.Errorf("%s: something was committed", name)
				}
				if n := s.requests("part") + s.requests("put"); n > 3 {
					t.Errorf("%s: %d requests", name, n)
				}
			}
		}
	}
}

// What a Set may repeat after a lost reply, and what it must not.
func TestLostRepliesOfSets(t *testing.T) {
	for _, c := range []struct {
		verb    string
		size    int
		o       blob.SetOptions
		outcome blob.Outcome // of an error
		works   bool
		n       int // requests of that verb
	}{
		{"put", 10, blob.SetOptions{}, 0, true, 2},
		{"put", 10, blob.SetOptions{AtMostOnce: true}, blob.Unknown, false, 1},
		{"put", 10, blob.SetOptions{If: blob.IfAbsent()}, blob.Unknown, false, 1},
		{"begin", 250, blob.SetOptions{AtMostOnce: true}, 0, true, 2},
		{"part", 250, blob.SetOptions{AtMostOnce: true}, 0, true, 4},
		{"part", 250, blob.SetOptions{If: blob.IfAbsent()}, 0, true, 4},
		{"commit", 250, blob.SetOptions{AtMostOnce: true}, blob.Unknown, false, 1},
		{"commit", 250, blob.SetOptions{If: blob.IfAbsent()}, blob.Unknown, false, 1},
		{"commit", 250, blob.SetOptions{}, 0, true, 3}, // the second finds no upload, nobody can tell why, and the whole is sent again
	} {
		s := serve(t, s3Like())
		s.after = func(_ context.Context, r request) error {
			if r.verb == c.verb && r.nth == 1 {
				return lost()
			}
			return nil
		}
		_, err := set(open(t, s), blob.Bytes(content(c.size)), &c.o)
		if (err == nil) != c.works {
			t.Errorf("%s, %+v: %v", c.verb, c.o, err)
		}
		if err != nil {
			wantOutcome(t, err, c.outcome)
		}
		if got := s.requests(c.verb); got != c.n {
			t.Errorf("%s, %+v: %d requests", c.verb, c.o, got)
		}
		wantBytes(t, s.object().data, content(c.size))
		if s.requests("abort") > 0 {
			t.Errorf("%s, %+v: aborted", c.verb, c.o)
		}
	}
}

// Begin and parts cannot make anything visible: their failure is NotApplied, whatever their own outcome.
func TestFailuresBeforeTheCommitAreNotApplied(t *testing.T) {
	for _, verb := range []string{"begin", "part"} {
		s := serve(t, s3Like())
		s.after = func(_ context.Context, r request) error {
			if r.verb == verb {
				return lost()
			}
			return nil
		}
		_, err := set(open(t, s), blob.Bytes(content(250)), &blob.SetOptions{If: blob.IfAbsent()})
		if e := wantKind(t, err, blob.ErrUnavailable); e.Attempts != 3 || !e.Exhausted {
			t.Errorf("%#v", e)
		}
		wantOutcome(t, err, blob.NotApplied)
	}
}

// What the service or the engine cannot do is refused before any request.
func TestRefusedSets(t *testing.T) {
	p := s3Like()
	p.traits.MaxObject = 300
	s := serve(t, p)
	st := open(t, s)
	for _, c := range []struct {
		src  blob.Source
		o    blob.SetOptions
		kind error
	}{
		{blob.Bytes(make([]byte, 301)), blob.SetOptions{}, blob.ErrTooLarge},
		{blob.ReaderAt(badSource{}, 1<<50), blob.SetOptions{}, blob.ErrTooLarge},
		{blob.Stream(strings.NewReader("a"), 1), blob.SetOptions{}, blob.ErrUnsupported},
		{blob.Bytes(nil), blob.SetOptions{SHA256: true}, blob.ErrUnsupported},
		{blob.Source{}, blob.SetOptions{}, blob.ErrInvalidOption},
	} {
		_, err := set(st, c.src, &c.o)
		wantKind(t, err, c.kind)
		wantOutcome(t, err, blob.NotApplied)
	}
	wantLog(t, s)
	if _, err := set(st, blob.Bytes(make([]byte, 300)), nil); err != nil {
		t.Error(err)
	}
}
