package wholeblob_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/fileblob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/memblob"
	"github.com/wholeblob/wholeblob/s3blob"
)

// Five stores side by side are given the same random operations. They return the same results, the same kinds of error with the same outcomes, and
// list in the same order. Versions and times are each store's own: conditions name them by the write that made them.
func TestStoresDoNotDiffer(t *testing.T) {
	stores := fiveStores(t)
	var run atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		d := &differ{keys: []string{""}, sums: []uint32{0}, sizes: []int{0}}
		d.pool = rapid.SliceOfNDistinct(rapid.SampledFrom(differKeys), 2, 5, rapid.ID).Draw(t, "keys")
		for _, s := range stores {
			view, err := blob.Prefixed(s, fmt.Sprintf("run %d/", run.Add(1)))
			if err != nil {
				t.Fatal(err)
			}
			d.sides = append(d.sides, &side{Blob: view, name: s.Capabilities().Store, versions: make(map[int]string)})
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": d.set, "get": d.get, "getRanges": d.getRanges, "stat": d.stat, "list": d.list,
			"delete": d.remove, "deleteAll": d.removeAll, "deletePrefix": d.removePrefix, "restore": d.restore, "copy": d.copy,
			"refused": d.refused, "cancelled": d.cancelled,
		})
		d.everything(t)
	})
}

// The step is far below what services allow, so that small objects go in several parts; GCS has no chunks below 256 KiB.
const step = 1 << 10

// limit is the MaxGet of all stores: less than the largest objects, which can be read in ranges only.
const limit = 350 << 10

