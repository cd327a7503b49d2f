package azblob_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/realserver/storetable"
)

const undocumented = storetable.Undocumented

// wrongTag is no blob's.
const wrongTag = `"0x8D000000000000"`

// azureQuestions are those in which the servers differ, or whose answer the store relies on.
func azureQuestions() []storetable.Question[*azureServer] {
	const (
		conditional = `"Specifying conditional headers"`
		codes       = `"Blob service error codes"`
		getBlob     = `"Get Blob"`
		putBlock    = `"Put Block"`
		blockList   = `"Put Block List"`
		listing     = `"Listing Blob storage resources"`
		metadata    = `"Setting and retrieving properties and metadata"`
		naming      = `"Naming and referencing containers, blobs, and metadata"`
		versioning  = `"Versioning for Azure Storage"`
		softDelete  = `"Soft delete for blobs"`
	)
	exists := func(p *azureProbe) *azureProbe { p.must(p.put("k", "old")); return p }
	var out []storetable.Question[*azureServer]
	for _, q := range []struct {
		text, documented, source string
		ask                      func(p *azureProbe) string
	}{
		{"version", undocumented, "", func(p *azureProbe) string { return p.version }},

		{"Put Blob, If-None-Match: *, blob exists", "409 BlobAlreadyExists", codes, func(p *azureProbe) string { return exists(p).put("k", "new", "If-None-Match", "*").String() }},
		{"Put Block List, If-None-Match: *, blob exists", "409 BlobAlreadyExists", codes, func(p *azureProbe) string {
			p.must(exists(p).stage("a", "1"))
			return p.commit([]string{"a"}, "If-None-Match", "*").String()
		}},
		{"Put Blob, If-None-Match: *, only uncommitted blocks there", undocumented, "", func(p *azureProbe) string {
			p.must(p.stage("a", "1"))
			return p.put("k", "new", "If-None-Match", "*").String()
		}},
		{"Put Blob, If-Match wrong", "412 ConditionNotMet", conditional, func(p *azureProbe) string { return exists(p).put("k", "new", "If-Match", wrongTag).String() }},
		{"Put Blob, If-Match, blob absent", "412 ConditionNotMet", conditional, func(p *azureProbe) string { return p.put("k", "new", "If-Match", wrongTag).String() }},
		{"Delete, If-Match wrong", "412 ConditionNotMet", conditional, func(p *azureProbe) string {
			return exists(p).do("DELETE", "k", "", "", "If-Match", wrongTag).String()
		}},
		{"Delete, If-Match, blob absent", undocumented, "", func(p *azureProbe) string { return p.do("DELETE", "k", "", "", "If-Match", wrongTag).String() }},
		{"Delete, blob absent", "404 BlobNotFound", codes, func(p *azureProbe) string { return p.do("DELETE", "k", "", "").String() }},
		{"Get, If-Match, blob absent", undocumented, "", func(p *azureProbe) string { return p.get("If-Match", wrongTag).String() }},
		{"Get, If-Match wrong", "412 ConditionNotMet", conditional, func(p *azureProbe) string { return exists(p).get("If-Match", wrongTag).String() }},
		{"Get, If-None-Match right", "304 ConditionNotMet", conditional, func(p *azureProbe) string {
			return p.get("If-None-Match", p.must(p.put("k", "old")).Header.Get("ETag")).String()
		}},

		{"Get of a range past the end", "416 InvalidRange", codes, func(p *azureProbe) string { return exists(p).get("x-ms-range", "bytes=4-9").String() }},
		{"Get of a range that begins at the end", "416 InvalidRange", codes, func(p *azureProbe) string { return exists(p).rangeOf("bytes=3-9") }},
		{"Get of a range of an empty blob", "416 InvalidRange", codes, func(p *azureProbe) string { p.must(p.put("k", "")); return p.rangeOf("bytes=0-9") }},
		{"MD5 of a range on request", "Content-MD5", getBlob, func(p *azureProbe) string {
			r := exists(p).get("x-ms-range", "bytes=0-1", "x-ms-range-get-content-md5", "true")
			if r.Header.Get("Content-MD5") == md5Of("ol") {
				return "Content-MD5"
			}
			return r.String() + ", none"
		}},

		{"Put Blob, wrong Content-MD5", "400 Md5Mismatch", codes, func(p *azureProbe) string { return p.put("k", "new", "Content-MD5", md5Of("old")).String() }},
		{"Put Block, wrong Content-MD5", "400 Md5Mismatch", codes, func(p *azureProbe) string { return p.stage("a", "new", "Content-MD5", md5Of("old")).String() }},
		{"Put Block, wrong CRC64", "400 Crc64Mismatch", putBlock, func(p *azureProbe) string {
			return p.stage("a", "new", "x-ms-content-crc64", "AAAAAAAAAAA=").String()
		}},
		{"Put Block, an id of another length", "400 InvalidBlobOrBlock", putBlock, func(p *azureProbe) string { p.must(p.stage("a", "1")); return p.stage("aaaa", "2").String() }},
		{"Put Block List, a block unknown", "400 InvalidBlockList", codes, func(p *azureProbe) string {
			p.must(p.stage("a", "1"))
			return p.commit([]string{"b"}).String()
		}},
		{"Put Block List again, after a lost reply", "201", blockList, func(p *azureProbe) string {
			p.must(p.stage("a", "1"))
			p.must(p.commit([]string{"a"}))
			return p.commit([]string{"a"}).String()
		}},
		{"Put Block List, its blocks discarded by a Put Blob", "400 InvalidBlockList", `"Put Blob"`, func(p *azureProbe) string {
			p.must(p.stage("a", "1"))
			p.must(p.put("k", "other"))
			return p.commit([]string{"a"}).String()
		}},
		{"Put Block List, its blocks discarded by another", "400 InvalidBlockList", blockList, func(p *azureProbe) string {
			p.must(p.stage("a", "1"))
			p.must(p.stage("b", "2"))
			p.must(p.commit([]string{"b"}))
			return p.commit([]string{"a"}).String()
		}},
		{"Content-MD5 of a blob of blocks", "none", getBlob, func(p *azureProbe) string {
			p.must(p.stage("a", "1"))
			p.must(p.commit([]string{"a"}))
			if r := p.get(); r.Header.Get("Content-MD5") != "" {
				return "computed"
			}
			return "none"
		}},

		{"list, a delimiter of two characters", "folds at both", listing, listTwo},
		{"list, order of U+FF5E and U+1F600", undocumented, "", listOrder},
		{"list, 0 results", "400 OutOfRangeQueryParameterValue", listing, func(p *azureProbe) string { return p.list("&maxresults=0").String() }},
		{"list, a blob of uncommitted blocks only", "left out", putBlock, func(p *azureProbe) string {
			p.must(p.stage("a", "1"))
			if len(p.names("")) == 0 {
				return "left out"
			}
			return "listed"
		}},

		{"name `a//b`", "kept", naming, func(p *azureProbe) string { return p.storedAs("a//b") }},
		{"name `a/`", "kept", naming, func(p *azureProbe) string { return p.storedAs("a/") }},
		{"name `a\\b`", undocumented, "", func(p *azureProbe) string { return p.storedAs(`a\b`) }},
		{"name of 1025 characters", "400", naming, func(p *azureProbe) string {
			r := p.put(strings.Repeat("n", 1025-len(p.key)), "")
			if r.StatusCode == http.StatusBadRequest {
				return "400"
			}
			return r.String()
		}},

		{"metadata, name in capitals", "kept", metadata, func(p *azureProbe) string {
			p.must(p.put("k", "", "x-ms-meta-SomeName", "a Value"))
			if r := p.must(p.list("&include=metadata")); strings.Contains(r.body, "<SomeName>a Value</SomeName>") {
				return "kept"
			}
			return "changed"
		}},
		{"metadata of more than 8 KiB", "400 MetadataTooLarge", metadata, func(p *azureProbe) string { return p.put("k", "", "x-ms-meta-m", strings.Repeat("v", 8193)).String() }},
		{"a version of the API that is not there", "400 InvalidHeaderValue", versioning, func(p *azureProbe) string { return p.put("k", "", "x-ms-version", "2999-01-01").String() }},
		{"Undelete Blob, nothing deleted", "200", softDelete, func(p *azureProbe) string { return exists(p).do("PUT", "k", "comp=undelete", "").String() }},
	} {
		out = append(out, storetable.Question[*azureServer]{Text: q.text, Documented: q.documented, Source: q.source, Ask: func(t *testing.T, server *azureServer, key string) string {
			return q.ask(&azureProbe{t, server, key})
		}})
	}
	return out
}

