package fakegcs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
)

func TestAServerLivesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRaw(t, fakegcs.Options{InMemory: true})
		uri := r.begin("k")
		<-time.After(7*24*time.Hour - time.Second)
		r.query(uri, "*", 0)
		<-time.After(time.Second)
		r.want(404, "PUT", uri, []byte("x"))
		r.put("k", "x")
		r.hc.CloseIdleConnections()
	})
}

func TestASessionOverTLSStaysOnTLS(t *testing.T) {
	r := newRaw(t, fakegcs.Options{TLS: true})
	uri := r.begin("k")
	if !strings.HasPrefix(uri, "https://") {
		t.Fatal(uri)
	}
	got := r.want(200, "PUT", uri, []byte("x")).resource(t)
	if !strings.HasPrefix(got.MediaLink, "https://") {
		t.Error(got.MediaLink)
	}
}

func TestEveryKnobOfTheServerSide(t *testing.T) {
	s := start(t, fakegcs.Options{Buckets: []string{"one", "two"}})
	if s.CreateBucket("one") || !s.CreateBucket("three") {
		t.Error("CreateBucket reports the wrong thing")
	}
	first := s.PutObject("one", "k", []byte("1"), &fakegcs.PutOptions{Metadata: map[string]string{"a": "b"}, ContentType: "text/css"})
	if second := s.PutObject("one", "k", []byte("2"), nil); second <= first {
		t.Errorf("generation %d after %d", second, first)
	}
	o, ok := s.Object("one", "k")
	if !ok || string(o.Bytes()) != "2" || o.Size != 1 || o.Metageneration != 1 || !o.Noncurrent.IsZero() || o.SoftDeleted.After(o.Created) {
		t.Errorf("%+v", o)
	}
	if vs := s.Versions("one", "k"); len(vs) != 2 || vs[1].SoftDeleted.IsZero() || vs[1].Metadata["a"] != "b" || vs[1].ContentType != "text/css" {
		t.Errorf("%+v", vs)
	}
	s.DeleteObject("one", "k")
	s.DeleteObject("one", "k")
	if _, ok := s.Object("one", "k"); ok || len(s.Objects("one")) != 0 || len(s.Objects("two")) != 0 {
		t.Error("deleted, and there")
	}
}
