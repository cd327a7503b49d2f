package fakes3_test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func crc32Of(b []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)))
}

func crc32cOf(b []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

func crc64Of(b []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc64.Checksum(b, crc64.MakeTable(0x9a6c9329ac4bc9b5))))
}

func sha256Of(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func md5Of(b []byte) string {
	sum := md5.Sum(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// asked makes a GET ask for the checksum; the SDK checks it as well.
func asked(in *s3.GetObjectInput) { in.ChecksumMode = types.ChecksumModeEnabled }

var integrityChecks = []check{
	{"checksum-comes-back", func(f *conf) error {
		data := noise(1000)
		_, err1 := f.put("crc32c", data, func(in *s3.PutObjectInput) { in.ChecksumCRC32C = aws.String(crc32cOf(data)) })
		_, err2 := f.put("crc64", data, func(in *s3.PutObjectInput) { in.ChecksumCRC64NVME = aws.String(crc64Of(data)) })
		_, err3 := f.put("sha256", data, func(in *s3.PutObjectInput) { in.ChecksumSHA256 = aws.String(sha256Of(data)) })
		c, gerr1 := f.get("crc32c", asked)
		n, gerr2 := f.get("crc64", asked)
		s, gerr3 := f.get("sha256", asked)
		if err := all(err1, err2, err3, gerr1, gerr2, gerr3); err != nil {
			return err
		}
		return all(
			same("crc32c", aws.ToString(c.ChecksumCRC32C), crc32cOf(data)),
			same("crc64nvme", aws.ToString(n.ChecksumCRC64NVME), crc64Of(data)),
			same("sha256", aws.ToString(s.ChecksumSHA256), sha256Of(data)),
		)
	}},
	{"checksum-not-on-ranges", func(f *conf) error {
		_, err := f.put("k", noise(1000))
		g, gerr := f.get("k", asked, func(in *s3.GetObjectInput) { in.Range = aws.String("bytes=0-9") })
		if err := all(err, gerr); err != nil {
			return err
		}
		return all(same("crc32", aws.ToString(g.ChecksumCRC32), ""), same("crc64nvme", aws.ToString(g.ChecksumCRC64NVME), ""))
	}},
	{"wrong-checksum-stores-nothing", func(f *conf) error {
		_, err := f.put("k", []byte("x"), func(in *s3.PutObjectInput) { in.ChecksumCRC32C = aws.String(crc32cOf([]byte("y"))) })
		_, gerr := f.get("k")
		return all(refused(err, 400, "BadDigest"), refused(gerr, 404, "NoSuchKey"))
	}},
	{"wrong-md5-stores-nothing", func(f *conf) error {
		_, err := f.put("k", []byte("x"), func(in *s3.PutObjectInput) { in.ContentMD5 = aws.String(md5Of([]byte("y"))) })
		_, gerr := f.get("k")
		return all(refused(err, 400, "BadDigest"), refused(gerr, 404, "NoSuchKey"))
	}},
	{"default-checksum-goes-through", func(f *conf) error {
		// Over plain HTTP the SDK sends a header, over TLS a trailer.
		data := noise(300_000)
		_, err := f.put("k", data)
		g, gerr := f.get("k", asked)
		if err := all(err, gerr); err != nil {
			return err
		}
		return all(
			same("content", string(g.data), string(data)),
			same("crc32", aws.ToString(g.ChecksumCRC32), crc32Of(data)),
			same("encoding", aws.ToString(g.ContentEncoding), ""),
		)
	}},
	{"multipart-full-object-crc64", func(f *conf) error {
		m, err := f.begin(func(in *s3.CreateMultipartUploadInput) {
			in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc64nvme
			in.ChecksumType = types.ChecksumTypeFullObject
		})
		if err != nil {
			return err
		}
		data := noise(f.min + 10)
		alg := func(in *s3.UploadPartInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc64nvme }
		if err := all(m.part(1, data[:f.min], alg), m.part(2, data[f.min:], alg)); err != nil {
			return err
		}
		m.done[0].ChecksumCRC64NVME = aws.String(crc64Of(data[:f.min]))
		m.done[1].ChecksumCRC64NVME = aws.String(crc64Of(data[f.min:]))
		_, wrong := m.complete(func(in *s3.CompleteMultipartUploadInput) {
			in.ChecksumType, in.ChecksumCRC64NVME = types.ChecksumTypeFullObject, aws.String(crc64Of([]byte("x")))
		})
		out, right := m.complete(func(in *s3.CompleteMultipartUploadInput) {
			in.ChecksumType, in.ChecksumCRC64NVME = types.ChecksumTypeFullObject, aws.String(crc64Of(data))
		})
		if err := all(refused(wrong, 400, "BadDigest"), right); err != nil {
			return err
		}
		g, err := f.get("k", asked)
		if err != nil {
			return err
		}
		return all(
			same("answered", aws.ToString(out.ChecksumCRC64NVME), crc64Of(data)),
			same("type", out.ChecksumType, types.ChecksumTypeFullObject),
			same("read back", aws.ToString(g.ChecksumCRC64NVME), crc64Of(data)),
		)
	}},
	{"multipart-composite-crc32c", func(f *conf) error {
		m, err := f.begin(func(in *s3.CreateMultipartUploadInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c })
		if err != nil {
			return err
		}
		data := noise(f.min + 10)
		alg := func(in *s3.UploadPartInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c }
		if err := all(m.part(1, data[:f.min], alg), m.part(2, data[f.min:], alg)); err != nil {
			return err
		}
		var sums []byte
		for i, piece := range [][]byte{data[:f.min], data[f.min:]} {
			sum := crc32cOf(piece)
			m.done[i].ChecksumCRC32C = &sum
			raw, _ := base64.StdEncoding.DecodeString(sum) // just encoded
			sums = append(sums, raw...)
		}
		right := m.done[0].ChecksumCRC32C
		m.done[0].ChecksumCRC32C = m.done[1].ChecksumCRC32C
		_, wrong := m.complete()
		m.done[0].ChecksumCRC32C = right
		out, err := m.complete()
		if err := all(refused(wrong, 400, "InvalidPart"), err); err != nil {
			return err
		}
		return same("checksum", aws.ToString(out.ChecksumCRC32C), crc32cOf(sums)+"-2")
	}},
}