func fiveStores(t *testing.T) []blob.Blob {
	t.Helper()
	file, err := fileblob.New(t.Context(), t.TempDir(), &fileblob.Options{Create: true, NoSync: true, Restore: true, MaxGet: limit})
	if err != nil {
		t.Fatal(err)
	}
	s3 := fakes3.New(fakes3.Options{Buckets: []string{"b"}, Versioned: true, MinPartSize: -1, NoLog: true})
	t.Cleanup(s3.Close)
	key := fakes3.DefaultCredentials()
	onS3, err := s3blob.New(t.Context(), "b", &s3blob.Options{
		Endpoint: s3.URL(), PathStyle: true, AccessKey: key.AccessKey, SecretKey: key.SecretKey, Conditions: s3blob.TrustYes, Restore: true,
		PartSize: step, Segment: step, MaxGet: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	gcs := fakegcs.New(fakegcs.Options{Buckets: []string{"b"}, Anonymous: true, NoLog: true})
	t.Cleanup(gcs.Close)
	onGCS, err := gcsblob.New(t.Context(), "b", &gcsblob.Options{
		Endpoint: gcs.URL(), Anonymous: true, Conditions: gcsblob.TrustYes, Restore: gcsblob.RestoreSoftDelete,
		PartSize: 256 << 10, Threshold: step, Segment: step, MaxGet: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	az := fakeaz.New(fakeaz.Options{Containers: []string{"box"}, NoLog: true})
	t.Cleanup(az.Close)
	az.Set(func(k *fakeaz.Knobs) { k.Retention = 24 * time.Hour })
	onAzure, err := azblob.New(t.Context(), "box", &azblob.Options{
		Endpoint: az.Endpoint(), AccountKey: fakeaz.DefaultKey(), Conditions: azblob.TrustYes, Restore: azblob.KeepsDeleted,
		PartSize: step, Segment: step, MaxGet: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	stores := []blob.Blob{memblob.New(&memblob.Options{Restore: true, MaxGet: limit}), file, onS3, onGCS, onAzure}
	t.Cleanup(func() {
		for _, s := range stores {
			if err := s.Close(context.Background()); err != nil { // the context of the test has ended by now
				t.Errorf("%s: %v", s.Capabilities().Store, err)
			}
		}
	})
	return stores
}

// side is one store. Its versions are by the number of the write that made them.
type side struct {
	blob.Blob
	name     string
	versions map[int]string
}

type differ struct {
	sides  []*side
	writes int
	pool   []string // the keys of this run: few, so that the same ones meet
	keys   []string // of each write, from 1
	sums   []uint32 // CRC32C of each
	sizes  []int
	copied bool // something, so that a content is no longer one object's
}

var differKeys = []string{"a", "a/", "a/b", "a/b/c", "a-b", "b", "A", "é", "e\u0301", "a b", "%2F", "~", "名前/１", "😀", "～"}

// oddKeys can be asked for and deleted, though no Set takes them and some stores cannot address them.
var oddKeys = []string{"a/.", "a/..", "..", "x\\y", "a\x01", "\xff", "\u0085", strings.Repeat("k", 1100), ".well-known/acme-challenge/x", strings.Repeat("/", 250)}

func (d *differ) anyKey(t *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return rapid.SampledFrom(oddKeys).Draw(t, "key")
	}
	return d.key(t)
}

func (d *differ) key(t *rapid.T) string { return rapid.SampledFrom(d.pool).Draw(t, "key") }

// agree runs f on every side. What it returns, a text of the result and an error, must be the same everywhere.
func (d *differ) agree(t *rapid.T, what string, f func(ctx context.Context, s *side) (string, error)) {
	t.Helper()
	var want string
	for i, s := range d.sides {
		result, err := f(context.Background(), s)
		got := result + errorText(err)
		switch {
		case i == 0:
			want = got
			t.Logf("%s: %.200s", what, got)
		case got != want:
			t.Fatalf("%s: %s says %.500s\n%v\n%s says %.500s", what, s.name, got, err, d.sides[0].name, want)
		}
	}
}

// errorText is what all stores must agree on of an error.
func errorText(err error) string {
	var many *blob.DeleteError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &many):
		var b strings.Builder
		slices.SortFunc(many.Failed, func(a, b blob.KeyError) int { return cmp.Compare(a.Key, b.Key) })
		for _, f := range many.Failed {
			text := errorText(f.Err)
			var e *blob.Error
			if errors.As(f.Err, &e) {
				named := *e // Whether the error says again which key it is about is left open.
				named.Key = f.Key
				text = errorText(&named)
			}
			fmt.Fprintf(&b, " %q:%s", f.Key, text)
		}
		return b.String()
	}
	var e *blob.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf(" untyped %v", err)
	}
	cause := ""
	for _, c := range []error{errSource, context.Canceled} { // what is not ours has no kind
		if errors.Is(err, c) {
			cause = " " + c.Error()
		}
	}
	return fmt.Sprintf(" %v%s of %s of %q, %v", e.Kind, cause, e.Op, e.Key, e.Outcome)
}

func infoText(i blob.Info) string {
	return fmt.Sprintf("%q %d bytes %q %q %t", i.Key, i.Size, i.ContentType, i.Metadata, i.IsPrefix)
}

func objectText(o blob.Object) string {
	return fmt.Sprintf("%s at %d: %d bytes, %x", infoText(o.Info), o.Offset, len(o.Data), sha256.Sum256(o.Data))
}

// condition draws none, IfAbsent, or IfVersion of some write, of whatever key, or of a version that never was.
func (d *differ) condition(t *rapid.T, absent bool) (text string, of func(*side) blob.Condition) {
	kind := rapid.IntRange(0, 5).Draw(t, "condition")
	switch {
	case kind == 0 && absent:
		return "IfAbsent", func(*side) blob.Condition { return blob.IfAbsent() }
	case kind <= 2 && d.writes > 0:
		n := d.writes - rapid.IntRange(0, min(d.writes-1, 5)).Draw(t, "write")
		return fmt.Sprintf("IfVersion of write %d", n), func(s *side) blob.Condition {
			if v := s.versions[n]; v != "" {
				return blob.IfVersion(v)
			}
			return blob.IfVersion("0123456789")
		}
	}
	return "", func(*side) blob.Condition { return blob.Condition{} }
}

func (d *differ) set(t *rapid.T) {
	key := d.key(t)
	size := rapid.SampledFrom([]int{-8, 0, 1, 10, step - 1, step, step + 1, 3 * step, 3*step + 1, 300 << 10, 400 << 10}).Draw(t, "size")
	n := d.write(key)
	data := make([]byte, size+8) // never equal to another unless it is empty: an S3 ETag is of the content
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(data)
	d.sums[n], d.sizes[n] = crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)), len(data)
	opts := blob.SetOptions{}
	if rapid.Bool().Draw(t, "dressed") {
		opts.Metadata, opts.ContentType = map[string]string{"n": fmt.Sprint(n), "x": "~ !"}, "application/x-test"
	}
	kind, source := drawSource(t, data)
	text, cond := d.condition(t, true)
	if text != "" { // of two faults at once any may be reported
		kind, source = "bytes", func() blob.Source { return blob.Bytes(data) }
	}
	d.agree(t, fmt.Sprintf("set %d of %q, %d %s %s", n, key, len(data), kind, text), func(ctx context.Context, s *side) (string, error) {
		o := opts
		o.If = cond(s)
		info, err := s.Set(ctx, key, source(), &o)
		if err != nil {
			return "", err
		}
		if info.Version == "" {
			return "no version", nil
		}
		if len(data) > 0 { // else the next empty object has the same on S3
			s.versions[n] = info.Version
		}
		return fmt.Sprintf("%q %d", info.Key, info.Size), nil
	})
}

