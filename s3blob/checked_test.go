package s3blob

import (
	"crypto/sha512"
	"encoding/base64"
	"hash/crc32"
	"io"
	"net/http"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/retry"
)

// A reply counts as checked if the SDK checks it: by any of its algorithms, but not by the sum of an upload's parts ("CRC-3"), which says
// nothing of a body as a whole.
func TestCheckedIsWhatTheSDKChecks(t *testing.T) {
	const data = "data"
	crc := base64.StdEncoding.EncodeToString(make([]byte, 4))
	long := sha512.Sum512([]byte("other data"))
	for _, c := range []struct {
		header, value  string
		checked, fails bool
	}{
		{"X-Amz-Other", "1", false, false},
		{"X-Amz-Checksum-Crc32", ieee(data), true, false},
		{"X-Amz-Checksum-Crc32", crc, true, true},
		{"X-Amz-Checksum-Crc32", crc + "-3", false, false},
		{"X-Amz-Checksum-Sha256", "x-2", false, false},
		{"X-Amz-Checksum-Sha512", base64.StdEncoding.EncodeToString(long[:]), true, true},
	} {
		l := &line{status: 200, reply: data, header: http.Header{"Etag": {`"e"`}, "Content-Length": {"4"}, c.header: {c.value}}}
		r, _ := bothWays(t, "b", Options{Endpoint: "http://127.0.0.1:1", Checksums: On}, l)
		rep, err := r.Read(t.Context(), transfer.ReadRequest{Key: "k", N: -1})
		if err != nil {
			t.Fatal(c, err)
		}
		if _, err = io.ReadAll(rep.Body); rep.Checked != c.checked || (err != nil) != c.fails {
			t.Errorf("%s: %s: checked %v, at the end of the body %v", c.header, c.value, rep.Checked, err)
		}
		_ = rep.Body.Close()

		st, err := New(t.Context(), "b", &Options{
			Endpoint: "http://127.0.0.1:1", Checksums: On, AccessKey: "a", SecretKey: "s", Transport: l, ReadRanges: true, Retry: retry.Off(),
		})
		if err != nil {
			t.Fatal(err)
		}
		l.header.Set("Content-Range", "bytes 0-3/4")
		l.status = http.StatusPartialContent
		obj, err := st.Get(t.Context(), "k", nil)
		if c.fails != (blob.KindOf(err) == blob.ErrCorrupt) || !c.fails && string(obj.Data) != data {
			t.Errorf("%s: %s: got %q, %v", c.header, c.value, obj.Data, err)
		}
	}
}

func ieee(data string) string {
	n := crc32.ChecksumIEEE([]byte(data))
	return base64.StdEncoding.EncodeToString([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
