package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/wholeblob/wholeblob/internal/realserver/storetable"
)

// quirk is a question in which servers differ, and in whose answer a store has an interest.
type quirk struct {
	question string
	amazon   string // what the Amazon S3 API Reference and User Guide say; undocumented if they do not
	ask      func(p *probe) string
}

const undocumented = storetable.Undocumented

var quirks = []quirk{
	{"version", undocumented, func(p *probe) string { return p.version }},

	{"GET of part 1 of 2", "206, parts count 2", func(p *probe) string { p.putParts("k", realPart, 5); return p.part(1) }},
	{"GET of part 3 of 2", "416 InvalidPartNumber", func(p *probe) string { p.putParts("k", realPart, 5); return p.part(3) }},
	{"GET of part 1 of a plain object", "206, without a parts count", func(p *probe) string { p.put("k", "hello"); return p.part(1) }},
	{"GET of part 1 of an empty object", undocumented, func(p *probe) string { p.put("k", ""); return p.part(1) }},
	{"HEAD of 2 parts: Content-Length", "the whole object's", headOfParts},
	{"GET of the last byte of an empty object", undocumented, func(p *probe) string { p.put("k", ""); return p.rangeOf("k", "bytes=-1") }},
	{"GET of a range past the end", "416 InvalidRange", func(p *probe) string { p.put("k", "hello"); return p.rangeOf("k", "bytes=5-9") }},

	{"Put, If-None-Match: *, key exists", "412 PreconditionFailed", func(p *probe) string { p.put("k", "old"); return p.putIf("k", "", "*") }},
	{"Put, If-Match wrong", "412 PreconditionFailed", func(p *probe) string { p.put("k", "old"); return p.putIf("k", wrongTag, "") }},
	{"Put, If-Match, key absent", "404 NoSuchKey", func(p *probe) string { return p.putIf("k", wrongTag, "") }},
	{"Complete, If-None-Match: *, key exists", "412 PreconditionFailed", func(p *probe) string { p.put("k", "old"); return p.completeIf("k", "", "*") }},
	{"Complete, If-Match wrong", "412 PreconditionFailed", func(p *probe) string { p.put("k", "old"); return p.completeIf("k", wrongTag, "") }},
	{"Complete, If-Match, key absent", "404 NoSuchKey", func(p *probe) string { return p.completeIf("k", wrongTag, "") }},
	{"Delete, If-Match wrong", "412 PreconditionFailed", func(p *probe) string { p.put("k", "old"); return p.deleteIf("k", wrongTag) }},
	{"Delete, If-Match, key absent", undocumented, func(p *probe) string { return p.deleteIf("k", wrongTag) }},
	{"Delete, key absent", "204", func(p *probe) string { return p.deleteIf("k", "") }},
	{"DeleteObjects, quiet", "names no deleted key", deleteQuietly},
	{"DeleteObjects, 1001 keys", "400 MalformedXML", deleteTooMany},

	{"list, encoding-type=url", "keys encoded, and said so", listEncoded},
	{"list uploads, pages of 1, two of one key", "each upload once", uploadsPaged},
	{"smallest part but the last", "5 MiB: 400 EntityTooSmall", smallParts},
	{"Complete: ETag in the reply", "the object's", completeTag},
	{"Abort, upload unknown", "404 NoSuchUpload", abortUnknown},

	{"key `a//b`", "kept", func(p *probe) string { return p.storedAs("a//b") }},
	{"key `/a`", "kept", func(p *probe) string { p.prefix = ""; return p.storedAs("/a") }},
	{"key `a/` with content", "kept", func(p *probe) string { return p.storedAs("a/") }},
	{`key ` + "`a\\b`", "kept", func(p *probe) string { return p.storedAs(`a\b`) }},
	{"key `x` beside `x/y`", "kept", func(p *probe) string { p.put("x", "file"); return p.storedAs("x/y") }},
	{"key with 300 bytes and no `/`", "kept", func(p *probe) string { return p.storedAs(strings.Repeat("n", 300)) }},

	{"user metadata, name in capitals", "kept, name in lower case", metadataKept},
	{"user metadata of 2049 bytes", "400 MetadataTooLarge", metadataTooLarge},
	{"Put, wrong CRC32 in a header", "400 BadDigest", wrongChecksum},
	{"Put with Expect: 100-continue", "100, then 200", expectContinue},
	{"Put with a checksum in a trailer (TLS)", "stored, Content-Encoding as sent", trailer},
	{"removing a delete marker", "the object is back", removeMarker},
}