// drawSource draws a source of data, or one that breaks its word. There are no Streams among them as long as the engine takes none, and no SHA256.
func drawSource(t *rapid.T, data []byte) (kind string, source func() blob.Source) {
	size := int64(len(data))
	kinds := map[string]func() blob.Source{
		"bytes":           func() blob.Source { return blob.Bytes(data) },
		"bytes by offset": func() blob.Source { return blob.ReaderAt(bytes.NewReader(data), size) },
		"of more bytes":   func() blob.Source { return blob.ReaderAt(bytes.NewReader(append(slices.Clone(data), 1)), size) },
		"and one missing": func() blob.Source { return blob.ReaderAt(bytes.NewReader(data), size+1) },
		"and an error":    func() blob.Source { return blob.ReaderAt(failing{bytes.NewReader(data)}, size) },
	}
	kind = rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "source")
	return kind, kinds[kind]
}

var errSource = errors.New("the source fails")

// failing is a source that fails in its last byte.
type failing struct{ *bytes.Reader }

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if n := int64(len(p)); n > 0 && off+n >= f.Size() {
		return 0, errSource
	}
	return f.Reader.ReadAt(p, off)
}

func (d *differ) write(key string) int {
	d.writes++
	d.keys, d.sums, d.sizes = append(d.keys, key), append(d.sums, 0), append(d.sizes, 0)
	return d.writes
}

// want draws nothing, or the size or checksum of some write, of whatever key; nothing beside a condition, nor what is above the limit: of two
// faults at once any may be reported.
func (d *differ) want(t *rapid.T, conditional bool) (w blob.Want) {
	if kind := rapid.IntRange(0, 5).Draw(t, "want"); kind <= 2 && d.writes > 0 && !conditional {
		n := d.writes - rapid.IntRange(0, min(d.writes-1, 5)).Draw(t, "write")
		if d.sizes[n] > limit {
			return w
		}
		if w.HasSize = kind > 0; w.HasSize {
			w.Size = int64(d.sizes[n])
		}
		if w.HasCRC32C = kind < 2; w.HasCRC32C {
			w.CRC32C = d.sums[n]
		}
	}
	return w
}

func drawRange(t *rapid.T) blob.Range {
	off := int64(rapid.SampledFrom([]int{0, 1, 8, 9, step, 3 * step, 300<<10 + 8, 400 << 10}).Draw(t, "offset"))
	n := int64(rapid.SampledFrom([]int{0, 1, 9, step, 5 * step}).Draw(t, "length"))
	switch rapid.IntRange(0, 3).Draw(t, "range") {
	case 0:
		return blob.Range{}
	case 1:
		return blob.From(off)
	case 2:
		return blob.Last(n)
	}
	return blob.Span(off, n)
}

