package fakes3_test

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// mpu is a multipart upload of "k" in progress.
type mpu struct {
	f    *conf
	id   *string
	done []types.CompletedPart
	sums []byte // the parts' MD5 sums
}

func (f *conf) begin(change ...func(*s3.CreateMultipartUploadInput)) (*mpu, error) {
	in := &s3.CreateMultipartUploadInput{Bucket: &f.bucket, Key: f.key("k")}
	for _, ch := range change {
		ch(in)
	}
	out, err := f.c.CreateMultipartUpload(f, in)
	if err != nil {
		return nil, err
	}
	return &mpu{f: f, id: out.UploadId}, nil
}

func (m *mpu) part(n int32, data []byte, change ...func(*s3.UploadPartInput)) error {
	in := &s3.UploadPartInput{Bucket: &m.f.bucket, Key: m.f.key("k"), UploadId: m.id, PartNumber: &n, Body: bytes.NewReader(data)}
	for _, ch := range change {
		ch(in)
	}
	out, err := m.f.c.UploadPart(m.f, in)
	if err != nil {
		return err
	}
	sum := md5.Sum(data)
	m.sums = append(m.sums, sum[:]...)
	m.done = append(m.done, types.CompletedPart{PartNumber: &n, ETag: out.ETag})
	return nil
}

func (m *mpu) complete(change ...func(*s3.CompleteMultipartUploadInput)) (*s3.CompleteMultipartUploadOutput, error) {
	in := &s3.CompleteMultipartUploadInput{
		Bucket: &m.f.bucket, Key: m.f.key("k"), UploadId: m.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: m.done},
	}
	for _, ch := range change {
		ch(in)
	}
	return m.f.c.CompleteMultipartUpload(m.f, in)
}

func (m *mpu) abort() error {
	_, err := m.f.c.AbortMultipartUpload(m.f, &s3.AbortMultipartUploadInput{Bucket: &m.f.bucket, Key: m.f.key("k"), UploadId: m.id})
	return err
}

// upload begins an upload and sends parts of the given sizes, cut from one
// run of noise, under the given numbers (nil: 1, 2, 3 ...).
func (f *conf) upload(sizes []int, numbers []int32) (m *mpu, data []byte, err error) {
	total := 0
	for _, n := range sizes {
		total += n
	}
	data = noise(total)
	if m, err = f.begin(); err != nil {
		return nil, nil, err
	}
	off := 0
	for i, n := range sizes {
		num := int32(i + 1)
		if numbers != nil {
			num = numbers[i]
		}
		if err := m.part(num, data[off:off+n]); err != nil {
			return nil, nil, err
		}
		off += n
	}
	return m, data, nil
}

