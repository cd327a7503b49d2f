package fakegcs_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
)

// clock is the time of a server, which a test turns.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.ns.Load()) }
func (c *clock) turn(d time.Duration) { c.ns.Add(int64(d)) }

func TestDeletesObeyConditions(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	gen := r.put("k", "1").Generation
	for query, status := range map[string]int{
		"ifGenerationMatch=5": 412, "ifGenerationMatch=0": 412, "ifMetagenerationMatch=2": 412, "generation=5": 404,
		"ifGenerationNotMatch=" + gen: 304, "ifMetagenerationNotMatch=1": 304, "ifGenerationMatch=x": 400,
	} {
		r.want(status, "DELETE", object+"k?"+query, nil)
		r.holds("k", []byte("1"))
	}
	if a := r.want(204, "DELETE", object+"k?ifGenerationMatch="+gen, nil); a.text != "" {
		t.Errorf("%q", a.text)
	}
	r.want(404, "DELETE", object+"k", nil)
	r.want(404, "DELETE", object+"k?ifGenerationMatch="+gen, nil)
	r.want(404, "DELETE", "/storage/v1/b/other/o/k", nil)
}

func TestDeletedObjectsCanBeRestoredForATime(t *testing.T) {
	c := newClock()
	r := newRaw(t, fakegcs.Options{Now: c.now})
	first := r.multipart(200, "", `{"name":"k","contentType":"text/html","metadata":{"one":"1"}}`, "first").resource(t)
	c.turn(time.Hour)
	second := r.put("k", "second") // what was replaced is soft-deleted too
	c.turn(time.Hour)
	r.want(204, "DELETE", object+"k", nil)
	soft := r.want(200, "GET", object+"k?softDeleted=true&generation="+first.Generation, nil).resource(t)
	if soft.SoftDeleteTime != "2026-01-02T04:04:05.000Z" || soft.HardDeleteTime != "2026-01-09T04:04:05.000Z" || soft.Metadata["one"] != "1" {
		t.Errorf("%+v", soft)
	}
	r.want(404, "GET", object+"k?generation="+first.Generation, nil)
	r.want(400, "GET", object+"k?softDeleted=true", nil)
	r.want(400, "GET", object+"k?alt=media&softDeleted=true&generation="+first.Generation, nil)
	if got := fmt.Sprint(r.walk("softDeleted=true"), r.walk("softDeleted=true&maxResults=1"), r.walk(""), r.walk("versions=true")); got != "[k|k] [k k] [] []" {
		t.Error(got)
	}

	const restore = object + "k/restore?generation="
	r.want(400, "POST", object+"k/restore", nil)
	r.want(404, "POST", restore+"5", nil)
	r.want(412, "POST", restore+first.Generation+"&ifGenerationMatch=7", nil)
	r.absent("k")
	got := r.want(200, "POST", restore+first.Generation+"&ifGenerationMatch=0", nil).resource(t)
	if got.Generation <= second.Generation || got.Metageneration != "1" || got.Metadata["one"] != "1" || got.ContentType != "text/html" ||
		got.TimeCreated != "2026-01-02T05:04:05.000Z" || got.SoftDeleteTime != "" {
		t.Errorf("%+v", got)
	}
	r.holds("k", []byte("first"))
	r.want(412, "POST", restore+second.Generation+"&ifGenerationMatch=0", nil)
	r.want(200, "POST", restore+second.Generation+"&ifGenerationMatch="+got.Generation, nil)
	r.holds("k", []byte("second"))
	if n := len(r.s.Versions("bucket", "k")); n != 4 { // live, and three that are soft-deleted: a restore takes nothing away
		t.Errorf("%d versions", n)
	}

	c.turn(7*24*time.Hour - time.Hour)
	r.want(404, "POST", restore+first.Generation, nil)
	r.want(404, "GET", object+"k?softDeleted=true&generation="+first.Generation, nil)
	r.want(200, "POST", restore+second.Generation, nil) // deleted an hour later
	c.turn(time.Hour)
	r.want(404, "POST", restore+second.Generation, nil)
}

