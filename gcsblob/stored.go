package gcsblob

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/transfer"
	"github.com/wholeblob/wholeblob/internal/wire"
)

// asStored makes sure that the body of a reply is what is stored. The service states the coding and the length of that beside those of the
// reply (X-Goog-Stored-Content-Encoding and -Length), so it shows if somebody on the way has unpacked the one or packed the
// other.
func asStored(res *http.Response, rep *transfer.ReadReply) error {
	stored, length := storedAs(res.Header)
	sent := coding(res.Header.Get("Content-Encoding"))
	switch {
	case res.Uncompressed:
		return unreadable(fmt.Errorf("the transport has unpacked the reply"))
	case stored == "" || sent == stored: // not stated, or untouched
	case stored == identityCoding && sent == gzipCoding && !rep.Partial:
		rep.Body, rep.Length, rep.Checked = &unpacked{body: res.Body}, -1, true // gzip has a checksum
	default:
		return unreadable(fmt.Errorf("the object is stored with coding %s and came with %s", stored, sent))
	}
	if length < 0 || rep.Partial {
		if rep.HasRange && length >= 0 && rep.Total >= 0 && rep.Total != length {
			return unreadable(fmt.Errorf("the reply is of %d bytes, the object has %d", rep.Total, length))
		}
		return nil
	}
	if rep.Length < 0 { // sent in pieces: the length of what is stored is that of the body
		rep.Length = length
	}
	if rep.Length != length {
		return unreadable(fmt.Errorf("the reply has %d bytes, the object %d", rep.Length, length))
	}
	return nil
}

const (
	identityCoding = "identity"
	gzipCoding     = "gzip"
)

// storedAs returns the coding and the length of what is stored, "" and -1 if they are not stated.
func storedAs(h http.Header) (string, int64) {
	length, ok := wire.Number(h.Get("X-Goog-Stored-Content-Length"))
	if !ok {
		length = -1
	}
	stored := h.Get("X-Goog-Stored-Content-Encoding")
	if stored != "" {
		stored = coding(stored)
	}
	return stored, length
}

func coding(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if s == "" {
		return identityCoding
	}
	return s
}

// unpacked undoes a packing that was done on the way. What it delivers is compared with the stored length.
type unpacked struct {
	body io.ReadCloser
	zip  *gzip.Reader
}

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.body); err != nil {
			u.zip = nil
			return 0, err
		}
	}
	return u.zip.Read(p)
}

// Close implements io.Closer.
func (u *unpacked) Close() error { return u.body.Close() }

// unreadable is a reply to a read that makes no sense.
func unreadable(err error) error {
	return &blob.Error{Kind: blob.ErrCorrupt, Outcome: blob.NotApplied, Err: err}
}
