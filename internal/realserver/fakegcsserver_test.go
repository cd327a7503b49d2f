package realserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestFakeGCSStoresListsAndDeletes(t *testing.T) {
	s := FakeGCS(t)
	bucket := s.NewBucket(t)
	want := strings.Repeat("wholeblob", 1000)
	for _, name := range []string{"a", "dir/b"} {
		ask(t, http.MethodPost, s.Endpoint+"/upload/storage/v1/b/"+bucket+"/o?uploadType=media&name="+url.QueryEscape(name), want)
	}
	object := s.JSON() + "b/" + bucket + "/o/"
	if got := ask(t, http.MethodGet, object+"dir%2Fb?alt=media", ""); got != want {
		t.Errorf("read %d bytes that are not the %d written", len(got), len(want))
	}
	if got := listGCS(t, s, bucket, ""); !slices.Equal(got, []string{"a", "dir/b"}) {
		t.Errorf("listed %q", got)
	}
	ask(t, http.MethodDelete, object+"a", "")
	if got := listGCS(t, s, bucket, ""); !slices.Equal(got, []string{"dir/b"}) {
		t.Errorf("listed %q after a was deleted", got)
	}
}

func TestFakeGCSKeepsOldGenerationsOnlyWhenVersioned(t *testing.T) {
	s := FakeGCS(t)
	for want, opts := range map[int][]BucketOption{1: nil, 2: {Versioned}} {
		bucket := s.NewBucket(t, opts...)
		for range 2 {
			ask(t, http.MethodPost, s.Endpoint+"/upload/storage/v1/b/"+bucket+"/o?uploadType=media&name=k", "v")
		}
		if got := listGCS(t, s, bucket, "?versions=true"); len(got) != want {
			t.Errorf("%d generations, want %d", len(got), want)
		}
	}
}

// It has no credentials by which to know it.
func TestFakeGCSIsToldFromAnother(t *testing.T) {
	s := FakeGCS(t)
	other := *s
	other.mark = "mark-of-another"
	if err := s.hasTheMark(t.Context()); err != nil {
		t.Error(err)
	}
	if err := other.hasTheMark(t.Context()); err == nil {
		t.Error("it answers to the mark of another server")
	}
}

func listGCS(t *testing.T, s *GCS, bucket, query string) (names []string) {
	t.Helper()
	var page struct{ Items []struct{ Name string } }
	if err := json.Unmarshal([]byte(ask(t, http.MethodGet, s.JSON()+"b/"+bucket+"/o"+query, "")), &page); err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Items {
		names = append(names, item.Name)
	}
	return names
}

// ask returns the body of a reply with 200.
func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got bytes.Buffer
	if _, err := got.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v: %s", method, url, resp.Status, err, got.String())
	}
	return got.String()
}
