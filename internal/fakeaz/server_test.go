package fakeaz_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

func TestOfRacingCreatorsExactlyOneWins(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	for round := range 10 {
		key := fmt.Sprint("k", round)
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				var r reply
				if i%2 == 0 {
					r = f.put(key, fmt.Sprint(i), "If-None-Match", "*")
				} else {
					f.stage(key, fmt.Sprintf("%02d", i), fmt.Sprint(i))
					r = f.commit(key, []string{fmt.Sprintf("Latest:%02d", i)}, "If-None-Match", "*")
				}
				switch r.StatusCode {
				case http.StatusCreated:
					won.Add(1)
				case http.StatusConflict, http.StatusBadRequest: // 400: another's commit has discarded the block
				default:
					t.Errorf("%d: %s %s", i, r.Status, r.body)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d winners", won.Load())
		}
	}
}

func TestLimitsOnBlocks(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true, MaxBlob: 4, MaxBlock: 3, MaxCommitted: 2, MaxUncommitted: 3})
	f := raw(t, s)
	report(t, f.put("k", "12345").refused(413, "RequestBodyTooLarge"), f.put("k", "1234").is(201), f.stage("k", "a", "1234").refused(413, "RequestBodyTooLarge"))
	for _, id := range []string{"a", "b", "c"} {
		report(t, f.stage("k", id, "123").is(201))
	}
	report(t, f.stage("k", "d", "1").refused(409, "BlockCountExceedsLimit"), f.stage("k", "c", "1").is(201),
		f.commit("k", []string{"Latest:a", "Latest:b", "Latest:c"}).refused(400, "BlockListTooLong"), f.commit("k", []string{"Latest:a", "Latest:c"}).is(201), f.get("k").holds(200, "1231"))
}

func TestCommittedIDsCountWhereAsked(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	f.stage("k", "a", "1")
	f.commit("k", []string{"Latest:a"})
	s.Set(func(k *fakeaz.Knobs) { k.CommittedIDs = true })
	report(t, f.stage("k", "aaaa", "1").refused(400, "InvalidBlobOrBlock"))
	s.Set(func(k *fakeaz.Knobs) { k.CommittedIDs = false })
	report(t, f.stage("k", "aaaa", "1").is(201))
}

