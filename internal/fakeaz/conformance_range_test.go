package fakeaz_test

import (
	"net/http"
	"strings"
	"time"
)

// ranged is a check of one range of "0123456789".
func ranged(value string, status int, body, header string) func(*conf) error {
	return func(f *conf) error {
		p, g := f.put("k", "0123456789"), f.get("k", "Range", value)
		if status == http.StatusRequestedRangeNotSatisfiable {
			return all(p.is(201), g.refused(status, "InvalidRange"), g.has("Content-Range", header))
		}
		return all(p.is(201), g.holds(status, body), g.has("Content-Range", header))
	}
}

var rangeChecks = []check{
	{"range", ranged("bytes=1-3", 206, "123", "bytes 1-3/10")},
	{"range-open", ranged("bytes=7-", 206, "789", "bytes 7-9/10")},
	{"range-past-the-end-is-clipped", ranged("bytes=8-99", 206, "89", "bytes 8-9/10")},
	{"range-of-everything", ranged("bytes=0-9", 206, "0123456789", "bytes 0-9/10")},
	{"range-at-the-end", ranged("bytes=10-", 416, "", "bytes */10")},
	{"range-beyond-the-end", ranged("bytes=99-100", 416, "", "bytes */10")},
	{"range-of-an-empty-blob", func(f *conf) error {
		return all(f.put("k", "").is(201), f.get("k", "Range", "bytes=0-9").refused(416, "InvalidRange"))
	}},
	{"x-ms-range-goes-first", func(f *conf) error {
		return all(f.put("k", "0123456789").is(201), f.get("k", "Range", "bytes=1-3", "x-ms-range", "bytes=4-5").holds(206, "45"))
	}},
	{"range-suffix-is-not-a-form", func(f *conf) error {
		return all(f.put("k", "0123456789").is(201), f.get("k", "x-ms-range", "bytes=-3").refused(400, "InvalidHeaderValue"))
	}},
	{"head-knows-no-ranges", func(f *conf) error {
		f.put("k", "0123456789")
		h := f.head("k", "Range", "bytes=1-3")
		return all(h.is(200), h.has("Content-Length", "10"))
	}},
	{"range-md5-on-request", func(f *conf) error {
		f.put("k", "0123456789")
		g := f.get("k", "x-ms-range", "bytes=1-3", "x-ms-range-get-content-md5", "true")
		plain := f.get("k", "x-ms-range", "bytes=1-3")
		return all(g.holds(206, "123"), g.has("Content-MD5", sumMD5("123")), plain.has("Content-MD5", ""), plain.has("x-ms-blob-content-md5", sumMD5("0123456789")))
	}},
	{"range-md5-of-more-than-4-mib", func(f *conf) error {
		f.put("k", strings.Repeat("x", 4<<20+1))
		return f.get("k", "x-ms-range", "bytes=0-", "x-ms-range-get-content-md5", "true").is(400)
	}},
	{"range-md5-without-a-range", func(f *conf) error {
		f.put("k", "1")
		return f.get("k", "x-ms-range-get-content-md5", "true").is(400)
	}},
}

// sinceNow and before are dates on either side of what a check writes.
func sinceNow() string { return time.Now().Add(time.Hour).UTC().Format(http.TimeFormat) }
func before() string   { return time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) }

// written is a check of one write condition on a blob that exists, and on one that does not.
func written(name, value string, present, absent int) func(*conf) error {
	return func(f *conf) error {
		p := f.put("k", "1")
		v := strings.ReplaceAll(value, "ETAG", p.Header.Get("ETag"))
		content := "1"
		if present == 201 {
			content = "2"
		}
		put, none := f.put("k", "2", name, v), f.put("none", "2", name, v)
		stage := all(f.stage("k", "a", "3").is(201), f.stage("none2", "a", "3").is(201))
		v = strings.ReplaceAll(value, "ETAG", f.head("k").Header.Get("ETag"))
		g := f.get("k")
		commit, fresh := f.commit("k", []string{"Latest:a"}, name, v), f.commit("none2", []string{"Latest:a"}, name, v)
		return all(p.is(201), put.is(present), none.is(absent), stage, g.holds(200, content), commit.is(present), fresh.is(absent))
	}
}