func (p *azureProbe) rangeOf(spec string) string {
	r := p.get("x-ms-range", spec)
	if r.StatusCode == http.StatusPartialContent {
		return fmt.Sprintf("206, %d bytes, Content-Range: %s", len(r.body), r.Header.Get("Content-Range"))
	}
	return r.String()
}

func listTwo(p *azureProbe) string {
	p.must(p.put("a--b", ""))
	p.must(p.put("a-c", ""))
	switch got := strings.Join(p.names("&delimiter=--"), " "); got {
	case "a-- a-c", "a-c a--":
		return "folds at both"
	default:
		return "`" + got + "`"
	}
}

func listOrder(p *azureProbe) string {
	const wide, face = "\uff5e", "\U0001f600"
	p.must(p.put(wide, ""))
	p.must(p.put(face, ""))
	switch got := p.names(""); {
	case slices.Equal(got, []string{wide, face}):
		return "that of UTF-8"
	case slices.Equal(got, []string{face, wide}):
		return "that of UTF-16"
	default:
		return fmt.Sprintf("%q", got)
	}
}

// storedAs writes a blob, and says what became of its name.
func (p *azureProbe) storedAs(name string) string {
	if r := p.put(name, "content"); r.StatusCode != http.StatusCreated {
		return r.String()
	}
	switch got := p.names(""); {
	case len(got) != 1:
		return fmt.Sprintf("listed %d times", len(got))
	case got[0] != name:
		return "listed as `" + got[0] + "`"
	}
	return "kept"
}
