package azblob

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/wholeblob/wholeblob/blob"
)

// errBatchRead ends the SDK's part of a batch whose reply has been read.
var errBatchRead = errors.New("the reply to the batch has been read")

// batch collects the results of a Blob Batch.
type batch struct {
	errs []error // by key; nil: deleted
}

// newBatch returns a batch of n keys that the reply has yet to name. What it does not name is Unknown.
func newBatch(n int) *batch {
	b := &batch{errs: make([]error, n)}
	for i := range b.errs {
		b.errs[i] = &blob.Error{Kind: blob.ErrUnavailable, Err: errors.New("the reply to the batch does not name the key")}
	}
	return b
}

// maxBatchReply bounds the bytes that are read of a reply: 256 parts of about 600 bytes, and room.
const maxBatchReply = 4 << 20

// read takes the results from a reply: one part for each request, with its number as Content-ID ("Blob Batch"). A part that cannot be read
// ends it, and leaves the rest Unknown.
func (b *batch) read(resp *http.Response) error {
	defer resp.Body.Close() //nolint:errcheck // what has been read counts
	_, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return errors.New("the reply to the batch is no multipart document")
	}
	parts := multipart.NewReader(io.LimitReader(resp.Body, maxBatchReply), params["boundary"])
	for first := true; ; first = false {
		part, err := parts.NextRawPart()
		if err != nil {
			return errBatchRead
		}
		answer, err := readPart(part) //nolint:bodyclose // it is in memory
		if err != nil {
			return errBatchRead
		}
		id, err := strconv.Atoi(part.Header.Get("Content-ID"))
		switch {
		case err == nil && id >= 0 && id < len(b.errs):
			b.errs[id] = partFault(answer)
		case first && answer.StatusCode >= 300: // one part without a number stands for all
			return runtime.NewResponseError(answer)
		}
	}
}

// readPart reads one HTTP response. The line break that ends its header can be the one that belongs to the boundary, so there is one more.
func readPart(part io.Reader) (*http.Response, error) {
	text, err := io.ReadAll(part)
	if err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(append(text, "\r\n\r\n"...))), nil)
	if err != nil {
		return nil, fmt.Errorf("a part of the batch is no HTTP response: %w", err)
	}
	resp.Header.Del("WWW-Authenticate")
	return resp, nil
}

// partFault is the result of one key.
func partFault(answer *http.Response) error {
	if answer.StatusCode/100 == 2 {
		return nil
	}
	var reply *azcore.ResponseError
	if err := runtime.NewResponseError(answer); !errors.As(err, &reply) {
		return &blob.Error{Kind: blob.ErrUnavailable, Status: answer.StatusCode, Err: err}
	}
	return replied(reply, answer.Header)
}