// wrongTag is no object's.
const wrongTag = `"00000000000000000000000000000000"`

func (p *probe) put(name, content string) {
	p.Helper()
	_, err := p.client.PutObject(p.Context(), &s3.PutObjectInput{Bucket: &p.bucket, Key: p.key(name), Body: strings.NewReader(content)})
	p.must(err)
}

// upload sends parts of these sizes and returns what completes the upload.
func (p *probe) upload(name string, sizes ...int) *s3.CompleteMultipartUploadInput {
	p.Helper()
	up, err := p.client.CreateMultipartUpload(p.Context(), &s3.CreateMultipartUploadInput{Bucket: &p.bucket, Key: p.key(name), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32})
	p.must(err)
	var parts []types.CompletedPart
	for i, size := range sizes {
		number := aws.Int32(int32(i + 1))
		out, err := p.client.UploadPart(p.Context(), &s3.UploadPartInput{
			Bucket: &p.bucket, Key: p.key(name), UploadId: up.UploadId, PartNumber: number,
			Body: bytes.NewReader(content(size)), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
		})
		p.must(err)
		parts = append(parts, types.CompletedPart{PartNumber: number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32})
	}
	return &s3.CompleteMultipartUploadInput{
		Bucket: &p.bucket, Key: p.key(name), UploadId: up.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
}

func (p *probe) putParts(name string, sizes ...int) {
	p.Helper()
	_, err := p.client.CompleteMultipartUpload(p.Context(), p.upload(name, sizes...))
	p.must(err)
}

func (p *probe) part(number int32) string {
	out, err := p.client.GetObject(p.Context(), &s3.GetObjectInput{Bucket: &p.bucket, Key: p.key("k"), PartNumber: &number})
	if err != nil {
		return outcome(err, "")
	}
	p.must(out.Body.Close())
	count := "without a parts count"
	if n := aws.ToInt32(out.PartsCount); n > 0 {
		count = fmt.Sprintf("parts count %d", n)
	}
	return fmt.Sprintf("%d, %s", replyStatus(out.ResultMetadata), count)
}

func (p *probe) rangeOf(name, spec string) string {
	out, err := p.client.GetObject(p.Context(), &s3.GetObjectInput{Bucket: &p.bucket, Key: p.key(name), Range: &spec})
	if err != nil {
		return outcome(err, "")
	}
	body, err := io.ReadAll(out.Body)
	p.must(errors.Join(err, out.Body.Close()))
	return fmt.Sprintf("%d, %d bytes", replyStatus(out.ResultMetadata), len(body))
}

func headOfParts(p *probe) string {
	p.putParts("k", realPart, 5)
	out, err := p.client.HeadObject(p.Context(), &s3.HeadObjectInput{Bucket: &p.bucket, Key: p.key("k")})
	p.must(err)
	if n := aws.ToInt64(out.ContentLength); n != realPart+5 {
		return fmt.Sprint(n)
	}
	return "the whole object's"
}

// header returns nil for "".
func header(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

func (p *probe) putIf(name, match, noneMatch string) string {
	_, err := p.client.PutObject(p.Context(), &s3.PutObjectInput{
		Bucket: &p.bucket, Key: p.key(name), Body: strings.NewReader("new"), IfMatch: header(match), IfNoneMatch: header(noneMatch),
	})
	return outcome(err, "overwritten")
}

func (p *probe) completeIf(name, match, noneMatch string) string {
	in := p.upload(name, 5)
	in.IfMatch, in.IfNoneMatch = header(match), header(noneMatch)
	_, err := p.client.CompleteMultipartUpload(p.Context(), in)
	return outcome(err, "written")
}

func (p *probe) deleteIf(name, match string) string {
	out, err := p.client.DeleteObject(p.Context(), &s3.DeleteObjectInput{Bucket: &p.bucket, Key: p.key(name), IfMatch: header(match)})
	if err != nil {
		return outcome(err, "")
	}
	return fmt.Sprint(replyStatus(out.ResultMetadata))
}

func (p *probe) deleteAll(quiet bool, keys int) (*s3.DeleteObjectsOutput, error) {
	ids := make([]types.ObjectIdentifier, keys)
	for i := range ids {
		ids[i].Key = p.key(fmt.Sprint(i))
	}
	return p.client.DeleteObjects(p.Context(), &s3.DeleteObjectsInput{Bucket: &p.bucket, Delete: &types.Delete{Objects: ids, Quiet: &quiet}})
}

func deleteQuietly(p *probe) string {
	p.put("0", "")
	out, err := p.deleteAll(true, 2)
	p.must(err)
	if len(out.Deleted) > 0 {
		return "names them all the same"
	}
	return "names no deleted key"
}

func deleteTooMany(p *probe) string {
	_, err := p.deleteAll(true, 1001)
	return outcome(err, "accepted")
}

func (p *probe) list() []string {
	p.Helper()
	out, err := p.client.ListObjectsV2(p.Context(), &s3.ListObjectsV2Input{Bucket: &p.bucket, Prefix: p.key("")})
	p.must(err)
	var keys []string
	for _, o := range out.Contents {
		keys = append(keys, strings.TrimPrefix(*o.Key, p.prefix))
	}
	return keys
}

func listEncoded(p *probe) string {
	p.put("a b", "")
	out, err := p.client.ListObjectsV2(p.Context(), &s3.ListObjectsV2Input{Bucket: &p.bucket, Prefix: p.key(""), EncodingType: types.EncodingTypeUrl})
	p.must(err)
	if len(out.Contents) != 1 {
		return fmt.Sprintf("%d keys", len(out.Contents))
	}
	encoded, said := *out.Contents[0].Key != *p.key("a b"), out.EncodingType != ""
	switch {
	case encoded && said:
		return "keys encoded, and said so"
	case encoded:
		return "keys encoded, not said so"
	case said:
		return "said so, but not encoded"
	}
	return "ignored, and not said"
}

func uploadsPaged(p *probe) string {
	want := map[string]bool{}
	for _, name := range []string{"a", "a", "b"} {
		in := p.upload(name)
		want[*in.UploadId] = true
		p.Cleanup(func() {
			_, _ = p.client.AbortMultipartUpload(context.WithoutCancel(p.Context()), &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId})
		})
	}
	in := &s3.ListMultipartUploadsInput{Bucket: &p.bucket, Prefix: p.key(""), MaxUploads: aws.Int32(1)}
	for page := range 2 * len(want) {
		out, err := p.client.ListMultipartUploads(p.Context(), in)
		if err != nil {
			return fmt.Sprintf("page %d: %s", page+1, outcome(err, ""))
		}
		for _, u := range out.Uploads {
			delete(want, *u.UploadId)
		}
		if !aws.ToBool(out.IsTruncated) {
			if len(want) > 0 {
				return fmt.Sprintf("misses %d", len(want))
			}
			return "each upload once"
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
	return "does not end"
}

func smallParts(p *probe) string {
	_, err := p.client.CompleteMultipartUpload(p.Context(), p.upload("k", realPart-1, 5))
	if err == nil {
		return "less than 5 MiB"
	}
	_, exact := p.client.CompleteMultipartUpload(p.Context(), p.upload("l", realPart, 5))
	p.must(exact)
	return "5 MiB: " + outcome(err, "")
}

func completeTag(p *probe) string {
	out, err := p.client.CompleteMultipartUpload(p.Context(), p.upload("k", 5))
	p.must(err)
	head, err := p.client.HeadObject(p.Context(), &s3.HeadObjectInput{Bucket: &p.bucket, Key: p.key("k")})
	p.must(err)
	switch tag := aws.ToString(out.ETag); {
	case tag == "":
		return "none"
	case tag != aws.ToString(head.ETag):
		return "another than the object's"
	}
	return "the object's"
}

func abortUnknown(p *probe) string {
	in := p.upload("k")
	for range 2 {
		_, err := p.client.AbortMultipartUpload(p.Context(), &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId})
		if err != nil {
			return outcome(err, "")
		}
	}
	return "204"
}

// storedAs writes one more key with content, and says what became of it.
func (p *probe) storedAs(name string) string {
	before := p.list()
	_, err := p.client.PutObject(p.Context(), &s3.PutObjectInput{Bucket: &p.bucket, Key: p.key(name), Body: strings.NewReader("content")})
	if err != nil {
		return outcome(err, "")
	}
	after := slices.DeleteFunc(p.list(), func(k string) bool { return slices.Contains(before, k) })
	switch {
	case len(after) != 1:
		return fmt.Sprintf("listed %d times", len(after))
	case after[0] != name:
		return "listed as `" + after[0] + "`"
	}
	return "kept"
}

func metadataKept(p *probe) string {
	_, err := p.client.PutObject(p.Context(), &s3.PutObjectInput{
		Bucket: &p.bucket, Key: p.key("k"), Body: strings.NewReader(""), Metadata: map[string]string{"SOME-Name": "a Value"},
	})
	p.must(err)
	out, err := p.client.HeadObject(p.Context(), &s3.HeadObjectInput{Bucket: &p.bucket, Key: p.key("k")})
	p.must(err)
	if out.Metadata["some-name"] == "a Value" { // the SDK folds the names of what it reads
		return "kept, name in lower case"
	}
	return fmt.Sprintf("%q", out.Metadata)
}

func metadataTooLarge(p *probe) string {
	_, err := p.client.PutObject(p.Context(), &s3.PutObjectInput{
		Bucket: &p.bucket, Key: p.key("k"), Body: strings.NewReader(""), Metadata: map[string]string{"m": strings.Repeat("v", 2048)},
	})
	return outcome(err, "accepted")
}

func wrongChecksum(p *probe) string {
	_, err := p.client.PutObject(p.Context(), &s3.PutObjectInput{
		Bucket: &p.bucket, Key: p.key("k"), Body: strings.NewReader("hello"), ChecksumCRC32: aws.String("AAAAAA=="),
	})
	return outcome(err, "accepted")
}

func expectContinue(p *probe) string {
	said100 := false
	ctx := httptrace.WithClientTrace(p.Context(), &httptrace.ClientTrace{Got100Continue: func() { said100 = true }})
	out, err := p.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &p.bucket, Key: p.key("k"), Body: strings.NewReader(strings.Repeat("x", 1000)),
	}, func(o *s3.Options) {
		o.ContinueHeaderThresholdBytes = 1
		transport := &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Second}
		o.HTTPClient = &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			// The SDK's requests name no protocol, and net/http then sends the body at once.
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
			return transport.RoundTrip(r)
		})}
	})
	if err != nil {
		return outcome(err, "")
	}
	status := fmt.Sprint(replyStatus(out.ResultMetadata))
	if said100 {
		return "100, then " + status
	}
	return status + " only after a wait"
}