func TestWithoutSoftDeletionNothingIsKept(t *testing.T) {
	r := newRaw(t, fakegcs.Options{SoftDelete: -1})
	gen := r.put("k", "1").Generation
	r.want(204, "DELETE", object+"k", nil)
	r.want(404, "POST", object+"k/restore?generation="+gen, nil)
	r.s.SetSoftDelete("bucket", time.Hour)
	gen = r.put("k", "2").Generation
	r.want(204, "DELETE", object+"k", nil)
	r.s.Set(func(k *fakegcs.Knobs) { k.NoSoftDelete = true })
	r.want(400, "POST", object+"k/restore?generation="+gen, nil)
	r.want(400, "GET", listURL+"softDeleted=true", nil)
	r.want(400, "GET", object+"k?softDeleted=true&generation="+gen, nil)
}

func TestVersionedBucketsKeepNoncurrentGenerations(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Versioned: true})
	first := r.put("k", "first").Generation
	second := r.put("k", "second").Generation
	r.want(204, "DELETE", object+"k", nil)
	r.want(404, "GET", object+"k", nil)
	r.want(404, "DELETE", object+"k", nil)
	for gen, text := range map[string]string{first: "first", second: "second"} {
		if a := r.want(200, "GET", object+"k?alt=media&generation="+gen, nil); a.text != text {
			t.Errorf("%q", a.text)
		}
		r.want(404, "POST", object+"k/restore?generation="+gen, nil) // noncurrent, not soft-deleted
	}
	// Copying a noncurrent generation over the live one brings it back.
	r.want(200, "POST", object+"k/rewriteTo/b/bucket/o/k?sourceGeneration="+first+"&ifGenerationMatch=0", nil)
	r.holds("k", []byte("first"))
	// A generation that is named is deleted for good, but for soft deletion.
	r.want(204, "DELETE", object+"k?generation="+second, nil)
	r.want(404, "GET", object+"k?generation="+second, nil)
	r.want(200, "POST", object+"k/restore?generation="+second, nil)
	r.holds("k", []byte("second"))
	live, _ := r.s.Object("bucket", "k")
	r.want(204, "DELETE", object+"k?generation="+itoa(live.Generation), nil)
	r.absent("k")
	if vs := r.s.Versions("bucket", "k"); len(vs) != 4 || vs[1].Noncurrent.IsZero() || vs[3].SoftDeleted.IsZero() {
		t.Errorf("%d versions", len(vs))
	}
	r.s.SetVersioning("bucket", false)
	r.put("k", "third")
	r.want(204, "DELETE", object+"k", nil)
	if n := len(r.s.Versions("bucket", "k")); n != 5 {
		t.Errorf("%d versions", n)
	}
}

func TestAChangeOfMetadataIsANewMetageneration(t *testing.T) {
	c := newClock()
	r := newRaw(t, fakegcs.Options{Now: c.now})
	put := r.multipart(200, "", `{"name":"k","contentType":"text/css","metadata":{"one":"1","two":"2"}}`, "x").resource(t)
	c.turn(time.Second)
	got := r.want(200, "PATCH", object+"k?ifMetagenerationMatch=1", []byte(`{"metadata":{"one":null,"three":"3"},"cacheControl":"no-cache"}`)).resource(t)
	if got.Metageneration != "2" || got.Generation != put.Generation || got.ETag == put.ETag || got.TimeCreated != put.TimeCreated ||
		got.Updated == put.Updated || fmt.Sprint(got.Metadata) != "map[three:3 two:2]" || got.ContentType != "text/css" {
		t.Errorf("%+v", got)
	}
	r.want(412, "PATCH", object+"k?ifMetagenerationMatch=1", []byte(`{}`))
	r.want(400, "PATCH", object+"k", []byte(`{"metadata":7}`))
	r.want(400, "PATCH", object+"k", []byte(`{`))
	r.want(404, "PATCH", object+"missing", []byte(`{}`))
	got = r.want(200, "PUT", object+"k", []byte(`{"contentType":"text/html"}`)).resource(t)
	if got.Metageneration != "3" || got.Metadata != nil || got.ContentType != "text/html" {
		t.Errorf("%+v", got)
	}
	r.want(200, "PATCH", object+"k", []byte(`{"metadata":{"one":"1"}}`))
	got = r.want(200, "PATCH", object+"k", []byte(`{"metadata":null}`)).resource(t)
	if len(got.Metadata) != 0 || got.Metageneration != "5" {
		t.Errorf("%+v", got)
	}
	r.holds("k", []byte("x"))
}

