package fakeaz_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

const day = 24 * time.Hour

func (f *conf) undelete() reply { return f.do("PUT", f.at("k", "comp=undelete"), "") }

func TestASoftDeletedBlobComesBackWithinTheRetentionOnly(t *testing.T) {
	s, f, clock := startAt(t, fakeaz.Knobs{Retention: 7 * day})
	p := f.put("k", "1", "x-ms-meta-a", "1")
	d := f.del("k")
	report(t, d.is(202), d.has("x-ms-delete-type-permanent", "false"), f.get("k").refused(404, "BlobNotFound"), f.wantList("", 1), f.wantList("include=deleted", 1, "k"))
	clock.add(7*day - time.Second)
	u := f.undelete()
	g := f.get("k")
	report(t, u.is(200), g.holds(200, "1"), g.has("ETag", p.Header.Get("ETag")), g.has("x-ms-meta-a", "1"), f.wantList("include=deleted", 1, "k"), f.undelete().is(200))
	f.del("k")
	clock.add(7 * day)
	report(t, f.undelete().refused(404, "BlobNotFound"), f.wantList("include=deleted", 1))
	if n := len(s.Past("cont", "k")); n != 0 {
		t.Errorf("%d revisions are left", n)
	}
}

func TestWithoutSoftDeleteADeleteIsForEver(t *testing.T) {
	_, f, _ := startAt(t, fakeaz.Knobs{})
	f.put("k", "1")
	d := f.del("k")
	report(t, d.is(202), d.has("x-ms-delete-type-permanent", "true"), f.undelete().refused(404, "BlobNotFound"))
}

// "Soft delete for blobs": an overwrite keeps the old content as a soft-deleted snapshot; Undelete makes it a snapshot,
// and a blob with snapshots is not deleted without a word about them.
func TestAnOverwriteUnderSoftDeleteLeavesASnapshot(t *testing.T) {
	s, f, _ := startAt(t, fakeaz.Knobs{Retention: day})
	f.put("k", "1")
	f.put("k", "2")
	report(t, f.wantList("include=deleted", 1, "k"), f.wantList("include=deleted%2Csnapshots", 1, "k", "k"), f.wantList("include=snapshots", 1, "k"))
	past := s.Past("cont", "k")
	if len(past) != 1 || string(past[0].Bytes()) != "1" || !past[0].SoftDeleted {
		t.Fatalf("past: %+v", past)
	}
	old := f.at("k", "snapshot="+url.QueryEscape(past[0].Snapshot))
	report(t, f.do("GET", old, "").refused(404, "BlobNotFound"), f.undelete().is(200), f.get("k").holds(200, "2"), f.do("GET", old, "").holds(200, "1"),
		f.del("k").refused(409, "SnapshotsPresent"), f.del("k", "x-ms-delete-snapshots", "only").is(202), f.get("k").holds(200, "2"), f.del("k").is(202), f.get("k").is(404))
}

func TestAWriteOverASoftDeletedBlobKeepsBoth(t *testing.T) {
	s, f, _ := startAt(t, fakeaz.Knobs{Retention: day})
	f.put("k", "1")
	f.del("k")
	report(t, f.put("k", "2", "If-None-Match", "*").is(201), f.undelete().is(200), f.get("k").holds(200, "2"))
	if past := s.Past("cont", "k"); len(past) != 1 || string(past[0].Bytes()) != "1" || past[0].SoftDeleted {
		t.Errorf("past: %+v", past)
	}
}