func (d *differ) get(t *rapid.T) {
	key, r := d.anyKey(t), drawRange(t)
	text, cond := d.condition(t, false)
	want := d.want(t, text != "")
	dst := rapid.Bool().Draw(t, "dst")
	d.agree(t, fmt.Sprintf("get %q %v %s %+v", key, r, text, want), func(ctx context.Context, s *side) (string, error) {
		o := &blob.GetOptions{Range: r, If: cond(s), Want: want}
		if dst {
			o.Dst = make([]byte, 512<<10)
		}
		obj, err := s.Get(ctx, key, o)
		if err != nil {
			return "", err
		}
		return objectText(obj), nil
	})
}

func (d *differ) getRanges(t *rapid.T) {
	key := d.anyKey(t)
	text, cond := d.condition(t, false)
	want := d.want(t, text != "")
	rs := rapid.SliceOfN(rapid.Custom(drawRange), 0, 4).Draw(t, "ranges")
	if text != "" || want != (blob.Want{}) { // of two faults at once any may be reported
		for i := range rs {
			rs[i] = blob.Span(0, 9)
		}
	}
	d.agree(t, fmt.Sprintf("getRanges %q %v %s %+v", key, rs, text, want), func(ctx context.Context, s *side) (string, error) {
		objs, err := s.GetRanges(ctx, key, rs, &blob.GetOptions{If: cond(s), Want: want})
		text := fmt.Sprint(len(objs))
		for _, o := range objs {
			text += "\n" + objectText(o)
		}
		return text, err
	})
}

func (d *differ) stat(t *rapid.T) {
	key := d.anyKey(t)
	d.agree(t, fmt.Sprintf("stat %q", key), func(ctx context.Context, s *side) (string, error) {
		info, err := s.Stat(ctx, key)
		if err != nil {
			return "", err
		}
		return infoText(info), nil
	})
}

func (d *differ) list(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"", "a", "a/", "é", "zz", "名"}).Draw(t, "prefix")
	opts := &blob.ListOptions{
		StartAfter: rapid.SampledFrom(append([]string{"", "a/b/", "0"}, differKeys...)).Draw(t, "start after"),
		Delimiter:  rapid.SampledFrom([]string{"", "/", "b", "-"}).Draw(t, "delimiter"),
	}
	d.agree(t, fmt.Sprintf("list %q after %q by %q", prefix, opts.StartAfter, opts.Delimiter), func(ctx context.Context, s *side) (string, error) {
		text := ""
		for info, err := range s.List(ctx, prefix, opts) {
			if err != nil {
				return text, err
			}
			text += fmt.Sprintf("%q %d %t\n", info.Key, info.Size, info.IsPrefix)
		}
		return text, nil
	})
}

func (d *differ) remove(t *rapid.T) {
	key := d.anyKey(t)
	text, cond := d.condition(t, false)
	d.agree(t, fmt.Sprintf("delete %q %s", key, text), func(ctx context.Context, s *side) (string, error) {
		return "", s.Delete(ctx, key, &blob.DeleteOptions{If: cond(s)})
	})
}

func (d *differ) removeAll(t *rapid.T) {
	keys := rapid.SliceOfN(rapid.Custom(d.anyKey), 0, 4).Draw(t, "keys")
	d.agree(t, fmt.Sprintf("deleteAll %q", keys), func(ctx context.Context, s *side) (string, error) {
		return "", s.DeleteAll(ctx, keys)
	})
}

// restore gives the object another version on some stores, so no earlier write of the key is named any more.
func (d *differ) restore(t *rapid.T) {
	key := d.key(t)
	n := d.write(key)
	d.agree(t, "restore "+key, func(ctx context.Context, s *side) (string, error) {
		info, err := s.Restore(ctx, key)
		if err != nil {
			return "", err
		}
		for earlier := range s.versions {
			if d.keys[earlier] == key {
				delete(s.versions, earlier)
			}
		}
		obj, err := s.Get(ctx, key, nil)
		if info.Size > limit {
			obj, err = s.Get(ctx, key, &blob.GetOptions{Range: blob.Last(limit)})
		}
		if info.Size > 0 && !d.copied { // a copy has the same version on S3
			s.versions[n] = info.Version
		}
		return infoText(info) + " " + objectText(obj), err
	})
}
