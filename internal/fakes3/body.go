package fakes3

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// body is a request body that was read and found right.
type body struct {
	data []byte
	md5  []byte            // nil with FastETag, unless the client sent Content-MD5
	sums map[string]string // algorithm -> base64, as verified
}

// digests are the hashes that one body needs.
type digests struct {
	md5, sha, sum hash.Hash
	alg           string
}

func (d *digests) write(p []byte) {
	for _, h := range []hash.Hash{d.md5, d.sha, d.sum} {
		if h != nil {
			h.Write(p)
		}
	}
}

// readBody reads and verifies the whole body, in one allocation.
func (c *call) readBody(limit int64) (*body, *apiError) {
	if c.knobs.RefuseChecksums != 0 && c.Op != "DeleteObjects" && usesChecksums(c.HTTP.Header) {
		return nil, fail(c.knobs.RefuseChecksums, statusCodes[c.knobs.RefuseChecksums], "checksum headers and aws-chunked bodies are not supported")
	}
	size, trailers, err := c.bodySize(limit)
	if err != nil {
		return nil, err
	}
	h := c.HTTP.Header
	alg, want := announced(h)
	if c.Op == "CompleteMultipartUpload" {
		alg, want = "", "" // there the header is about the object
	}
	if alg == "" && trailers {
		alg = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(h.Get("x-amz-trailer"))), "x-amz-checksum-")
		if alg != "" && newHash(alg) == nil {
			return nil, errRequest("The value specified in the x-amz-trailer header is not supported")
		}
	}
	d := c.digests(alg)
	data, trailer, err := c.readData(size, trailers, d)
	if err != nil {
		return nil, err
	}
	c.finishBody(data, d)
	if trailers && alg != "" && want == "" {
		if want = trailer[checksumHeader(alg)]; want == "" {
			return nil, fail(http.StatusBadRequest, "MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
		}
	}
	return c.verify(data, d, want)
}

// bodySize returns the number of bytes of content, and whether they come in
// aws-chunked coding.
func (c *call) bodySize(limit int64) (size int64, chunked bool, _ *apiError) {
	size = c.HTTP.ContentLength
	if size < 0 {
		return 0, false, fail(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if framed(c.HTTP.Header) && !c.knobs.StoreFraming {
		chunked = true
		n, err := strconv.ParseInt(c.HTTP.Header.Get("x-amz-decoded-content-length"), 10, 64)
		if err != nil || n < 0 {
			return 0, false, fail(http.StatusLengthRequired, "MissingContentLength", "You must provide the x-amz-decoded-content-length HTTP header.")
		}
		size = n
	}
	if size > limit {
		return 0, false, fail(http.StatusBadRequest, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size").
			elem("ProposedSize", strconv.FormatInt(size, 10)).elem("MaxSizeAllowed", strconv.FormatInt(limit, 10))
	}
	return size, chunked, nil
}

func (c *call) digests(alg string) *digests {
	d := &digests{alg: alg, sum: newHash(alg)}
	if !c.s.opts.FastETag || c.HTTP.Header.Get("Content-MD5") != "" {
		d.md5 = md5.New()
	}
	signed := len(c.HTTP.Header.Get("x-amz-content-sha256")) == 64
	if signed && !c.s.opts.Anonymous || c.s.opts.HashBodies && !c.s.opts.NoLog {
		d.sha = sha256.New()
	}
	return d
}

// finishBody notes in the log what was received.
func (c *call) finishBody(data []byte, d *digests) {
	c.Entry.BodyLen = int64(len(data))
	if d.sha != nil && c.s.opts.HashBodies {
		c.Entry.BodySHA256 = hex.EncodeToString(d.sha.Sum(nil))
	}
}

func (c *call) readData(size int64, chunked bool, d *digests) ([]byte, map[string]string, *apiError) {
	data := make([]byte, size)
	var err error
	var trailer map[string]string
	if chunked {
		trailer, err = c.readFramed(bufio.NewReaderSize(c.HTTP.Body, 64<<10), data, d.write)
	} else {
		_, err = c.ReadFull(c.HTTP.Body, data, d.write)
	}
	if err != nil {
		return nil, nil, fail(http.StatusBadRequest, "IncompleteBody", "The request body terminated unexpectedly or is not what its headers say: %v", err)
	}
	return data, trailer, nil
}

// readFramed reads the aws-chunked coding ("Signature calculations:
// transferring payload in multiple chunks", unsigned form with trailer) into
// data, which the chunks must fill exactly.
func (c *call) readFramed(r *bufio.Reader, data []byte, seen func([]byte)) (map[string]string, error) {
	for {
		n, err := chunkSize(r)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		if n > int64(len(data)) {
			return nil, errFraming("more data than x-amz-decoded-content-length")
		}
		if _, err := c.ReadFull(r, data[:n], seen); err != nil {
			return nil, err
		}
		data = data[n:]
		if line, err := readLine(r); err != nil || line != "" {
			return nil, errFraming("chunk does not end where its size says")
		}
	}
	if len(data) > 0 {
		return nil, errFraming("less data than x-amz-decoded-content-length")
	}
	trailer := map[string]string{}
	for {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) || err == nil && line == "" {
			return trailer, nil
		}
		if err != nil {
			return nil, err
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errFraming("trailer without a colon")
		}
		trailer[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
}

type errFraming string

func (e errFraming) Error() string { return string(e) }

func chunkSize(r *bufio.Reader) (int64, error) {
	line, err := readLine(r)
	if err != nil {
		return 0, err
	}
	digits, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || n < 0 {
		return 0, errFraming("bad chunk size")
	}
	return n, nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// verify compares what was read with every digest the client sent.
func (c *call) verify(data []byte, d *digests, want string) (*body, *apiError) {
	b := &body{data: data, sums: map[string]string{}}
	if d.md5 != nil {
		b.md5 = d.md5.Sum(nil)
	}
	if v := c.HTTP.Header.Get("Content-MD5"); v != "" {
		raw, err := base64.StdEncoding.DecodeString(v)
		if err != nil || len(raw) != md5.Size {
			return nil, fail(http.StatusBadRequest, "InvalidDigest", "The Content-MD5 you specified is not valid.")
		}
		if string(raw) != string(b.md5) {
			return nil, fail(http.StatusBadRequest, "BadDigest", "The Content-MD5 you specified did not match what we received.")
		}
	}
	if v := c.HTTP.Header.Get("x-amz-content-sha256"); len(v) == 64 && !c.s.opts.Anonymous {
		if got := hex.EncodeToString(d.sha.Sum(nil)); got != v {
			return nil, fail(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.").
				elem("ClientComputedContentSHA256", v).elem("S3ComputedContentSHA256", got)
		}
	}
	if want != "" && !c.knobs.StoreFraming {
		got := sum64(d.sum)
		if got != want {
			return nil, fail(http.StatusBadRequest, "BadDigest", "The %s you specified did not match the calculated checksum.", strings.ToUpper(d.alg))
		}
		b.sums[d.alg] = got
	}
	return b, nil
}
