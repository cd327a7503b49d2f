package fakeaz_test

import (
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

func sumMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// crc64Hello is x-ms-content-crc64 of "hello", worked out by Azurite.
const crc64Hello = "V0JSBnCFdzM="

var objectChecks = []check{
	{"put-and-get", func(f *conf) error {
		p, g, h := f.put("k", "hello"), f.get("k"), f.head("k")
		return all(p.is(201), g.holds(200, "hello"), h.is(200), g.has("ETag", p.Header.Get("ETag")), h.has("ETag", p.Header.Get("ETag")),
			h.has("Content-Length", "5"), g.has("Content-Type", "application/octet-stream"), g.has("Accept-Ranges", "bytes"),
			h.has("x-ms-blob-type", "BlockBlob"), g.has("Content-MD5", sumMD5("hello")), p.has("Content-MD5", sumMD5("hello")))
	}},
	{"get-an-empty-blob", func(f *conf) error { return all(f.put("k", "").is(201), f.get("k").holds(200, "")) }},
	{"answers-name-the-request", func(f *conf) error {
		r := f.head("none", "x-ms-client-request-id", "mine")
		if r.Header.Get("x-ms-request-id") == "" || r.Header.Get("Date") == "" {
			return errors.New("no x-ms-request-id or no Date")
		}
		return all(r.has("x-ms-client-request-id", "mine"), r.has("x-ms-version", "2021-12-02"))
	}},
	{"missing-blob", func(f *conf) error {
		return all(f.get("k").refused(404, "BlobNotFound"), f.head("k").refused(404, "BlobNotFound"), f.del("k").refused(404, "BlobNotFound"))
	}},
	{"missing-container", func(f *conf) error {
		return f.do("GET", f.endpoint+"/no-such-container/k", "").refused(404, "ContainerNotFound")
	}},
	{"delete", func(f *conf) error {
		return all(f.put("k", "1").is(201), f.del("k").is(202), f.get("k").refused(404, "BlobNotFound"), f.del("k").refused(404, "BlobNotFound"))
	}},
	{"etag-is-new-for-equal-content", func(f *conf) error {
		a, b := f.put("k", "1"), f.put("k", "1")
		if a.Header.Get("ETag") == b.Header.Get("ETag") {
			return errors.New("two writes have one ETag")
		}
		if !strings.HasPrefix(a.Header.Get("ETag"), `"0x`) {
			return fmt.Errorf("ETag %s", a.Header.Get("ETag"))
		}
		return nil
	}},
	{"last-modified-is-a-date", func(f *conf) error {
		p := f.put("k", "1")
		t, err := http.ParseTime(p.Header.Get("Last-Modified"))
		if err == nil && time.Since(t).Abs() > time.Hour {
			err = fmt.Errorf("Last-Modified %v", t)
		}
		return all(err, f.get("k").has("Last-Modified", p.Header.Get("Last-Modified")))
	}},
	{"put-without-a-type", func(f *conf) error {
		return f.do("PUT", f.at("k", ""), "1").refused(400, "MissingRequiredHeader")
	}},
	{"put-without-a-length", func(f *conf) error {
		return all(f.put("k", "1", "Content-Length", "-1").refused(411, "MissingContentLengthHeader"), f.get("k").is(404))
	}},
	{"content-md5-right", func(f *conf) error { return f.put("k", "hello", "Content-MD5", sumMD5("hello")).is(201) }},
	{"content-md5-wrong", func(f *conf) error {
		return all(f.put("k", "old").is(201), f.put("k", "hello", "Content-MD5", sumMD5("other")).refused(400, "Md5Mismatch"), f.get("k").holds(200, "old"))
	}},
	{"content-md5-no-md5", func(f *conf) error {
		return all(f.put("k", "hello", "Content-MD5", "bm90").refused(400, "InvalidMd5"), f.get("k").is(404))
	}},
	{"blob-content-md5-wrong", func(f *conf) error {
		return all(f.put("k", "hello", "x-ms-blob-content-md5", sumMD5("other")).refused(400, "Md5Mismatch"), f.get("k").is(404))
	}},
	{"content-crc64-right", func(f *conf) error { return f.put("k", "hello", "x-ms-content-crc64", crc64Hello).is(201) }},
	{"content-crc64-wrong", func(f *conf) error {
		return all(f.put("k", "other", "x-ms-content-crc64", crc64Hello).refused(400, "Crc64Mismatch"), f.get("k").is(404))
	}},
	{"content-md5-and-crc64", func(f *conf) error {
		return f.put("k", "hello", "Content-MD5", sumMD5("hello"), "x-ms-content-crc64", crc64Hello).is(400)
	}},
	{"headers-come-back", func(f *conf) error {
		p := f.put("k", "1", "x-ms-blob-content-type", "text/x", "Content-Type", "text/y", "x-ms-blob-content-encoding", "e",
			"x-ms-blob-content-language", "l", "x-ms-blob-cache-control", "c", "x-ms-blob-content-disposition", "d")
		g := f.get("k")
		return all(p.is(201), g.has("Content-Type", "text/x"), g.has("Content-Encoding", "e"), g.has("Content-Language", "l"),
			g.has("Cache-Control", "c"), g.has("Content-Disposition", "d"))
	}},
	{"plain-content-type", func(f *conf) error {
		return all(f.put("k", "1", "Content-Type", "text/y").is(201), f.head("k").has("Content-Type", "text/y"))
	}},
	{"metadata", func(f *conf) error {
		p := f.put("k", "1", "x-ms-meta-abc", "one two", "x-ms-meta-x_1", "3")
		g, h := f.get("k"), f.head("k")
		return all(p.is(201), g.has("x-ms-meta-abc", "one two"), h.has("x-ms-meta-x_1", "3"))
	}},
	{"metadata-goes-with-an-overwrite", func(f *conf) error {
		return all(f.put("k", "1", "x-ms-meta-abc", "1").is(201), f.put("k", "1").is(201), f.head("k").has("x-ms-meta-abc", ""))
	}},
	{"metadata-no-identifier", func(f *conf) error {
		return all(f.put("k", "1", "x-ms-meta-a-b", "1").refused(400, "InvalidMetadata"), f.get("k").is(404))
	}},
	{"metadata-too-large", func(f *conf) error {
		return f.put("k", "1", "x-ms-meta-a", strings.Repeat("x", 4<<10), "x-ms-meta-b", strings.Repeat("x", 4<<10)).refused(400, "MetadataTooLarge")
	}},
	{"lease-without-a-lease", func(f *conf) error {
		r := f.put("k", "1", "x-ms-lease-id", "fa4ea200-0000-0000-0000-000000000000")
		if r.StatusCode/100 == 2 {
			return errors.New("accepted")
		}
		return nil
	}},
	{"name-of-1024", func(f *conf) error {
		name := strings.Repeat("x", 1024-len(f.prefix))
		return all(f.put(name, "1").is(201), f.get(name).holds(200, "1"))
	}},
	{"name-of-1025", func(f *conf) error { return f.put(strings.Repeat("x", 1025-len(f.prefix)), "1").is(400) }},
	{"copy-within-the-account", func(f *conf) error {
		p := f.put("from", "1", "x-ms-meta-a", "1", "Content-Type", "text/y")
		c := f.do("PUT", f.at("to/ü", ""), "", "x-ms-copy-source", f.at("from", ""))
		g := f.get("to/ü")
		return all(p.is(201), c.is(202), c.has("x-ms-copy-status", "success"), g.holds(200, "1"), g.has("x-ms-meta-a", "1"), g.has("Content-Type", "text/y"))
	}},
	{"copy-of-nothing", func(f *conf) error {
		return f.do("PUT", f.at("to", ""), "", "x-ms-copy-source", f.at("from", "")).is(404)
	}},
	{"copy-if-absent", func(f *conf) error {
		p, q := f.put("from", "1"), f.put("to", "2")
		c := f.do("PUT", f.at("to", ""), "", "x-ms-copy-source", f.at("from", ""), "If-None-Match", "*")
		return all(p.is(201), q.is(201), c.refused(409, "BlobAlreadyExists"), f.get("to").holds(200, "2"))
	}},
	{"snapshots-stand-in-the-way", func(f *conf) error {
		p := f.put("k", "1")
		s := f.do("PUT", f.at("k", "comp=snapshot"), "")
		q := f.put("k", "2")
		g := f.do("GET", f.at("k", "snapshot="+s.Header.Get("x-ms-snapshot")), "")
		d, e := f.del("k"), f.del("k", "x-ms-delete-snapshots", "include")
		return all(p.is(201), s.is(201), q.is(201), g.holds(200, "1"), d.refused(409, "SnapshotsPresent"), e.is(202), f.get("k").is(404))
	}},
	{"wrong-signature", func(f *conf) error {
		g := *f
		g.key = base64.StdEncoding.EncodeToString([]byte("another"))
		return all(f.put("k", "1").is(201), g.put("k", "2").refused(403, "AuthenticationFailed"), f.get("k").holds(200, "1"))
	}},
	{"no-authorization", func(f *conf) error {
		req, err := http.NewRequestWithContext(f, http.MethodGet, f.at("k", ""), nil)
		if err != nil {
			return err
		}
		r := f.send(req)
		if r.StatusCode/100 == 2 {
			return errors.New("accepted")
		}
		return f.put("k", "1").is(201)
	}},
}
