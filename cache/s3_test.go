package cache_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/memblob"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// overS3 returns a cache in front of the bucket "b" of a fake server, and the server.
func overS3(t *testing.T, so fakes3.Options, o *cache.Options) (*cache.Cache, *fakes3.Server) {
	t.Helper()
	so.Buckets = []string{"b"}
	srv, err := fakes3.Start(so)
	if err != nil {
		t.Fatal(err)
	}
	cred := fakes3.DefaultCredentials()
	store, err := s3blob.New(t.Context(), "b", &s3blob.Options{
		Endpoint: srv.URL(), Region: srv.Region(), PathStyle: true, AccessKey: cred.AccessKey, SecretKey: cred.SecretKey, Conditions: s3blob.TrustYes,
		Retry: retry.Policy{FirstDelay: time.Microsecond, MaxDelay: time.Millisecond, Attempts: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(t.Context(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close) // after what the test defers
	return c, srv
}

func closeCache(t *testing.T, c *cache.Cache) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// wantRead wants that content; "absent" stands for a key that is not found.
func wantRead(t *testing.T, b blob.Blob, key, want string) {
	t.Helper()
	o, err := b.Get(t.Context(), key, nil)
	if errors.Is(err, blob.ErrNotFound) {
		o.Data, err = []byte("absent"), nil
	}
	if err != nil || string(o.Data) != want {
		t.Errorf("Get %s: %.20q, %v, want %.20q", key, o.Data, err, want)
	}
}

func sent(srv *fakes3.Server, op string) (n int) {
	for _, e := range srv.Log() {
		if e.Op == op {
			n++
		}
	}
	return n
}

// A key that was looked for before it was written is there as soon as it is, whoever writes it; and whatever else the store had said
// before is no absence. The first half is awslabs/mountpoint-s3 #831.
func TestAbsenceIsAskedForEachTime(t *testing.T) {
	for name, o := range map[string]*cache.Options{"memory": nil, "disk": {Memory: -1, Dir: t.TempDir(), Disk: 8 << 20}} {
		t.Run(name, func(t *testing.T) {
			c, srv := overS3(t, fakes3.Options{}, o)
			defer closeCache(t, c)
			wantRead(t, c, "ours", "absent")
			if _, err := c.Set(t.Context(), "ours", blob.Bytes([]byte("v1")), nil); err != nil {
				t.Fatal(err)
			}
			wantRead(t, c, "ours", "v1")

			wantRead(t, c, "theirs", "absent")
			if _, err := c.Stat(t.Context(), "theirs"); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("Stat: %v", err)
			}
			srv.PutObject("b", "theirs", [][]byte{[]byte("v1")}, nil)
			wantRead(t, c, "theirs", "v1")

			srv.PutObject("b", "there", [][]byte{[]byte("v1")}, nil)
			for status, kind := range map[int]error{403: blob.ErrPermission, 500: blob.ErrUnavailable, 503: blob.ErrThrottled} {
				in := srv.Inject(fakes3.Fault{Key: "there", Times: -1, Reply: &fakes3.Reply{Status: status}})
				for range 2 {
					if _, err := c.Get(t.Context(), "there", nil); !errors.Is(err, kind) && !errors.Is(err, blob.ErrUnavailable) {
						t.Errorf("Get on %d: %v", status, err)
					}
				}
				in.Remove()
				wantRead(t, c, "there", "v1")
				if err := c.Delete(t.Context(), "there", nil); err != nil {
					t.Fatal(err)
				}
				wantRead(t, c, "there", "absent")
				srv.PutObject("b", "there", [][]byte{[]byte("v1")}, nil)
			}
		})
	}
}

// The outcomes of a Set of v2 where v1 is cached. Reads say what the store has, from the first on, and ask it for that. The bytes that a
// refused write would have stored are s3fs-fuse/s3fs-fuse #2127.
func TestReadsAfterASetAreOfTheStoreWhateverItsOutcome(t *testing.T) {
	for name, w := range map[string]struct {
		fault fakes3.Fault
		kind  error
		then  string
	}{
		"refused":                 {fakes3.Fault{Reply: &fakes3.Reply{Status: 403}}, blob.ErrPermission, "v1"},
		"failed":                  {fakes3.Fault{Reply: &fakes3.Reply{Status: 500}}, blob.ErrUnavailable, "v1"},
		"failed after the commit": {fakes3.Fault{Reply: &fakes3.Reply{Status: 500, Commit: true}}, blob.ErrUnavailable, "v2"},
		"page after the commit":   {fakes3.Fault{Reply: &fakes3.Reply{Status: 502, Body: fakes3.HTMLPage, Commit: true}}, blob.ErrUnavailable, "v2"},
		"no reply":                {fakes3.Fault{Before: fakes3.Reset}, blob.ErrUnavailable, "v1"},
		"reply lost":              {fakes3.Fault{After: fakes3.Close}, blob.ErrUnavailable, "v2"},
		"condition failed":        {fakes3.Fault{Reply: &fakes3.Reply{Status: 412}}, blob.ErrPrecondition, "v1"},
		"conflict":                {fakes3.Fault{Reply: &fakes3.Reply{Status: 409, Code: "ConditionalRequestConflict"}}, blob.ErrConflict, "v1"},
	} {
		for tier, o := range map[string]cache.Options{"memory": {}, "disk": {Memory: -1, Disk: 8 << 20}} {
			t.Run(name+"/"+tier, func(t *testing.T) {
				if o.Disk > 0 {
					o.Dir = t.TempDir()
				}
				c, srv := overS3(t, fakes3.Options{}, &o)
				defer closeCache(t, c)
				v1, err := c.Set(t.Context(), "k", blob.Bytes([]byte("v1")), nil)
				if err != nil {
					t.Fatal(err)
				}
				wantRead(t, c, "k", "v1")
				if o.Disk > 0 {
					tiertest.WaitFor(t, "the entry on disk", func() bool { return c.Stats().Disk.Fills > 0 })
				}
				wantRead(t, c, "k", "v1")
				w.fault.Op, w.fault.Times = "PutObject", -1
				in := srv.Inject(w.fault)
				// The store may find out that a write of unknown outcome was applied after all.
				_, err = c.Set(t.Context(), "k", blob.Bytes([]byte("v2")), &blob.SetOptions{If: blob.IfVersion(v1.Version)})
				in.Remove()
				if err != nil && !errors.Is(err, w.kind) {
					t.Errorf("Set: %v, want %v", err, w.kind)
				}
				if err == nil && w.then != "v2" {
					t.Error("Set claims what did not happen")
				}
				before := sent(srv, "GetObject")
				wantRead(t, c, "k", w.then)
				if n := sent(srv, "GetObject") - before; err != nil && n != 1 {
					t.Errorf("the first read sent %d requests", n)
				}
				wantRead(t, c, "k", w.then)
			})
		}
	}
}

// Someone else has written the key, as the service's own 412 tells: the entry goes, and theirs is read.
func TestRefusedConditionOnS3DropsTheEntry(t *testing.T) {
	c, srv := overS3(t, fakes3.Options{}, nil)
	defer closeCache(t, c)
	v1, err := c.Set(t.Context(), "k", blob.Bytes([]byte("v1")), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantRead(t, c, "k", "v1")
	srv.PutObject("b", "k", [][]byte{[]byte("theirs")}, nil)
	wantRead(t, c, "k", "v1") // by default keys are written once
	if _, err := c.Set(t.Context(), "k", blob.Bytes([]byte("v2")), &blob.SetOptions{If: blob.IfVersion(v1.Version)}); !errors.Is(err, blob.ErrPrecondition) {
		t.Fatalf("Set: %v", err)
	}
	wantRead(t, c, "k", "theirs")
}

// Bodies that are cut, and resumed by replies that begin elsewhere, are longer or shorter than asked for, or claim to be: the cache has the object's bytes
// in their places or none, in this process and the next. Entries past the end of the object are slatedb/slatedb #1729.
func TestCutAndResumedBodiesLeaveOnlyWhatFits(t *testing.T) {
	const size, block = 10 << 20, 4 << 20
	content := tiertest.Bytes(1, size)
	reads := []blob.Range{blob.Span(5<<20, 100), {}, blob.Span(100, 100), blob.Last(100), blob.Span(3<<20, 2<<20), blob.From(7 << 20)}
	for name, s := range map[string]fakes3.Shape{
		"superset":          {IgnoreRange: true},
		"begins early":      {ShiftRange: -1000},
		"begins late":       {ShiftRange: 1000},
		"says early":        {ContentRange: fakes3.RangeEarly},
		"says late":         {ContentRange: fakes3.RangeLate},
		"says the whole":    {ContentRange: fakes3.RangeWhole},
		"says nothing":      {ContentRange: fakes3.RangeNone},
		"short":             {Short: 1000},
		"short at the end":  {ShortLast: 1000},
		"announces less":    {LengthOff: -1},
		"announces nothing": {Length: fakes3.CloseDelimited},
	} {
		t.Run(name, func(t *testing.T) {
			o := cache.Options{Block: block, Dir: t.TempDir(), Disk: 256 << 20}
			c, srv := overS3(t, fakes3.Options{FastETag: true}, &o)
			srv.PutObject("b", "k", [][]byte{content}, nil)
			// The first reply is cut, and those that resume it are out of shape.
			srv.Inject(fakes3.Fault{Op: "GetObject", Times: 1, Cut: &fakes3.Cut{At: 1 << 20}})
			srv.Inject(fakes3.Fault{Op: "GetObject", Nth: 2, Times: 4, Shape: s})
			for range 2 {
				for _, r := range reads {
					wantRightOrError(t, c, r, content, false)
				}
			}
			for range 2 {
				for _, r := range reads {
					wantRightOrError(t, c, r, content, true) // the faults are over
				}
			}
			closeCache(t, c)
			tiertest.WantBlocks(t, o.Dir, size, block)
			o.Memory = -1
			next, err := cache.New(t.Context(), blobtest.NewFaults(memblob.New(nil), blobtest.Fault{Do: blobtest.FailBefore}), &o) // a store that never answers
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range reads {
				wantRightOrError(t, next, r, content, false)
			}
			if s := next.Stats(); s.DiskHits == 0 || s.Disk.Damaged != 0 {
				t.Errorf("%+v", s)
			}
			closeCache(t, next)
		})
	}
}

// wantRightOrError reads r: an error is fine unless it must be right.
func wantRightOrError(t *testing.T, b blob.Blob, r blob.Range, content []byte, must bool) {
	t.Helper()
	o, err := b.Get(t.Context(), "k", &blob.GetOptions{Range: r})
	if err != nil {
		if must {
			t.Errorf("Get %v: %v", r, err)
		}
		return
	}
	off, n, _ := r.Resolve(int64(len(content)))
	if o.Size != int64(len(content)) || o.Offset != off || !bytes.Equal(o.Data, content[off:off+n]) {
		t.Errorf("Get %v: %d bytes from %d of %d are not those of the object", r, len(o.Data), o.Offset, o.Size)
	}
}
