package gcsblob_test

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An object that is stored as gzip comes as it is stored, whole and in ranges, and whatever else its coding says
// (googleapis/google-cloud-go #1743, thanos-io/objstore).
func TestStoredBytesComeAsTheyAreStored(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, func(o *gcsblob.Options) { o.Segment = 16 })
	data := zipped(t, content(100))
	for _, coding := range []string{"", "gzip", "br", "identity"} {
		srv.PutObject("b", "k", data, &fakegcs.PutOptions{ContentEncoding: coding})
		obj := mustGet(t, st, "k", nil)
		wantBytes(t, obj.Data, data)
		if obj.Size != int64(len(data)) {
			t.Errorf("%q: size %d, want %d", coding, obj.Size, len(data))
		}
		wantBytes(t, mustGet(t, st, "k", &blob.GetOptions{Range: blob.Span(3, 40)}).Data, data[3:43])
		wantBytes(t, mustGet(t, st, "k", &blob.GetOptions{Range: blob.Last(7)}).Data, data[len(data)-7:])
	}
}

// A reply that was unpacked, although packed bytes were asked for, is an error and never the object.
func TestAnUnpackedReplyIsAnError(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	plain := content(100)
	srv.PutObject("b", "k", zipped(t, plain), &fakegcs.PutOptions{ContentEncoding: "gzip"})
	for name, status := range map[string]int{"whole": 200, "part": 206} {
		st := open(t, srv, func(o *gcsblob.Options) { o.Retry.Attempts = 1 })
		in := srv.Inject(fakehttp.Fault{Op: "xml.get", Times: -1, Reply: &fakehttp.Reply{Status: status, Body: string(plain), Header: map[string]string{
			"X-Goog-Generation": "7", "X-Goog-Stored-Content-Encoding": "gzip", "X-Goog-Stored-Content-Length": "124",
			"Content-Range": "bytes 0-99/100",
		}}})
		_, err := st.Get(t.Context(), "k", nil)
		wantKind(t, err, blob.ErrCorrupt)
		if in.Hits() == 0 {
			t.Errorf("%s: not hit", name)
		}
		in.Remove()
	}
}

// A reply that a server on the way has packed is unpacked, and compared with the length of what is stored.
func TestAReplyPackedOnTheWayIsUnpacked(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv)
	data := bytes.Repeat([]byte("abc"), 1000)
	packed := string(zipped(t, data))
	for name, c := range map[string]struct {
		body, length string
		kind         error
	}{
		"whole":     {packed, "3000", nil},
		"short":     {packed, "3001", blob.ErrTruncated},
		"long":      {packed, "2999", blob.ErrCorrupt},
		"cut":       {packed[:len(packed)-9], "3000", blob.ErrCorrupt},
		"damaged":   {packed[:len(packed)-8] + "\x00" + packed[len(packed)-7:], "3000", blob.ErrCorrupt},
		"not gzip":  {"plain", "3000", blob.ErrTruncated},
		"no length": {packed, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			generation := srv.PutObject("b", "k", data, nil)
			h := map[string]string{"X-Goog-Generation": text(generation), "Content-Encoding": "gzip", "X-Goog-Stored-Content-Encoding": "identity"}
			if c.length != "" {
				h["X-Goog-Stored-Content-Length"] = c.length
			}
			in := srv.Inject(fakehttp.Fault{Op: "xml.get", Times: -1, Reply: &fakehttp.Reply{Status: 200, Body: c.body, Header: h}})
			defer in.Remove()
			obj, err := st.Get(t.Context(), "k", &blob.GetOptions{Range: blob.From(0)})
			if c.kind == nil {
				if err != nil {
					t.Fatal(err)
				}
				wantBytes(t, obj.Data, data)
				return
			}
			if got := blob.KindOf(err); got != c.kind {
				t.Errorf("got %v, want %v", err, c.kind)
			}
		})
	}
}

// A version that is not the current one is refused, in a bucket that keeps old ones too; a missing key is not found.
func TestAPinnedReadFindsTheCurrentVersionOnly(t *testing.T) {
	srv := fake(t, fakegcs.Options{Versioned: true})
	st := open(t, srv)
	old := mustSet(t, st, "k", []byte("old"), nil)
	now := mustSet(t, st, "k", []byte("new"), nil)
	_, err := st.Get(t.Context(), "k", &blob.GetOptions{If: blob.IfVersion(old.Version)})
	wantKind(t, err, blob.ErrPrecondition)
	wantBytes(t, mustGet(t, st, "k", &blob.GetOptions{If: blob.IfVersion(now.Version)}).Data, []byte("new"))
	_, err = st.Get(t.Context(), "missing", &blob.GetOptions{If: blob.IfVersion(now.Version)})
	wantKind(t, err, blob.ErrNotFound)
	for _, v := range []string{"x", "-1", "0", "01", "+1", "9223372036854775808", "1 "} {
		_, err := st.Get(t.Context(), "k", &blob.GetOptions{If: blob.IfVersion(v)})
		wantKind(t, err, blob.ErrPrecondition)
		if _, err := st.Set(t.Context(), "k", blob.Bytes(nil), &blob.SetOptions{If: blob.IfVersion(v)}); blob.KindOf(err) != blob.ErrPrecondition {
			t.Errorf("Set if version %q: %v", v, err)
		}
	}
}