func TestCopies(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Buckets: []string{"bucket", "other"}, Knobs: fakegcs.Knobs{RewriteStep: 4}})
	src := r.multipart(200, "", `{"name":"a/b","contentType":"text/css","metadata":{"one":"1"}}`, "0123456789").resource(t)
	const to = object + "a%2Fb/rewriteTo/b/other/o/x%2Fy"
	var doc struct {
		Done                                          bool
		RewriteToken, TotalBytesRewritten, ObjectSize string
		Resource                                      resource
	}
	for i, want := range []string{"4", "8", "10"} {
		url := to + "?rewriteToken=" + doc.RewriteToken
		doc.RewriteToken = ""
		r.want(200, "POST", url, nil).decode(t, &doc)
		if doc.TotalBytesRewritten != want || doc.ObjectSize != "10" || doc.Done != (i == 2) || doc.Done != (doc.RewriteToken == "") {
			t.Errorf("%+v", doc)
		}
	}
	if doc.Resource.Name != "x/y" || doc.Resource.Metadata["one"] != "1" || doc.Resource.Generation <= src.Generation {
		t.Errorf("%+v", doc.Resource)
	}
	r.want(400, "POST", to+"?rewriteToken=x", nil)
	r.want(200, "POST", to, nil).decode(t, &struct{ RewriteToken *string }{&doc.RewriteToken})
	src = r.put("a/b", "9876543210") // the token is not for what the source is now
	r.want(400, "POST", to+"?rewriteToken="+doc.RewriteToken, nil)
	live, _ := r.s.Object("other", "x/y")
	doc.Resource.Generation = itoa(live.Generation)
	r.s.Set(func(k *fakegcs.Knobs) { k.RewriteStep = 0 })
	for query, status := range map[string]int{
		"ifGenerationMatch=0": 412, "ifSourceGenerationMatch=7": 412, "sourceGeneration=7": 404, "ifGenerationMatch=7": 412,
	} {
		r.want(status, "POST", to+"?"+query, nil)
	}
	r.want(200, "POST", to+"?ifGenerationMatch="+doc.Resource.Generation+"&ifSourceGenerationMatch="+src.Generation, nil)
	r.want(404, "POST", object+"missing/rewriteTo/b/bucket/o/x", nil)
	r.want(404, "POST", object+"a%2Fb/rewriteTo/b/nowhere/o/x", nil)
	copied := r.want(200, "POST", object+"a%2Fb/copyTo/b/bucket/o/k", []byte(`{"metadata":{"two":"2"}}`)).resource(t)
	if copied.Name != "k" || copied.ContentType != "" || fmt.Sprint(copied.Metadata) != "map[two:2]" {
		t.Errorf("%+v", copied)
	}
	r.holds("k", []byte("9876543210"))
}

func TestBuckets(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	type bucket struct {
		Name             string
		Versioning       struct{ Enabled bool }
		SoftDeletePolicy struct{ RetentionDurationSeconds string }
	}
	var b bucket
	r.want(200, "GET", "/storage/v1/b/bucket", nil).decode(t, &b)
	if b.Name != "bucket" || b.Versioning.Enabled || b.SoftDeletePolicy.RetentionDurationSeconds != "604800" {
		t.Errorf("%+v", b)
	}
	r.want(200, "POST", "/storage/v1/b?project=p", []byte(`{"name":"new","versioning":{"enabled":true}}`)).decode(t, &b)
	if b.Name != "new" || !b.Versioning.Enabled {
		t.Errorf("%+v", b)
	}
	r.want(409, "POST", "/storage/v1/b?project=p", []byte(`{"name":"new"}`))
	r.want(400, "POST", "/storage/v1/b?project=p", []byte(`{"name":"x"}`))
	r.want(200, "PATCH", "/storage/v1/b/new", []byte(`{"softDeletePolicy":{"retentionDurationSeconds":"0"}}`)).decode(t, &b)
	if !b.Versioning.Enabled || b.SoftDeletePolicy.RetentionDurationSeconds != "0" {
		t.Errorf("%+v", b)
	}
	r.want(204, "DELETE", "/storage/v1/b/new", nil)
	r.put("k", "x")
	r.want(409, "DELETE", "/storage/v1/b/bucket", nil)
}
