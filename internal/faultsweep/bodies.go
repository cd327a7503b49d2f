package faultsweep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// Bodies shows that a body is sent again whole: after a refusal that came when it had been read, after one that came before, and after a
// reset (minio/minio-go #2253); that a kept connection which the server has dropped costs nothing but another one; and that a source which
// gives something else the second time never leads to a shorter object.
func Bodies(t *testing.T, target *Target) {
	t.Run("sent again whole", func(t *testing.T) { target.sentAgain(t) })
	t.Run("dropped idle connections", func(t *testing.T) { target.droppedIdle(t) })
	t.Run("source that lies", func(t *testing.T) { target.lyingSource(t) })
}

func (target *Target) sentAgain(t *testing.T) {
	busy, failed := target.Throttles[0], target.Failures[0]
	unread := busy
	unread.Unread, failed.Commit = true, true
	p := target.PartSize
	for how, f := range map[string]fakehttp.Fault{
		"throttled":         {Reply: &busy},
		"throttled at once": {Reply: &unread},
		"reset before":      {Before: fakehttp.Reset},
		"reset after":       {After: fakehttp.Reset},
		"failed but done":   {Reply: &failed},
	} {
		for _, size := range []int{100, 1 << 20, 3*p + 1} {
			for name, source := range sources {
				t.Run(fmt.Sprintf("%s/%d/%s", how, size, name), func(t *testing.T) {
					c := Config{}
					f.Match, f.Nth = target.match(Put, Part), 2
					if size != 3*p+1 {
						c.PartSize, f.Nth = 2<<20, 1
					}
					s := target.start(t, Setup{HashBodies: true})
					st := target.open(t, s, c)
					data := content(size)
					in := s.HTTP().Inject(f)
					if _, err := st.Set(t.Context(), theKey, source(data), nil); err != nil || in.Hits() != 1 {
						t.Fatalf("%v, %d hits\n%s", err, in.Hits(), s.HTTP().Log())
					}
					if obj, _ := s.Object(theKey); !bytes.Equal(obj.Data, data) {
						t.Errorf("%d bytes are stored that are not the source's %d", len(obj.Data), size)
					}
					target.judgeBodies(t, s.HTTP().Log(), data)
				})
			}
		}
	}
}

// judgeBodies checks that every body that was accepted is a part of data, or all of it.
func (target *Target) judgeBodies(t *testing.T, log fakehttp.Log, data []byte) {
	if !target.BodyHashes {
		return
	}
	var sums []string
	for _, part := range append(inParts(data, target.PartSize), data) {
		sum := sha256.Sum256(part)
		sums = append(sums, hex.EncodeToString(sum[:]))
	}
	for i, e := range log {
		k := target.Kind(&log[i].Request)
		if (k == Put || k == Part) && e.Status/100 == 2 && !slices.Contains(sums, e.BodySHA256) {
			t.Errorf("%v: a body of %d bytes that is not the source's", e, e.BodyLen)
		}
	}
}

func (target *Target) droppedIdle(t *testing.T) {
	s := target.start(t, Setup{})
	s.Put(theKey, [][]byte{content(10)}, nil)
	st := target.open(t, s, Config{})
	for range 50 {
		if err := target.everything(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		s.HTTP().CloseIdleConns()
	}
}

// everything uses each operation once; the object of theKey is there.
func (target *Target) everything(ctx context.Context, st blob.Blob) error {
	if _, err := st.Get(ctx, theKey, nil); err != nil {
		return err
	}
	if _, err := st.Stat(ctx, theKey); err != nil {
		return err
	}
	for _, size := range []int{10, 2 * target.PartSize} {
		if _, err := st.Set(ctx, "k2", blob.Bytes(content(size)), nil); err != nil {
			return err
		}
	}
	for _, err := range st.List(ctx, "", nil) {
		if err != nil {
			return err
		}
	}
	return st.Delete(ctx, "k2", nil)
}

// fickle is a source that is honest on the first read of each byte and then ends, claims to have read nothing, or changes.
type fickle struct {
	data  []byte
	how   string
	reads atomic.Int64
}

func (f *fickle) ReadAt(p []byte, off int64) (int, error) {
	if f.reads.Add(int64(len(p))) <= int64(len(f.data)) {
		return bytes.NewReader(f.data).ReadAt(p, off)
	}
	switch f.how {
	case "ends":
		return 0, io.EOF
	case "nothing":
		return 0, nil
	case "half":
		n, _ := bytes.NewReader(f.data).ReadAt(p[:len(p)/2], off)
		return n, nil
	case "more than asked":
		return len(p) + 1, nil
	}
	clear(p)
	return len(p), nil
}

// lyingSource: a source that gives other bytes, as many, from some attempt on cannot be told from one that always had them, unless
// the service is told a checksum.
func (target *Target) lyingSource(t *testing.T) {
	p := target.PartSize
	for _, how := range []string{"ends", "nothing", "half", "more than asked", "changes"} {
		for _, size := range []int{p - 1, 3 * p} {
			t.Run(fmt.Sprintf("%s/%d", how, size), func(t *testing.T) {
				s := target.start(t, Setup{})
				st := target.open(t, s, Config{})
				for _, k := range []Kind{Put, Part} {
					s.HTTP().Inject(fakehttp.Fault{Match: target.match(k), Reply: &target.Throttles[0]})
				}
				_, err := st.Set(t.Context(), theKey, blob.ReaderAt(&fickle{data: content(size), how: how}, int64(size)), nil)
				obj, there := s.Object(theKey)
				switch {
				case err == nil && (!there || len(obj.Data) != size || how != "changes"):
					t.Errorf("success, there: %t", there)
				case err != nil && there:
					t.Errorf("%v, and an object of %d bytes", err, len(obj.Data))
				}
				if se := (*blob.SourceError)(nil); err != nil && how != "changes" && !errors.As(err, &se) {
					t.Errorf("%v, want a SourceError", err)
				}
				if err := st.Close(t.Context()); err != nil || len(s.Uploads()) > 0 {
					t.Errorf("close: %v, uploads %v", err, s.Uploads())
				}
			})
		}
	}
}