func TestVersionsOutliveOverwritesAndDeletes(t *testing.T) {
	_, f, _ := startAt(t, fakeaz.Knobs{Versioning: true})
	v1 := f.put("k", "1").Header.Get("x-ms-version-id")
	v2 := f.put("k", "2").Header.Get("x-ms-version-id")
	if v1 == "" || v1 >= v2 {
		t.Fatalf("versions %q, %q", v1, v2)
	}
	at := func(v string) string { return f.at("k", "versionid="+url.QueryEscape(v)) }
	h := f.head("k")
	report(t, h.has("x-ms-version-id", v2), h.has("x-ms-is-current-version", "true"), f.do("GET", at(v1), "").holds(200, "1"),
		f.do("GET", at(v1), "").has("x-ms-is-current-version", ""), f.do("DELETE", at(v2), "").refused(403, "OperationNotAllowedOnRootBlob"))
	d := f.del("k")
	report(t, d.is(202), d.has("x-ms-delete-type-permanent", "false"), f.get("k").is(404), f.do("GET", at(v2), "").holds(200, "2"),
		f.undelete().is(200), f.get("k").is(404), // it promotes nothing
		f.wantList("", 1), f.wantList("include=versions", 1, "k", "k"), f.wantList("include=versions&maxresults=1", 2, "k", "k"),
		f.wantList("include=deletedwithversions", 1, "k"))
	c := f.do("PUT", f.at("k", ""), "", "x-ms-copy-source", at(v1), "If-None-Match", "*")
	report(t, c.is(202), f.get("k").holds(200, "1"), f.do("DELETE", at(v1), "").is(202), f.do("GET", at(v1), "").is(404))
	if body := f.list("include=versions").body; strings.Count(body, "<IsCurrentVersion>true") != 1 {
		t.Errorf("versions: %s", body)
	}
}

func TestADeletedVersionIsUndeletedWithSoftDelete(t *testing.T) {
	_, f, _ := startAt(t, fakeaz.Knobs{Versioning: true, Retention: day})
	v1 := f.put("k", "1").Header.Get("x-ms-version-id")
	f.put("k", "2")
	at := f.at("k", "versionid="+url.QueryEscape(v1))
	report(t, f.do("DELETE", at, "").is(202), f.do("GET", at, "").is(404), f.wantList("include=versions", 1, "k"), f.wantList("include=versions%2Cdeleted", 1, "k", "k"),
		f.undelete().is(200), f.do("GET", at, "").holds(200, "1"))
}

func TestUncommittedBlocksGoAfterAWeek(t *testing.T) {
	s, f, clock := startAt(t, fakeaz.Knobs{})
	f.stage("k", "a", "1")
	clock.add(7*day - time.Second)
	f.stage("k", "b", "22")
	clock.add(7*day - time.Second)
	if u := s.Uncommitted("cont"); len(u) != 1 || len(u[0].IDs) != 2 || u[0].Sizes[1] != 2 || u[0].Exists {
		t.Fatalf("uncommitted: %+v", u)
	}
	clock.add(time.Second)
	if u := s.Uncommitted("cont"); len(u) != 0 {
		t.Errorf("uncommitted: %+v", u)
	}
	report(t, f.commit("k", []string{"Latest:a"}).refused(400, "InvalidBlockList"))
}

func TestDatesHaveWholeSeconds(t *testing.T) {
	_, f, _ := startAt(t, fakeaz.Knobs{})
	date := f.put("k", "1").Header.Get("Last-Modified")
	report(t, same("Last-Modified", date, "Fri, 01 May 2026 12:00:00 GMT"), f.get("k", "If-Modified-Since", date).refused(304, "ConditionNotMet"),
		f.get("k", "If-Unmodified-Since", date).holds(200, "1"), f.put("k", "2", "If-Unmodified-Since", date).is(201))
}

func TestServicePropertiesTellOfSoftDelete(t *testing.T) {
	s, f, _ := startAt(t, fakeaz.Knobs{})
	read := func() string { return f.do("GET", f.endpoint+"/?restype=service&comp=properties", "").body }
	if b := read(); !strings.Contains(b, "<Enabled>false<") {
		t.Errorf("off: %s", b)
	}
	s.Set(func(k *fakeaz.Knobs) { k.Retention = 3 * day })
	if b := read(); !strings.Contains(b, "<Enabled>true</Enabled><Days>3<") {
		t.Errorf("on: %s", b)
	}
}