var multipartChecks = []check{
	{"multipart-round-trip", func(f *conf) error {
		m, data, err := f.upload([]int{f.min, f.min, 10}, nil)
		if err != nil {
			return err
		}
		_, before := f.get("k")
		out, err := m.complete()
		if err != nil {
			return err
		}
		etag := fmt.Sprintf(`"%x-3"`, md5.Sum(m.sums))
		return all(refused(before, 404, "NoSuchKey"), same("etag", aws.ToString(out.ETag), etag), f.holds("k", data))
	}},
	{"multipart-get-by-part", func(f *conf) error {
		m, data, err := f.upload([]int{f.min, f.min, 10}, nil)
		if err != nil {
			return err
		}
		if _, err := m.complete(); err != nil {
			return err
		}
		var errs []error
		for i, bounds := range [][2]int{{0, f.min}, {f.min, 2 * f.min}, {2 * f.min, 2*f.min + 10}} {
			g, err := f.get("k", byPart(int32(i+1)))
			if err != nil {
				return err
			}
			errs = append(errs,
				same("content", string(g.data), string(data[bounds[0]:bounds[1]])),
				same("parts count", aws.ToInt32(g.PartsCount), 3),
				same("Content-Range", aws.ToString(g.ContentRange), fmt.Sprintf("bytes %d-%d/%d", bounds[0], bounds[1]-1, len(data))))
		}
		h, err := f.head("k", func(in *s3.HeadObjectInput) { in.PartNumber = aws.Int32(3) })
		if err != nil {
			return err
		}
		g, gerr := f.get("k")
		_, beyond := f.get("k", byPart(4))
		return all(append(errs,
			same("head length", aws.ToInt64(h.ContentLength), 10),
			same("head parts count", aws.ToInt32(h.PartsCount), 3),
			gerr, same("parts count of a plain get", aws.ToInt32(g.PartsCount), 0),
			refused(beyond, 416, "InvalidPartNumber"),
		)...)
	}},
	{"multipart-gaps-keep-their-numbers", func(f *conf) error {
		m, data, err := f.upload([]int{f.min, 10}, []int32{3, 7})
		if err != nil {
			return err
		}
		if _, err := m.complete(); err != nil {
			return err
		}
		g, err := f.get("k", byPart(7))
		if err != nil {
			return err
		}
		return all(same("content", string(g.data), string(data[f.min:])), same("parts count", aws.ToInt32(g.PartsCount), 2))
	}},
	{"multipart-metadata-is-of-the-start", func(f *conf) error {
		m, err := f.begin(func(in *s3.CreateMultipartUploadInput) {
			in.Metadata = map[string]string{"m": "1"}
			in.ContentType = aws.String("text/x-test")
		})
		if err != nil {
			return err
		}
		perr := m.part(1, []byte("x"))
		_, cerr := m.complete()
		h, herr := f.head("k")
		if err := all(perr, cerr, herr); err != nil {
			return err
		}
		return all(same("metadata", h.Metadata["m"], "1"), same("type", aws.ToString(h.ContentType), "text/x-test"))
	}},
	{"multipart-part-sent-again", func(f *conf) error {
		m, err := f.begin()
		if err != nil {
			return err
		}
		err1 := m.part(1, []byte("first"))
		err2 := m.part(1, []byte("second"))
		m.done = m.done[1:]
		_, err3 := m.complete()
		return all(err1, err2, err3, f.holds("k", []byte("second")))
	}},
	{"multipart-parts-left-out", func(f *conf) error {
		m, data, err := f.upload([]int{f.min, 10, 20}, nil)
		if err != nil {
			return err
		}
		m.done = m.done[:1]
		_, err = m.complete()
		return all(err, f.holds("k", data[:f.min]))
	}},
	{"multipart-too-small", func(f *conf) error {
		m, _, err := f.upload([]int{10, 10}, nil)
		if err != nil {
			return err
		}
		_, cerr := m.complete()
		return all(refused(cerr, 400, "EntityTooSmall"), m.abort())
	}},
	{"multipart-order", func(f *conf) error {
		m, _, err := f.upload([]int{f.min, f.min}, nil)
		if err != nil {
			return err
		}
		slices.Reverse(m.done)
		_, cerr := m.complete()
		return all(refused(cerr, 400, "InvalidPartOrder"), m.abort())
	}},
	{"multipart-wrong-etag", func(f *conf) error {
		m, _, err := f.upload([]int{10}, nil)
		if err != nil {
			return err
		}
		m.done[0].ETag = aws.String(md5ETag([]byte("other")))
		_, cerr := m.complete()
		return all(refused(cerr, 400, "InvalidPart"), m.abort())
	}},
	{"multipart-part-never-sent", func(f *conf) error {
		m, _, err := f.upload([]int{f.min}, nil)
		if err != nil {
			return err
		}
		m.done = append(m.done, types.CompletedPart{PartNumber: aws.Int32(2), ETag: m.done[0].ETag})
		_, cerr := m.complete()
		return all(refused(cerr, 400, "InvalidPart"), m.abort())
	}},
	{"multipart-no-parts", func(f *conf) error {
		m, err := f.begin()
		if err != nil {
			return err
		}
		_, cerr := m.complete()
		return all(refused(cerr, 400, "MalformedXML"), m.abort())
	}},
	{"multipart-part-numbers", func(f *conf) error {
		m, err := f.begin()
		if err != nil {
			return err
		}
		return all(m.part(10_000, []byte("x")), refused(m.part(10_001, []byte("x")), 400, "InvalidArgument"), m.abort())
	}},
	{"multipart-if-none-match", func(f *conf) error {
		_, err := f.put("k", []byte("old"))
		m, data, merr := f.upload([]int{10}, nil)
		if err := all(err, merr); err != nil {
			return err
		}
		_, cerr := m.complete(func(in *s3.CompleteMultipartUploadInput) { in.IfNoneMatch = aws.String("*") })
		if err := all(refused(cerr, 412, "PreconditionFailed"), f.holds("k", []byte("old"))); err != nil {
			return err
		}
		_, again := m.complete() // the parts are still there
		return all(again, f.holds("k", data))
	}},
	{"multipart-if-match", func(f *conf) error {
		_, err := f.put("k", []byte("old"))
		m, data, merr := f.upload([]int{10}, nil)
		if err := all(err, merr); err != nil {
			return err
		}
		_, wrong := m.complete(func(in *s3.CompleteMultipartUploadInput) { in.IfMatch = aws.String(md5ETag([]byte("x"))) })
		_, right := m.complete(func(in *s3.CompleteMultipartUploadInput) { in.IfMatch = aws.String(md5ETag([]byte("old"))) })
		return all(refused(wrong, 412, "PreconditionFailed"), right, f.holds("k", data))
	}},
	{"multipart-object-size", func(f *conf) error {
		m, data, err := f.upload([]int{10}, nil)
		if err != nil {
			return err
		}
		_, wrong := m.complete(func(in *s3.CompleteMultipartUploadInput) { in.MpuObjectSize = aws.Int64(11) })
		_, right := m.complete(func(in *s3.CompleteMultipartUploadInput) { in.MpuObjectSize = aws.Int64(10) })
		return all(refused(wrong, 400, "InvalidRequest"), right, f.holds("k", data))
	}},
	{"multipart-completed-again", func(f *conf) error {
		m, _, err := f.upload([]int{10}, nil)
		if err != nil {
			return err
		}
		first, err1 := m.complete()
		again, err2 := m.complete()
		if err := all(err1, err2); err != nil {
			return err
		}
		return same("etag", aws.ToString(again.ETag), aws.ToString(first.ETag))
	}},
	{"multipart-aborted", func(f *conf) error {
		m, _, err := f.upload([]int{10}, nil)
		if err != nil {
			return err
		}
		if err := m.abort(); err != nil {
			return err
		}
		_, cerr := m.complete()
		return all(refused(cerr, 404, "NoSuchUpload"), refused(m.part(1, nil), 404, "NoSuchUpload"), refused(m.abort(), 404, "NoSuchUpload"))
	}},
	{"list-parts-paged", func(f *conf) error {
		m, _, err := f.upload([]int{1, 2, 3, 4, 5}, nil)
		if err != nil {
			return err
		}
		var sizes []int64
		var marker *string
		for range 10 {
			out, err := f.c.ListParts(f, &s3.ListPartsInput{Bucket: &f.bucket, Key: f.key("k"), UploadId: m.id, MaxParts: aws.Int32(2), PartNumberMarker: marker})
			if err != nil {
				return err
			}
			for _, p := range out.Parts {
				sizes = append(sizes, aws.ToInt64(p.Size))
			}
			if marker = out.NextPartNumberMarker; !aws.ToBool(out.IsTruncated) {
				break
			}
		}
		return all(same("sizes", fmt.Sprint(sizes), "[1 2 3 4 5]"), m.abort())
	}},
	{"list-uploads", func(f *conf) error { return f.pagedUploads(0) }},
	{"list-uploads-paged", func(f *conf) error { return f.pagedUploads(1) }},
}

// pagedUploads lists three uploads of two keys in pages of limit (0: one page).
func (f *conf) pagedUploads(limit int32) error {
	var want []string
	var begun []*mpu
	for _, name := range []string{"a", "a", "b"} {
		g := *f
		g.prefix += name
		m, err := g.begin()
		if err != nil {
			return err
		}
		begun = append(begun, m)
		want = append(want, *m.id)
	}
	defer func() {
		for _, m := range begun {
			_ = m.abort() // only tidies up
		}
	}()
	var have []string
	in := &s3.ListMultipartUploadsInput{Bucket: &f.bucket, Prefix: &f.prefix}
	if limit > 0 {
		in.MaxUploads = &limit
	}
	for range 10 {
		out, err := f.c.ListMultipartUploads(f, in)
		if err != nil {
			return err
		}
		for _, u := range out.Uploads {
			have = append(have, *u.UploadId)
		}
		if !aws.ToBool(out.IsTruncated) {
			break
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
	// Uploads of one key may come in any order where their times are equal.
	slices.Sort(want)
	slices.Sort(have)
	return same("uploads", fmt.Sprint(have), fmt.Sprint(want))
}