func TestABodyThatEndsEarlyStoresNothing(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	s.PutBlob("cont", "k", []byte("old"), nil)
	for _, target := range []string{"/cont/k", "/cont/k?comp=block&blockid=" + blockID("a")} {
		conn, err := s.Dial(t.Context())
		must(t, err)
		_, err = fmt.Fprintf(conn, "PUT /%s%s HTTP/1.1\r\nHost: h\r\nx-ms-blob-type: BlockBlob\r\nContent-Length: 10\r\n\r\n12345", s.Account(), target)
		must(t, err)
		must(t, conn.Close())
	}
	s.CloseIdleConns() // both requests have ended
	b, ok := s.Blob("cont", "k")
	if !ok || string(b.Bytes()) != "old" || len(s.Uncommitted("cont")) != 0 {
		t.Errorf("stored: %+v, %+v", b, s.Uncommitted("cont"))
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	f.put("k", "1")
	report(t, f.put("k", "2", "x-ms-structured-body", "XSM/1.0; properties=crc64").refused(400, "UnsupportedHeader"),
		f.put("k", "2", "x-ms-lease-id", "x").refused(400, "UnsupportedHeader"), f.put("k", "2", "x-ms-blob-type", "PageBlob").is(501),
		f.do("PUT", f.at("k", "comp=lease"), "").refused(501, "NotImplemented"), f.do("PUT", f.at("k", "comp=tier"), "").is(501), f.get("k").holds(200, "1"))
}

func TestContainersAreMadeAndDeleted(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	at := func(name string) string { return f.endpoint + "/" + name + "?restype=container" }
	report(t, f.do("PUT", at("other"), "").is(201), f.do("PUT", at("other"), "").refused(409, "ContainerAlreadyExists"), f.do("GET", at("other"), "").is(200),
		f.do("HEAD", at("none"), "").refused(404, "ContainerNotFound"), f.do("PUT", at("Not-A--name"), "").refused(400, "InvalidResourceName"),
		f.do("DELETE", at("other"), "").is(202), f.do("HEAD", at("other"), "").is(404))
}

func TestListingsAreScripted(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	report(t, f.fill("a", "b", "c/d"))
	for name, tc := range map[string]struct {
		fault fakehttp.Fault
		pages int
		want  []string
	}{
		"an empty page":           {fakehttp.Fault{Shape: fakehttp.Shape{List: fakehttp.EmptyPage}}, 2, []string{"a", "b", ">c/"}},
		"a page in another order": {fakehttp.Fault{Shape: fakehttp.Shape{List: func(p *fakehttp.Page) { p.Keys = []string{"b", "b", "a"} }}}, 1, []string{"b", "b", "a", ">c/"}},
		"a page that ends":        {fakehttp.Fault{Shape: fakehttp.Shape{List: func(p *fakehttp.Page) { p.Keys, p.Prefixes = p.Keys[:1], nil }}}, 1, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer s.Inject(tc.fault).Remove()
			report(t, f.wantList("delimiter=%2F", tc.pages, tc.want...))
		})
	}
	s.Set(func(k *fakeaz.Knobs) { k.EmptyPages, k.PageSize = true, 2 })
	report(t, f.wantList("", 4, "a", "b", "c/d"))
	s.Set(func(k *fakeaz.Knobs) {
		*k = fakeaz.Knobs{Order: func(a, b string) int { return -strings.Compare(a, b) }, PageSize: 1}
	})
	report(t, f.wantList("", 3, "c/d", "b", "a"))
	report(t, f.list("marker=x").refused(400, "InvalidQueryParameterValue"), f.list("include=everything").refused(400, "InvalidQueryParameterValue"),
		f.list("delimiter=%2F&startFrom=x%2Fy%2Fz").refused(400, "InvalidQueryParameterValue"), f.list("delimiter=%2F&include=snapshots").is(400))
}

func TestAnswersAreDeformed(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	f.put("k", "0123456789")
	for name, tc := range map[string]struct {
		shape  fakehttp.Shape
		status int
		body   string
		ranged string
	}{
		"range ignored": {fakehttp.Shape{IgnoreRange: true}, 200, "0123456789", ""},
		"shifted":       {fakehttp.Shape{ShiftRange: 1}, 206, "345", "bytes 3-5/10"},
		"short":         {fakehttp.Shape{Short: 1}, 206, "23", "bytes 2-3/10"},
		"other range":   {fakehttp.Shape{ContentRange: fakehttp.RangeLate}, 206, "234", "bytes 3-5/10"},
	} {
		t.Run(name, func(t *testing.T) {
			defer s.Inject(fakehttp.Fault{Op: "GetBlob", Key: "k", Shape: tc.shape}).Remove()
			g := f.get("k", "x-ms-range", "bytes=2-4")
			report(t, g.holds(tc.status, tc.body), g.has("Content-Range", tc.ranged))
		})
	}
	defer s.Inject(fakehttp.Fault{Times: -1, Shape: fakehttp.Shape{ETag: fakehttp.NoETag, IgnoreIfMatch: true, IgnoreIfNoneMatch: true}}).Remove()
	report(t, f.get("k", "If-Match", otherETag).has("ETag", ""), f.put("k", "2", "If-None-Match", "*").is(201))
}

func TestScriptedRepliesHaveTheServicesCodes(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	s.Inject(fakehttp.Fault{Op: "PutBlob", Replies: []fakehttp.Reply{{Status: 503, RetryAfter: 2 * time.Second}, {Status: 500, Commit: true}, {Status: 403, Code: "AccountIsDisabled"}}})
	busy := f.put("k", "1")
	report(t, busy.refused(503, "ServerBusy"), busy.has("Retry-After", "2"), f.get("k").is(404), f.put("k", "2").refused(500, "OperationTimedOut"), f.get("k").holds(200, "2"),
		f.put("k", "3").refused(403, "AccountIsDisabled"), f.put("k", "4").is(201))
}