// read is a check of one read condition.
func read(name, value string, status int) func(*conf) error {
	return func(f *conf) error {
		p := f.put("k", "1")
		v := strings.ReplaceAll(value, "ETAG", p.Header.Get("ETag"))
		g, h := f.get("k", name, v), f.head("k", name, v)
		if status == 200 {
			return all(g.holds(200, "1"), h.is(200))
		}
		code := "ConditionNotMet"
		if status == 400 {
			code = "UnsatisfiableCondition"
		}
		return all(g.refused(status, code), h.refused(status, code), f.get("none", name, v).refused(404, "BlobNotFound"))
	}
}

const otherETag = `"0x8D0000000000001"`

var conditionChecks = []check{
	{"put-if-match", written("If-Match", "ETAG", 201, 412)},
	{"put-if-match-other", written("If-Match", otherETag, 412, 412)},
	{"put-if-none-match-star", written("If-None-Match", "*", 409, 201)},
	{"put-if-none-match", written("If-None-Match", "ETAG", 412, 201)},
	{"put-if-none-match-other", written("If-None-Match", otherETag, 201, 201)},
	{"put-if-modified-since", written("If-Modified-Since", before(), 201, 201)},
	{"put-if-not-modified-since", written("If-Modified-Since", sinceNow(), 412, 201)},
	{"put-if-unmodified-since", written("If-Unmodified-Since", sinceNow(), 201, 201)},
	{"put-if-modified-before", written("If-Unmodified-Since", before(), 412, 201)},
	{"put-if-none-match-star-says-that-it-exists", func(f *conf) error {
		return all(f.put("k", "1").is(201), f.put("k", "2", "If-None-Match", "*").refused(409, "BlobAlreadyExists"))
	}},
	{"put-if-match-without-quotes", func(f *conf) error {
		e := f.put("k", "1").Header.Get("ETag")
		return f.put("k", "2", "If-Match", strings.Trim(e, `"`)).is(201)
	}},
	{"put-with-two-conditions", func(f *conf) error {
		e := f.put("k", "1").Header.Get("ETag")
		return f.put("k", "2", "If-Match", e, "If-None-Match", otherETag).refused(400, "MultipleConditionHeadersNotSupported")
	}},
	{"get-if-match", read("If-Match", "ETAG", 200)},
	{"get-if-match-other", read("If-Match", otherETag, 412)},
	{"get-if-match-star", read("If-Match", "*", 200)},
	{"get-if-match-list", read("If-Match", otherETag+",ETAG", 200)},
	{"get-if-none-match", read("If-None-Match", "ETAG", 304)},
	{"get-if-none-match-other", read("If-None-Match", otherETag, 200)},
	{"get-if-none-match-star", read("If-None-Match", "*", 400)},
	{"get-if-modified-since", read("If-Modified-Since", before(), 200)},
	{"get-if-not-modified-since", read("If-Modified-Since", sinceNow(), 304)},
	{"get-if-unmodified-since", read("If-Unmodified-Since", sinceNow(), 200)},
	{"get-if-modified-before", read("If-Unmodified-Since", before(), 412)},
	{"get-either-of-two", func(f *conf) error { // If-None-Match || If-Modified-Since
		e := f.put("k", "1").Header.Get("ETag")
		return f.get("k", "If-None-Match", e, "If-Modified-Since", before()).holds(200, "1")
	}},
	{"delete-if-match", func(f *conf) error {
		e := f.put("k", "1").Header.Get("ETag")
		return all(f.del("k", "If-Match", otherETag).refused(412, "ConditionNotMet"), f.get("k").holds(200, "1"), f.del("k", "If-Match", e).is(202), f.get("k").is(404))
	}},
	{"delete-if-match-of-nothing", func(f *conf) error { return f.del("k", "If-Match", otherETag).refused(404, "BlobNotFound") }},
}
