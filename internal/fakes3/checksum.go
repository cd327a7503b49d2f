package fakes3

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strings"
	"sync"
)

// algorithms are the checksum algorithms of S3, in the order in which answers
// name them.
var algorithms = []string{"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}

// crc64NVME is the table of the CRC-64/NVME polynomial in the reversed form
// that hash/crc64 takes.
var crc64NVME = sync.OnceValue(func() *crc64.Table { return crc64.MakeTable(0x9a6c9329ac4bc9b5) })

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newHash(alg string) hash.Hash {
	switch alg {
	case "crc32":
		return crc32.NewIEEE()
	case "crc32c":
		return crc32.New(castagnoli)
	case "crc64nvme":
		return crc64.New(crc64NVME())
	case "sha1":
		return sha1.New()
	case "sha256":
		return sha256.New()
	}
	return nil
}

func sum64(h hash.Hash) string { return base64.StdEncoding.EncodeToString(h.Sum(nil)) }

func ropeSum(alg string, r rope) string {
	h := newHash(alg)
	for _, b := range r {
		h.Write(b)
	}
	return sum64(h)
}

func checksumHeader(alg string) string { return "x-amz-checksum-" + alg }

// checksumElement is the name of alg in XML, such as ChecksumCRC32C.
func checksumElement(alg string) string { return "Checksum" + strings.ToUpper(alg) }

// announced returns the checksum that a header of the request carries, if any.
func announced(h http.Header) (alg, value string) {
	for _, a := range algorithms {
		if v := h.Get(checksumHeader(a)); v != "" {
			return a, v
		}
	}
	return "", ""
}

// requested returns the algorithm the client names without giving a value.
func requested(h http.Header) string {
	for _, name := range []string{"x-amz-checksum-algorithm", "x-amz-sdk-checksum-algorithm"} {
		if v := strings.ToLower(h.Get(name)); newHash(v) != nil {
			return v
		}
	}
	return ""
}

// composite is the checksum of checksums of a multipart upload.
func composite(alg string, parts []*storedPart) string {
	h := newHash(alg)
	for _, p := range parts {
		raw, _ := base64.StdEncoding.DecodeString(p.sums[alg]) // our own encoding
		h.Write(raw)
	}
	return sum64(h) + "-" + itoa(len(parts))
}

// usesChecksums reports whether a request carries anything of the checksum
// features that servers before them refuse.
func usesChecksums(h http.Header) bool {
	for name := range h {
		n := strings.ToLower(name)
		if strings.HasPrefix(n, "x-amz-checksum-") || n == "x-amz-sdk-checksum-algorithm" || n == "x-amz-trailer" {
			return true
		}
	}
	return framed(h)
}

// framed reports whether the body is in aws-chunked coding. S3 tells by the
// payload hash header; a Content-Encoding of aws-chunked alone also counts.
func framed(h http.Header) bool {
	return strings.HasPrefix(h.Get("x-amz-content-sha256"), "STREAMING-") ||
		hasToken(h.Get("Content-Encoding"), "aws-chunked")
}

func hasToken(list, token string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(t), token) {
			return true
		}
	}
	return false
}

// withoutToken removes token from a comma-separated list.
func withoutToken(list, token string) string {
	var keep []string
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimSpace(t); t != "" && !strings.EqualFold(t, token) {
			keep = append(keep, t)
		}
	}
	return strings.Join(keep, ",")
}
