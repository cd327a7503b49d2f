package fakeaz_test

import (
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

// What is wrong with a batch as a whole leaves nothing done ("Blob Batch").
func TestABatchThatBreaksARuleDoesNothing(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true, Containers: []string{"cont", "other"}})
	f := raw(t, s)
	s.PutBlob("cont", "k", nil, nil)
	s.PutBlob("other", "k", nil, nil)
	path := "/" + s.Account()
	for name, tc := range map[string]struct{ kind, first, second string }{
		"another container":   {"application/http", "DELETE " + path + "/cont/k HTTP/1.1\r\n", "DELETE " + path + "/other/k HTTP/1.1\r\n"},
		"another kind":        {"application/http", "DELETE " + path + "/cont/k HTTP/1.1\r\n", "GET " + path + "/cont/k HTTP/1.1\r\n"},
		"a version in a part": {"application/http", "DELETE " + path + "/cont/k HTTP/1.1\r\n", "DELETE " + path + "/cont/k HTTP/1.1\r\nx-ms-version: 2021-12-02\r\n"},
		"a whole URL":         {"application/http", "DELETE " + path + "/cont/k HTTP/1.1\r\n", "DELETE http://h" + path + "/cont/k HTTP/1.1\r\n"},
		"no request":          {"application/http", "DELETE " + path + "/cont/k HTTP/1.1\r\n", "nonsense\r\n"},
		"another type":        {"text/plain", "DELETE " + path + "/cont/k HTTP/1.1\r\n", "DELETE " + path + "/cont/k HTTP/1.1\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, part := range []string{tc.first, tc.second} {
				b.WriteString("--x\r\nContent-Type: " + tc.kind + "\r\n\r\n" + part + "\r\n\r\n")
			}
			b.WriteString("--x--\r\n")
			r := f.do("POST", f.endpoint+"/cont?restype=container&comp=batch", b.String(), "Content-Type", "multipart/mixed; boundary=x")
			report(t, r.refused(400, "InvalidInput"))
			for _, cont := range []string{"cont", "other"} {
				if _, ok := s.Blob(cont, "k"); !ok {
					t.Errorf("%s/k is gone", cont)
				}
			}
		})
	}
}

func TestANameHasAtMost254Segments(t *testing.T) {
	s := start(t, fakeaz.Options{Anonymous: true})
	f := raw(t, s)
	report(t, f.put(strings.Repeat("a/", 253)+"a", "1").is(201), f.put(strings.Repeat("a/", 254)+"a", "1").refused(400, "InvalidUri"))
}
