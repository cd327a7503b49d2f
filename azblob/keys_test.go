package azblob_test

import (
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

// Keys that others have written, and that the service can hold, are read, listed and deleted as they are named, one by one and in batches.
func TestForeignKeysAreReadAsTheyAreNamed(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	st := open(t, srv, nil)
	keys := []string{
		"/b", "//b", "b", "a//b", "b/", "a//", "%2e%2e/b", "a%2Fb", "a/b", "a+b", "a b", "a%20b", "a?b#c", "~x", "a&b=c", "a:b;c", "a%", "é", "e\u0301",
		"😀", "tab\t", " lead", "trail ", "a.", "...", strings.Repeat("k", 1024),
	}
	missing := make(map[string]bool)
	for _, k := range keys {
		srv.PutBlob("box", k, []byte("of "+k), nil)
		missing[k] = true
	}
	for _, k := range keys {
		if got := get(t, st, k); string(got.Data) != "of "+k {
			t.Errorf("Get %q: %q", k, got.Data)
		}
		if info, err := st.Stat(t.Context(), k); err != nil || info.Key != k {
			t.Errorf("Stat %q: %+v, %v", k, info, err)
		}
	}
	for info, err := range st.List(t.Context(), "", nil) {
		if err != nil {
			t.Fatal(err)
		}
		delete(missing, info.Key)
	}
	if len(missing) > 0 {
		t.Errorf("not listed: %v", missing)
	}
	for i, k := range keys {
		if i%2 == 0 {
			if err := st.Delete(t.Context(), k, nil); err != nil {
				t.Errorf("Delete %q: %v", k, err)
			}
			keys[i] = "never/" + k
		}
	}
	if err := st.DeleteAll(t.Context(), keys); err != nil {
		t.Error(err)
	}
	if left := srv.Objects("box"); len(left) > 0 {
		t.Errorf("left: %d blobs, such as %q", len(left), left[0].Key)
	}
}
