package fakeaz_test

import (
	"fmt"
	"net/url"
	"strings"
)

var blockChecks = []check{
	{"blocks-become-a-blob", func(f *conf) error {
		a, b := f.stage("k", "b1", "world"), f.stage("k", "a1", "hello ")
		c := f.commit("k", []string{"Uncommitted:a1", "Latest:b1"}, "x-ms-meta-a", "1", "x-ms-blob-content-type", "text/x", "Content-Type", "application/xml")
		g := f.get("k")
		return all(a.is(201), b.is(201), c.is(201), g.holds(200, "hello world"), g.has("ETag", c.Header.Get("ETag")),
			g.has("x-ms-meta-a", "1"), g.has("Content-Type", "text/x"), g.has("Content-MD5", ""))
	}},
	{"blocks-are-not-seen-before-the-commit", func(f *conf) error {
		return all(f.stage("k", "a", "1").is(201), f.get("k").refused(404, "BlobNotFound"), f.head("k").is(404), f.del("k").is(404),
			f.put("old", "0").is(201), f.stage("old", "a", "1").is(201), f.get("old").holds(200, "0"))
	}},
	{"uncommitted-blobs-are-listed-on-request", func(f *conf) error {
		f.stage("k", "a", "1")
		plain, with := f.list(""), f.list("include=uncommittedblobs")
		return all(same("listed", strings.Count(plain.body, "<Blob>"), 0), same("listed with uncommittedblobs", strings.Count(with.body, "<Blob>"), 1))
	}},
	{"block-ids-of-two-lengths", func(f *conf) error {
		return all(f.stage("k", "a", "1").is(201), f.stage("k", "aaaa", "1").refused(400, "InvalidBlobOrBlock"))
	}},
	{"block-id-of-64-bytes", func(f *conf) error { return f.stage("k", strings.Repeat("x", 64), "1").is(201) }},
	{"block-id-of-65-bytes", func(f *conf) error {
		return f.stage("k", strings.Repeat("x", 65), "1").is(400)
	}},
	{"block-id-not-base64", func(f *conf) error {
		return f.do("PUT", f.at("k", "comp=block&blockid=%21%21"), "1").refused(400, "InvalidQueryParameterValue")
	}},
	{"block-of-nothing", func(f *conf) error { return f.stage("k", "a", "").is(400) }},
	{"block-md5", func(f *conf) error {
		good, bad := f.stage("k", "a", "hello", "Content-MD5", sumMD5("hello")), f.stage("k", "b", "hello", "Content-MD5", sumMD5("other"))
		return all(good.is(201), good.has("Content-MD5", sumMD5("hello")), bad.refused(400, "Md5Mismatch"), f.commit("k", []string{"Latest:b"}).is(400))
	}},
	{"block-crc64", func(f *conf) error {
		good, bad := f.stage("k", "a", "hello", "x-ms-content-crc64", crc64Hello), f.stage("k", "b", "other", "x-ms-content-crc64", crc64Hello)
		return all(good.is(201), good.has("x-ms-content-crc64", crc64Hello), bad.refused(400, "Crc64Mismatch"))
	}},
	{"block-sent-again-replaces", func(f *conf) error {
		return all(f.stage("k", "a", "1").is(201), f.stage("k", "a", "2").is(201), f.commit("k", []string{"Latest:a"}).is(201), f.get("k").holds(200, "2"))
	}},
	{"commit-of-an-unknown-block", func(f *conf) error {
		return all(f.stage("k", "a", "1").is(201), f.commit("k", []string{"Latest:a", "Latest:b"}).refused(400, "InvalidBlockList"), f.get("k").is(404),
			f.commit("k", []string{"Latest:a"}).is(201))
	}},
	{"commit-of-one-block-twice", func(f *conf) error {
		return all(f.stage("k", "a", "1").is(201), f.commit("k", []string{"Latest:a", "Latest:a"}).is(201), f.get("k").holds(200, "11"))
	}},
	{"commit-of-no-blocks", func(f *conf) error {
		return all(f.put("k", "1").is(201), f.commit("k", nil).is(201), f.get("k").holds(200, ""))
	}},
	{"commit-again-by-latest", func(f *conf) error { // as after a lost reply
		f.stage("k", "a", "1")
		one, two := f.commit("k", []string{"Latest:a"}), f.commit("k", []string{"Latest:a"})
		return all(one.is(201), two.is(201), f.commit("k", []string{"Uncommitted:a"}).refused(400, "InvalidBlockList"), f.get("k").holds(200, "1"))
	}},
	{"commit-mixes-old-and-new", func(f *conf) error {
		f.stage("k", "a", "1")
		f.stage("k", "b", "2")
		one := f.commit("k", []string{"Latest:a", "Latest:b"})
		f.stage("k", "a", "3")
		return all(one.is(201), f.commit("k", []string{"Committed:a", "Uncommitted:a", "Latest:a", "Latest:b"}).is(201), f.get("k").holds(200, "1332"))
	}},
	{"commit-discards-the-rest", func(f *conf) error {
		f.stage("k", "a", "1")
		f.stage("k", "b", "2")
		return all(f.commit("k", []string{"Latest:a"}).is(201), f.commit("k", []string{"Latest:b"}).refused(400, "InvalidBlockList"))
	}},
	{"put-discards-blocks", func(f *conf) error {
		return all(f.stage("k", "a", "1").is(201), f.put("k", "0").is(201), f.commit("k", []string{"Latest:a"}).refused(400, "InvalidBlockList"), f.get("k").holds(200, "0"))
	}},
	{"commit-if-absent-refused-keeps-blocks", func(f *conf) error {
		p := f.put("k", "0")
		s := f.stage("k", "a", "1")
		return all(p.is(201), s.is(201), f.commit("k", []string{"Latest:a"}, "If-None-Match", "*").refused(409, "BlobAlreadyExists"),
			f.get("k").holds(200, "0"), f.commit("k", []string{"Latest:a"}).is(201), f.get("k").holds(200, "1"))
	}},
	{"commit-keeps-an-md5-unverified", func(f *conf) error {
		f.stage("k", "a", "1")
		return all(f.commit("k", []string{"Latest:a"}, "x-ms-blob-content-md5", sumMD5("other")).is(201), f.get("k").has("Content-MD5", sumMD5("other")))
	}},
	{"commit-of-a-list-that-came-damaged", func(f *conf) error {
		f.stage("k", "a", "1")
		return all(f.commit("k", []string{"Latest:a"}, "Content-MD5", sumMD5("other")).refused(400, "Md5Mismatch"), f.get("k").is(404))
	}},
	{"commit-of-no-xml", func(f *conf) error {
		return f.do("PUT", f.at("k", "comp=blocklist"), "<BlockList><Latest>").refused(400, "InvalidXmlDocument")
	}},
	{"block-list", func(f *conf) error {
		f.stage("k", "a", "1")
		f.commit("k", []string{"Latest:a"})
		f.stage("k", "b", "23")
		list := func(kind string) string {
			body := f.do("GET", f.at("k", "comp=blocklist"+kind), "").body
			if i := strings.Index(body, "<BlockList"); i >= 0 {
				return body[i:]
			}
			return body
		}
		entry := func(id string, n int) string {
			return fmt.Sprintf("<Block><Name>%s</Name><Size>%d</Size></Block>", blockID(id), n)
		}
		committed := "<CommittedBlocks>" + entry("a", 1) + "</CommittedBlocks>"
		loose := "<UncommittedBlocks>" + entry("b", 2) + "</UncommittedBlocks>"
		return all(same("all", list("&blocklisttype=all"), "<BlockList>"+committed+loose+"</BlockList>"),
			same("committed", list("&blocklisttype=committed"), "<BlockList>"+committed+"</BlockList>"),
			same("default", list(""), "<BlockList>"+committed+"</BlockList>"))
	}},
	{"block-list-of-nothing", func(f *conf) error {
		return f.do("GET", f.at("k", "comp=blocklist&blocklisttype="+url.QueryEscape("all")), "").refused(404, "BlobNotFound")
	}},
}