func trailer(p *probe) string {
	_, err := p.tls.PutObject(p.Context(), &s3.PutObjectInput{Bucket: &p.bucket, Key: p.key("k"), Body: strings.NewReader("hello")})
	if err != nil {
		return outcome(err, "")
	}
	out, err := p.tls.GetObject(p.Context(), &s3.GetObjectInput{Bucket: &p.bucket, Key: p.key("k")})
	p.must(err)
	body, err := io.ReadAll(out.Body)
	p.must(errors.Join(err, out.Body.Close()))
	switch {
	case string(body) != "hello":
		return fmt.Sprintf("stored with its framing, %d bytes for 5", len(body))
	case out.ContentEncoding != nil:
		return "stored, Content-Encoding " + *out.ContentEncoding
	}
	return "stored, Content-Encoding as sent"
}

func removeMarker(p *probe) string {
	_, err := p.client.PutObject(p.Context(), &s3.PutObjectInput{Bucket: &p.versioned, Key: p.key("k"), Body: strings.NewReader("v")})
	p.must(err)
	out, err := p.client.DeleteObject(p.Context(), &s3.DeleteObjectInput{Bucket: &p.versioned, Key: p.key("k")})
	p.must(err)
	if out.VersionId == nil {
		return "no id of the marker"
	}
	_, err = p.client.DeleteObject(p.Context(), &s3.DeleteObjectInput{Bucket: &p.versioned, Key: p.key("k"), VersionId: out.VersionId})
	p.must(err)
	_, err = p.client.HeadObject(p.Context(), &s3.HeadObjectInput{Bucket: &p.versioned, Key: p.key("k")})
	return outcome(err, "the object is back")
}

func replyStatus(m middleware.Metadata) int {
	if raw, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response); ok {
		return raw.StatusCode
	}
	return 0
}