// A range that ends past all numbers is asked for up to the last of them: the service passes over one that it cannot read, and sends all
// of the object.
func TestARangeEndsAtANumber(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv)
	srv.PutObject("b", "k", content(10), nil)
	for _, r := range []blob.Range{blob.Span(math.MaxInt64-5, 100), blob.Span(math.MaxInt64, 1)} {
		_, err := st.Get(t.Context(), "k", &blob.GetOptions{Range: r})
		wantKind(t, err, blob.ErrInvalidRange)
	}
	for _, e := range srv.Log() {
		if e.Op == "xml.get" && e.Status != 416 {
			t.Errorf("%v: Range %s", e, e.Header.Get("Range"))
		}
	}
}

// Every key that package blob allows, and those of others that the service can hold, are read and deleted as they are named.
func TestForeignKeysAreReadAsTheyAreNamed(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv)
	keys := []string{"a/../b", "a/./b", "a/..", "../b", "b", "/b", "//b", "b/", "%2e%2e/b", "a%2Fb", "a+b", "a b", "a?b#c", "a\\b", "tab\t", "é", "e\u0301", strings.Repeat("k", 1024)}
	for _, k := range keys {
		srv.PutObject("b", k, []byte("of "+k), nil)
	}
	for _, k := range keys {
		wantBytes(t, mustGet(t, st, k, nil).Data, []byte("of "+k))
		if info, err := st.Stat(t.Context(), k); err != nil || info.Key != k {
			t.Errorf("Stat %q: %+v, %v", k, info, err)
		}
	}
	for _, k := range keys {
		if err := st.Delete(t.Context(), k, nil); err != nil {
			t.Errorf("Delete %q: %v", k, err)
		}
	}
	if left := srv.Objects("b"); len(left) > 0 {
		t.Errorf("left: %d objects, such as %q", len(left), left[0].Key)
	}
}

// Keys that the service cannot hold are not there, without a request.
func TestKeysThatCannotExistAreNotAskedFor(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv)
	for _, k := range []string{".", "..", "a\rb", "a\nb", ".well-known/acme-challenge/x", "\xff", strings.Repeat("k", 1025)} {
		_, err := st.Get(t.Context(), k, nil)
		wantKind(t, err, blob.ErrNotFound)
		_, err = st.Stat(t.Context(), k)
		wantKind(t, err, blob.ErrNotFound)
		if err := st.Delete(t.Context(), k, nil); err != nil {
			t.Errorf("Delete %q: %v", k, err)
		}
	}
	wantLog(t, srv, "\n")
}

// A bucket that is not there is told from an object that is not, by every operation.
func TestAMissingBucketIsNoMissingObject(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	o := options(srv)
	small(o)
	st := openWith(t, "other", o)
	for name, do := range operations {
		if err := do(t.Context(), st); blob.KindOf(err) != blob.ErrNoContainer {
			t.Errorf("%s: %v, want %v", name, err, blob.ErrNoContainer)
		}
	}
}

// The CRC32C that the service states goes with the object, and what is written states its own.
func TestWritesStateTheirCRC32C(t *testing.T) {
	srv := fake(t, fakegcs.Options{})
	st := open(t, srv, small)
	for _, n := range []int{10, 5 << 10, 2*chunk + 5} {
		data := content(n)
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		mustSet(t, st, "k", data, nil)
		if obj, _ := srv.Object("b", "k"); obj.CRC32C != sum {
			t.Fatalf("%d bytes: the fake has %08x, want %08x", n, obj.CRC32C, sum)
		}
	}
	log := srv.Log()
	if got := log[0].Header.Get("X-Goog-Hash"); got != "" {
		t.Errorf("a multipart upload has its checksum in the metadata, not in %q", got)
	}
	if got := log[len(log)-1].Header.Get("X-Goog-Hash"); !strings.HasPrefix(got, "crc32c=") {
		t.Errorf("the last chunk has %q", got)
	}
	for _, e := range log[:len(log)-1] {
		if e.Op == "uploads.put" && e.Status == 308 && e.Header.Get("X-Goog-Hash") != "" {
			t.Errorf("%v states a checksum before the end", e)
		}
	}
}
