package fakegcs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
)

// withToken sends the token as the SDK's own transport would.
type withToken struct{ http.RoundTripper }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+fakegcs.DefaultToken)
	return w.RoundTripper.RoundTrip(r)
}

// sdkClient is Google's client, with retries off: one call is one request.
func sdkClient(t *testing.T, s *fakegcs.Server, opts ...option.ClientOption) *storage.Client {
	t.Helper()
	tr := s.Transport()
	t.Cleanup(tr.CloseIdleConnections)
	opts = append([]option.ClientOption{option.WithHTTPClient(&http.Client{Transport: withToken{tr}}), option.WithEndpoint(s.URL() + "/storage/v1/")}, opts...)
	c, err := storage.NewClient(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	c.SetRetry(storage.WithPolicy(storage.RetryNever))
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// content is different everywhere, so that a piece in the wrong place shows.
func content(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func sdkWrite(ctx context.Context, o *storage.ObjectHandle, data []byte, change ...func(*storage.Writer)) (*storage.ObjectAttrs, error) {
	w := o.NewWriter(ctx)
	w.Metadata = map[string]string{"one": "1"}
	for _, f := range change {
		f(w)
	}
	_, err := w.Write(data)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return w.Attrs(), err
}

func sdkStatus(err error) int {
	var e *googleapi.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestGooglesClientWritesAndReads(t *testing.T) {
	s := start(t, fakegcs.Options{})
	sizes := map[string]int{"empty": 0, "small": 10, "one chunk": 256 << 10, "chunks": 3<<20 + 5, "whole chunks": 1 << 20}
	for _, api := range []struct {
		name string
		opts []option.ClientOption
	}{{"XML", nil}, {"JSON", []option.ClientOption{storage.WithJSONReads()}}} {
		c := sdkClient(t, s, api.opts...)
		for name, n := range sizes {
			for _, chunk := range []int{0, 256 << 10} {
				t.Run(api.name+" "+name, func(t *testing.T) {
					data := content(n)
					o := c.Bucket("bucket").Object("a/ü " + name)
					attrs, err := sdkWrite(t.Context(), o, data, func(w *storage.Writer) { w.ChunkSize = chunk })
					if err != nil {
						t.Fatal(err)
					}
					got, err := o.Attrs(t.Context())
					if err != nil || got.Size != int64(n) || got.Generation != attrs.Generation || got.Metadata["one"] != "1" {
						t.Fatalf("%+v, %v", got, err)
					}
					r, err := o.NewReader(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					read, err := io.ReadAll(r) // the client checks the CRC32C here
					if err != nil || !bytes.Equal(read, data) {
						t.Fatalf("%d bytes, %v", len(read), err)
					}
					if err := r.Close(); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

func TestGooglesClientReadsRanges(t *testing.T) {
	s := start(t, fakegcs.Options{})
	data := content(1000)
	s.PutObject("bucket", "k", data, nil)
	for _, opts := range [][]option.ClientOption{nil, {storage.WithJSONReads()}} {
		o := sdkClient(t, s, opts...).Bucket("bucket").Object("k")
		for _, x := range []struct{ off, n, from, to int64 }{{0, 10, 0, 10}, {990, 100, 990, 1000}, {5, -1, 5, 1000}, {-7, -1, 993, 1000}} {
			r, err := o.NewRangeReader(t.Context(), x.off, x.n)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, data[x.from:x.to]) || r.Attrs.Size != 1000 {
				t.Errorf("%+v: %d bytes of %d, %v", x, len(got), r.Attrs.Size, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := o.NewRangeReader(t.Context(), 1000, 1); sdkStatus(err) != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("beyond the end: %v", err)
		}
	}
}

func TestGooglesClientMeetsConditions(t *testing.T) {
	s := start(t, fakegcs.Options{})
	c := sdkClient(t, s)
	o := c.Bucket("bucket").Object("k")
	ctx := t.Context()
	small, chunked := func(*storage.Writer) {}, func(w *storage.Writer) { w.ChunkSize = 256 << 10 }
	if _, err := o.Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		t.Fatalf("missing: %v", err)
	}
	absent := o.If(storage.Conditions{DoesNotExist: true})
	attrs, err := sdkWrite(ctx, absent, content(10), small)
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []func(*storage.Writer){small, chunked} {
		if _, err := sdkWrite(ctx, absent, content(1<<20), how); sdkStatus(err) != http.StatusPreconditionFailed {
			t.Errorf("present: %v", err)
		}
		wrong := o.If(storage.Conditions{GenerationMatch: 5})
		if _, err := sdkWrite(ctx, wrong, content(1<<20), how); sdkStatus(err) != http.StatusPreconditionFailed {
			t.Errorf("another generation: %v", err)
		}
		right := o.If(storage.Conditions{GenerationMatch: attrs.Generation})
		if attrs, err = sdkWrite(ctx, right, content(1<<20), how); err != nil {
			t.Fatal(err)
		}
	}
	stale := o.If(storage.Conditions{GenerationMatch: attrs.Generation - 1})
	if _, err := stale.Attrs(ctx); sdkStatus(err) != http.StatusPreconditionFailed {
		t.Errorf("attrs: %v", err)
	}
	if _, err := stale.NewReader(ctx); sdkStatus(err) != http.StatusPreconditionFailed {
		t.Errorf("read: %v", err)
	}
	if err := stale.Delete(ctx); sdkStatus(err) != http.StatusPreconditionFailed {
		t.Errorf("delete: %v", err)
	}
	if err := o.If(storage.Conditions{GenerationMatch: attrs.Generation}).Delete(ctx); err != nil {
		t.Error(err)
	}
	if err := o.Delete(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
		t.Errorf("gone: %v", err)
	}
}

func TestGooglesClientRefusesWhatIsCorrupt(t *testing.T) {
	s := start(t, fakegcs.Options{})
	wrong := uint32(7)
	s.PutObject("bucket", "k", content(1000), &fakegcs.PutOptions{CRC32C: &wrong})
	r, err := sdkClient(t, s).Bucket("bucket").Object("k").NewReader(t.Context())
	if err == nil {
		_, err = io.ReadAll(r)
		_ = r.Close() // the read has told
	}
	if err == nil {
		t.Error("a body that is not what its checksum says was taken")
	}
	o := sdkClient(t, s).Bucket("bucket").Object("new")
	for _, chunk := range []int{0, 256 << 10} {
		_, err := sdkWrite(t.Context(), o, content(600<<10), func(w *storage.Writer) { w.ChunkSize, w.CRC32C, w.SendCRC32C = chunk, wrong, true })
		if sdkStatus(err) != http.StatusBadRequest {
			t.Errorf("chunks of %d: %v", chunk, err)
		}
	}
	if _, ok := s.Object("bucket", "new"); ok {
		t.Error("stored in spite of the checksum")
	}
}

func TestGooglesClientLists(t *testing.T) {
	s := start(t, fakegcs.Options{})
	for _, k := range []string{"a", "a/1", "a/2", "b", "b/x/y", "ü"} {
		s.PutObject("bucket", k, []byte(k), nil)
	}
	s.Set(func(k *fakegcs.Knobs) { k.PageSize = 1 })
	b := sdkClient(t, s).Bucket("bucket")
	for _, x := range []struct {
		q    storage.Query
		want []string
	}{
		{storage.Query{}, []string{"a", "a/1", "a/2", "b", "b/x/y", "ü"}},
		{storage.Query{Prefix: "a"}, []string{"a", "a/1", "a/2"}},
		{storage.Query{Delimiter: "/"}, []string{"a", "a/ prefix", "b", "b/ prefix", "ü"}},
		{storage.Query{StartOffset: "a/2", EndOffset: "b/x"}, []string{"a/2", "b"}},
	} {
		var got []string
		for it := b.Objects(t.Context(), &x.q); ; {
			a, err := it.Next()
			if errors.Is(err, iterator.Done) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.Prefix != "" {
				got = append(got, a.Prefix+" prefix")
			} else {
				got = append(got, a.Name)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%+v: %q, want %q", x.q, got, x.want)
		}
	}
}

func TestGooglesClientRestores(t *testing.T) {
	s := start(t, fakegcs.Options{})
	c := sdkClient(t, s)
	o := c.Bucket("bucket").Object("k")
	ctx := t.Context()
	attrs, err := sdkWrite(ctx, o, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	soft, err := o.Generation(attrs.Generation).SoftDeleted().Attrs(ctx)
	if err != nil || soft.SoftDeleteTime.IsZero() || soft.HardDeleteTime.IsZero() {
		t.Fatalf("%+v, %v", soft, err)
	}
	restored, err := o.Generation(attrs.Generation).Restore(ctx, &storage.RestoreOptions{})
	if err != nil || restored.Generation <= attrs.Generation || restored.Metadata["one"] != "1" {
		t.Fatalf("%+v, %v", restored, err)
	}
	s.SetVersioning("bucket", true)
	if _, err := sdkWrite(ctx, o, []byte("second")); err != nil {
		t.Fatal(err)
	}
	s.Set(func(k *fakegcs.Knobs) { k.RewriteStep = 2 })
	if _, err := o.CopierFrom(o.Generation(restored.Generation)).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Object("bucket", "k"); string(got.Bytes()) != "first" || got.Metadata["one"] != "1" {
		t.Errorf("%q %v", got.Bytes(), got.Metadata)
	}
}