func TestOneKeyOfABatchFailsWhereScripted(t *testing.T) {
	s := start(t, fakeaz.Options{})
	f := raw(t, s)
	report(t, f.fill("a", "b"))
	s.Inject(fakehttp.Fault{Op: "BlobBatch", Shape: fakehttp.Shape{DeleteError: func(key string) string {
		if key == "a" {
			return "ServerBusy"
		}
		return ""
	}}})
	r := f.batch("/cont?restype=container&comp=batch", "a", "b")
	report(t, r.is(202), same("busy", strings.Count(r.body, "HTTP/1.1 503"), 1), f.wantList("", 1, "a"))
	s.Set(func(k *fakeaz.Knobs) { k.NoBatch = true })
	report(t, f.batch("/cont?restype=container&comp=batch", "a").is(501))
}

func TestTheLogSaysWhatWasAsked(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	f.put("a b", "123", "If-None-Match", "*")
	f.stage("k", "a", "12")
	f.commit("k", []string{"Latest:a"})
	f.get("k", "x-ms-range", "bytes=0-0", "If-Match", otherETag)
	f.head("none")
	f.list("delimiter=%2F&maxresults=5&include=deleted")
	f.del("k", "x-ms-delete-snapshots", "include")
	want := `PutBlob "a b" 3B If-None-Match=* -> 201
PutBlock k 2B -> 201
PutBlockList k -> 201
GetBlob k bytes=0-0 If-Match=etag -> 412
GetBlobProperties none -> 404
ListBlobs delimiter=/ maxresults=5 include=deleted -> 200
DeleteBlob k snapshots=include -> 202
`
	if got := s.Log().String(); got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
}

func TestNamesOfMetadataKeepTheirCaseFromTheGoSide(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	s.PutObject("cont", "k", [][]byte{[]byte("a"), []byte("b")}, &fakeaz.PutOptions{Metadata: map[string]string{"MixedCase": "1"}, ContentType: "text/x", ContentEncoding: "e"})
	conn, err := s.Dial(t.Context())
	must(t, err)
	_, err = fmt.Fprintf(conn, "HEAD /%s/cont/k HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", s.Account())
	must(t, err)
	head, err := io.ReadAll(conn)
	must(t, err)
	must(t, conn.Close())
	for _, want := range []string{"x-ms-meta-MixedCase: 1\r\n", "Content-Type: text/x\r\n", "Content-Encoding: e\r\n", "Content-Length: 2\r\n"} {
		if !strings.Contains(string(head), want) {
			t.Errorf("no %q in %s", want, head)
		}
	}
	b, _ := s.Object("cont", "k")
	if len(b.Blocks) != 2 || b.MD5 != nil || len(s.Objects("cont")) != 1 {
		t.Errorf("object %+v", b)
	}
	s.DeleteObject("cont", "k")
	s.DeleteObject("cont", "k")
	if _, ok := s.Object("cont", "k"); ok {
		t.Error("not deleted")
	}
}

func TestAServerInMemoryLivesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeaz.New(fakeaz.Options{InMemory: true, Anonymous: true, Containers: []string{"cont"}, Knobs: fakeaz.Knobs{Retention: day}})
		defer s.Close()
		c := s.Client()
		defer c.CloseIdleConnections()
		s.PutBlob("cont", "k", []byte("1"), nil)
		in := s.Inject(fakehttp.Fault{Op: "GetBlob", Delay: time.Hour})
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.Endpoint()+"/cont/k", nil)
		must(t, err)
		resp, err := c.Do(req)
		must(t, err)
		must(t, resp.Body.Close())
		if in.Hits() != 1 || resp.StatusCode != http.StatusOK {
			t.Errorf("hits %d, status %d", in.Hits(), resp.StatusCode)
		}
		s.DeleteBlob("cont", "k")
		<-time.After(day)
		if past := s.Past("cont", "k"); len(past) != 0 {
			t.Errorf("past: %+v", past)
		}
	})
}
