package fakegcs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

const listURL = "/storage/v1/b/bucket/o?"

// walk follows the tokens and returns the pages.
func (r *raw) walk(query string) []string {
	r.t.Helper()
	var out []string
	for token := ""; ; {
		var p page
		r.want(200, "GET", listURL+query+"&pageToken="+escape(token), nil).decode(r.t, &p)
		out = append(out, p.String())
		if token = p.NextPageToken; token == "" {
			return out
		}
		if len(out) > 100 {
			r.t.Fatal("the listing does not end")
		}
	}
}

func TestListingsAreInByteOrder(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	// In UTF-16 order 😀 would come before ～.
	for _, k := range []string{"～", "😀", "b", "a/b/c", "a", "a//", "a/b", "B", "é", "a-b", "a/"} {
		r.s.PutObject("bucket", k, []byte(k), nil)
	}
	r.s.PutObject("bucket", "gone/x", nil, nil)
	r.s.DeleteObject("bucket", "gone/x")
	for query, want := range map[string]string{
		"":                            "B|a|a-b|a/|a//|a/b|a/b/c|b|é|～|😀",
		"prefix=a/":                   "a/|a//|a/b|a/b/c",
		"prefix=zz":                   "",
		"delimiter=/":                 "B|a|a-b|b|é|～|😀|a/ prefix",
		"delimiter=/&prefix=a/":       "a/|a/b|a// prefix|a/b/ prefix",
		"delimiter=/&prefix=a":        "a|a-b|a/ prefix",
		"delimiter=b":                 "B|a|a/|a//|é|～|😀|a-b prefix|a/b prefix|b prefix",
		"delimiter=//":                "B|a|a-b|a/|a/b|a/b/c|b|é|～|😀|a// prefix",
		"startOffset=a/b":             "a/b|a/b/c|b|é|～|😀",
		"startOffset=a/b%00":          "a/b/c|b|é|～|😀",
		"endOffset=a/b":               "B|a|a-b|a/|a//",
		"startOffset=a/&endOffset=b":  "a/|a//|a/b|a/b/c",
		"startOffset=a/b&delimiter=/": "b|é|～|😀|a/ prefix",
		"delimiter=/&includeTrailingDelimiter=true&prefix=a": "a|a-b|a/|a/ prefix",
	} {
		if got := strings.Join(r.walk(query), "|"); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		// Page by page nothing is missing, and nothing comes twice.
		for n := 1; n < 4; n++ {
			pages := r.walk(query + fmt.Sprintf("&maxResults=%d", n))
			seen := map[string]int{}
			for _, p := range pages {
				names := strings.Split(p, "|")
				if len(names) > n {
					t.Errorf("%s: a page of %d has %q", query, n, p)
				}
				for _, name := range names {
					seen[name]++
				}
			}
			for name := range strings.SplitSeq(want, "|") {
				if seen[name] != 1 {
					t.Errorf("%s by %d: %q came %d times in %q", query, n, name, seen[name], pages)
				}
			}
		}
	}
}

func TestListingsAreChecked(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	for _, bad := range []string{"maxResults=-1", "maxResults=x", "pageToken=x", "pageToken=eHh4", "versions=true&softDeleted=true"} {
		r.want(400, "GET", listURL+bad, nil)
	}
	for i := range 1001 {
		r.s.PutObject("bucket", fmt.Sprintf("%04d", i), nil, nil)
	}
	if pages := r.walk("maxResults=5000"); len(pages) != 2 || strings.Count(pages[0], "|") != 999 {
		t.Errorf("%d pages", len(pages))
	}
	r.s.Set(func(k *fakegcs.Knobs) { k.PageSize = 600 })
	if pages := r.walk(""); len(pages) != 2 || strings.Count(pages[0], "|") != 599 {
		t.Errorf("%d pages", len(pages))
	}
}

func TestAListingFindsItsPlaceAgain(t *testing.T) {
	r := newRaw(t, fakegcs.Options{})
	for _, k := range []string{"a", "b", "c", "d"} {
		r.s.PutObject("bucket", k, nil, nil)
	}
	var p page
	r.want(200, "GET", listURL+"maxResults=2", nil).decode(t, &p)
	r.s.DeleteObject("bucket", "b") // the last of the page
	r.s.PutObject("bucket", "bb", nil, nil)
	r.s.PutObject("bucket", "aa", nil, nil)
	if got := r.want(200, "GET", listURL+"pageToken="+escape(p.NextPageToken), nil).list(t); got != "bb|c|d" {
		t.Errorf("%q", got)
	}
}

func TestPagesCanBeDeformed(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Knobs: fakegcs.Knobs{PageSize: 2}})
	for _, k := range []string{"a", "b", "c"} {
		r.s.PutObject("bucket", k, nil, nil)
	}
	for name, x := range map[string]struct {
		list func(*fakehttp.Page)
		nth  int
		want string
	}{
		"an empty page with a token":  {fakehttp.EmptyPage, 1, ", a|b, c"},
		"an empty page in the middle": {fakehttp.EmptyPage, 2, "a|b, , c"},
		"a token at the end":          {fakehttp.TokenAtEnd, 2, "a|b, c, "},
		"the same page again":         {fakehttp.SameToken, 2, "a|b, c, c"},
		"the end without a token":     {fakehttp.TruncatedNoToken, 1, "a|b"},
		"one that is left out":        {func(p *fakehttp.Page) { p.Keys = p.Keys[1:] }, 1, "b, c"},
		"another order":               {func(p *fakehttp.Page) { p.Keys[0], p.Keys[1] = p.Keys[1], p.Keys[0] }, 1, "b|a, c"},
	} {
		r.s.Inject(fakehttp.Fault{Op: "objects.list", Nth: x.nth, Shape: fakehttp.Shape{List: x.list}})
		if got := strings.Join(r.walk(""), ", "); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
		r.s.ClearFaults()
	}
}

func TestVersionsAreListedByAscendingGeneration(t *testing.T) {
	r := newRaw(t, fakegcs.Options{Versioned: true})
	var gens []string
	for range 3 {
		gens = append(gens, itoa(r.s.PutObject("bucket", "k", nil, nil)))
	}
	r.s.PutObject("bucket", "l", nil, nil)
	r.s.DeleteObject("bucket", "l")
	r.s.PutObject("bucket", "m", nil, nil)
	if got := strings.Join(r.walk(""), "|"); got != "k|m" {
		t.Errorf("%q", got)
	}
	for n := 1; n < 6; n++ {
		query := fmt.Sprintf("versions=true&maxResults=%d", n)
		if got := strings.Join(r.walk(query), "|"); got != "k|k|k|l|m" {
			t.Errorf("%s: %q", query, got)
		}
	}
	var p page
	r.want(200, "GET", listURL+"versions=true&prefix=k", nil).decode(t, &p)
	for i, o := range p.Items {
		if o.Generation != gens[i] || (o.TimeDeleted == "") != (i == 2) {
			t.Errorf("%d: %+v", i, o)
		}
	}
}
