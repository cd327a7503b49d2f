package s3blob_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// What a commit may answer with the status 200 without having said that it is done.
var noAnswers = map[string]fakes3.Fault{
	"spaces, then an error": {
		Reply: &fakes3.Reply{Status: 200, Body: `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message></Error>"},
		Shape: fakes3.Shape{Spaces: 5},
	},
	"an error":     {Reply: &fakes3.Reply{Status: 200, Body: "<Error><Code>InternalError</Code></Error>"}},
	"no body":      {Reply: &fakes3.Reply{Status: 200, NoBody: true}},
	"only spaces":  {Reply: &fakes3.Reply{Status: 200, Body: "     "}},
	"cut document": {Reply: &fakes3.Reply{Status: 200, Body: `<?xml version="1.0" encoding="UTF-8"?><CompleteMultipartUploadResult><Location>http://x</Loc`}},
	"a page":       {Reply: &fakes3.Reply{Status: 200, Body: "<html><head><title>Welcome</title></head><body><p>Gateway</p></body></html>"}},
	"no document":  {Reply: &fakes3.Reply{Status: 200, Body: "upstream connect error"}},
}

// A commit answered with the status 200 and without the news that it is done is no success: it is sent again where that may be, and else
// of unknown outcome, whether it was done or not (apache/arrow-rs-object-store #122).
func TestCommitWithoutAnAnswerIsNoSuccess(t *testing.T) {
	for name, f := range noAnswers {
		for _, done := range []bool{false, true} {
			for _, times := range []int{1, -1} {
				for _, cond := range []blob.Condition{{}, blob.IfAbsent()} {
					t.Run(fmt.Sprintf("%s/done %t/%d times/%v", name, done, times, cond), func(t *testing.T) {
						srv := fake(t, fakes3.Options{MinPartSize: -1})
						reply := *f.Reply
						reply.Commit = done
						srv.Inject(fakes3.Fault{Op: "CompleteMultipartUpload", Times: times, Reply: &reply, Shape: f.Shape})
						_, err := openSmall(t, srv).Set(t.Context(), "k", blob.Bytes(content(3*P)), &blob.SetOptions{If: cond})
						_, there := srv.Object("b", "k")
						commits := srv.Log().Count("CompleteMultipartUpload")
						if times == 1 && cond.IsZero() {
							if err != nil || !there || commits != 2 {
								t.Errorf("%v after %d commits, there: %t", err, commits, there)
							}
							return
						}
						if !errors.Is(err, blob.ErrUnavailable) || blob.OutcomeOf(err) != blob.Unknown || there != done {
							t.Errorf("%v, outcome %v, there: %t", err, blob.OutcomeOf(err), there)
						}
						if want := map[bool]int{true: 3, false: 1}[cond.IsZero()]; commits != want {
							t.Errorf("%d commits, want %d", commits, want)
						}
						if n := srv.Log().Count("AbortMultipartUpload"); n > 0 {
							t.Error("an upload was aborted whose commit may have been done")
						}
					})
				}
			}
		}
	}
}

// Of a batch the keys speak for themselves: one refused for good is an error, one refused for the moment is tried again alone, and 1001
// keys are two requests (Opndrive/opndrive #73).
func TestBatchOfDeletesKeyByKey(t *testing.T) {
	srv := fake(t, fakes3.Options{FastETag: true})
	keys := make([]string, 1001)
	for i := range keys {
		keys[i] = fmt.Sprintf("key %04d", i)
		srv.PutObject("b", keys[i], nil, nil)
	}
	slow := 0
	srv.Inject(fakes3.Fault{Op: "DeleteObjects", Times: -1, Shape: fakes3.Shape{DeleteError: func(key string) string {
		switch {
		case key == keys[7]:
			return "AccessDenied"
		case key == keys[9] && slow < 1:
			slow++
			return "SlowDown"
		}
		return ""
	}}})
	err := open(t, srv, nil).DeleteAll(t.Context(), keys)
	var de *blob.DeleteError
	if !errors.As(err, &de) || len(de.Failed) != 1 || de.Failed[0].Key != keys[7] || !errors.Is(de.Failed[0].Err, blob.ErrPermission) || blob.OutcomeOf(err) != blob.NotApplied {
		t.Errorf("%v, outcome %v", err, blob.OutcomeOf(err))
	}
	if left := srv.Objects("b"); len(left) != 1 {
		t.Errorf("%d objects left", len(left))
	}
	wantLog(t, srv, "\nDeleteObjects 1 keys -> 200\nDeleteObjects 1 keys -> 200\nDeleteObjects 1000 keys -> 200\n")
}

// A reply to a batch that cannot be read says nothing of any key; a server that knows no batches is served one by one.
func TestBatchOfDeletesWithoutAnAnswer(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for name, f := range noAnswers {
		srv := fake(t, fakes3.Options{})
		srv.Inject(fakes3.Fault{Op: "DeleteObjects", Times: -1, Reply: f.Reply, Shape: f.Shape})
		err := open(t, srv, nil).DeleteAll(t.Context(), keys)
		var de *blob.DeleteError
		if !errors.As(err, &de) || len(de.Failed) != len(keys) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, k := range de.Failed {
			if !errors.Is(k.Err, blob.ErrUnavailable) || blob.OutcomeOf(k.Err) != blob.Unknown {
				t.Errorf("%s: %q: %v, outcome %v", name, k.Key, k.Err, blob.OutcomeOf(k.Err))
			}
		}
		if n := len(srv.Log()); n != 3 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{NoBatchDelete: true}})
	for _, k := range keys {
		srv.PutObject("b", k, nil, nil)
	}
	if err := open(t, srv, nil).DeleteAll(t.Context(), keys); err != nil || len(srv.Objects("b")) > 0 {
		t.Errorf("one by one: %v, %d objects left", err, len(srv.Objects("b")))
	}
	if n := srv.Log().Count("DeleteObject"); n != 3 {
		t.Errorf("%d single deletes", n)
	}
}

// A delete is tried again, and finding the key gone then is what was asked for (thanos-io/objstore #261).
func TestDeleteIsTriedAgain(t *testing.T) {
	for name, f := range map[string]fakes3.Fault{
		"503, then 204":            {Replies: fakes3.Statuses(503)},
		"done and lost, then 204":  {After: fakes3.Reset},
		"500 but done, then 404":   {Replies: []fakes3.Reply{{Status: 500, Commit: true}, {Status: 404}}},
		"404 of a key never there": {Replies: fakes3.Statuses(404)},
	} {
		srv := fake(t, fakes3.Options{})
		srv.PutObject("b", "k", nil, nil)
		f.Op = "DeleteObject"
		srv.Inject(f)
		if err := open(t, srv, nil).Delete(t.Context(), "k", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Pages that lead nowhere are errors and not the end; an empty page with a token is not the end, and a token on the last page not a
// reason to go on (kvcache-ai/Mooncake #2782).
func TestOddPagesOfAListing(t *testing.T) {
	for _, c := range []struct {
		name     string
		page     func(*fakes3.Page)
		times    int
		kind     error
		requests int
	}{
		{"truncated without a token", fakes3.TruncatedNoToken, -1, blob.ErrTruncated, 1},
		{"the same token again", fakes3.SameToken, -1, blob.ErrCorrupt, 2},
		{"an empty page with a token", fakes3.EmptyPage, 1, nil, 4},
		{"a token after the end", fakes3.TokenAtEnd, -1, nil, 3},
		{"none", nil, -1, nil, 3},
	} {
		srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{PageSize: 1000}})
		var want []string
		for i := range 2500 {
			want = append(want, fmt.Sprintf("%05d", i))
			srv.PutObject("b", want[i], nil, nil)
		}
		srv.Inject(fakes3.Fault{Op: "ListObjectsV2", Times: c.times, Shape: fakes3.Shape{List: c.page}})
		var got []string
		var last error
		for info, err := range open(t, srv, nil).List(t.Context(), "", nil) {
			if last = err; err == nil {
				got = append(got, info.Key)
			}
		}
		if c.kind == nil && (last != nil || strings.Join(got, " ") != strings.Join(want, " ")) || c.kind != nil && !errors.Is(last, c.kind) {
			t.Errorf("%s: %d keys, %v", c.name, len(got), last)
		}
		if n := len(srv.Log()); n != c.requests {
			t.Errorf("%s: %d requests, want %d", c.name, n, c.requests)
		}
	}
	srv := fake(t, fakes3.Options{})
	for i := range 1000 {
		srv.PutObject("b", fmt.Sprint(i), nil, nil)
	}
	n := 0
	for _, err := range open(t, srv, nil).List(t.Context(), "", nil) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 1000 || len(srv.Log()) != 1 {
		t.Errorf("%d keys in %d requests, want a full page in one", n, len(srv.Log()))
	}
}
