package transfer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// walk lists and returns the keys up to an error.
func walk(t testing.TB, st *Store, prefix string, o *blob.ListOptions) (keys []string, err error) {
	t.Helper()
	ended := false
	for info, e := range st.List(t.Context(), prefix, o) {
		if ended {
			t.Error("something was yielded after the error")
		}
		if e != nil {
			if info.Key != "" || info.Size != 0 {
				t.Errorf("an error with %+v", info)
			}
			err, ended = e, true
			continue
		}
		keys = append(keys, info.Key)
	}
	return keys, err
}

func wantKeys(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestListGoesThroughPages(t *testing.T) {
	for name, p := range personalities() {
		for size := 1; size <= 6; size++ {
			s := serve(t, p)
			s.pageSize = size
			keys := []string{"a", "b/1", "b/2", "c", "é"}
			for _, k := range keys {
				s.put(k, content(3))
			}
			st := open(t, s)
			got, err := walk(t, st, "", nil)
			if err != nil {
				t.Fatal(name, err)
			}
			wantKeys(t, got, keys)
			if pages := s.requests("list"); pages != (5+size-1)/size {
				t.Errorf("%d pages of %d", pages, size)
			}
			for after, want := range map[string][]string{
				"": keys, "a": keys[1:], "b": keys[1:], "b/1": keys[2:], "zz": keys[4:], "é": nil, "\xef\xbf\xbd": nil,
			} {
				if got, err = walk(t, st, "", &blob.ListOptions{StartAfter: after}); err != nil {
					t.Fatal(name, err)
				}
				wantKeys(t, got, want)
			}
			if got, err = walk(t, st, "b/", &blob.ListOptions{StartAfter: "b/1"}); err != nil {
				t.Fatal(name, err)
			}
			wantKeys(t, got, []string{"b/2"})
		}
	}
}

func TestListFoldsAtTheDelimiter(t *testing.T) {
	for name, p := range personalities() {
		for size := 1; size <= 6; size++ {
			s := serve(t, p)
			s.pageSize = size
			for _, k := range []string{"a", "b", "b/1", "b/2", "c/x/y", "d", "d/"} {
				s.put(k, nil)
			}
			st := open(t, s)
			for after, want := range map[string][]string{
				"":     {"a", "b", "b/", "c/", "d", "d/"},
				"b":    {"b/", "c/", "d", "d/"},
				"b/":   {"c/", "d", "d/"}, // exclusive, of prefixes too
				"b/1":  {"c/", "d", "d/"}, // begins inside a prefix that itself is not greater
				"c/zz": {"d", "d/"},
			} {
				got, err := walk(t, st, "", &blob.ListOptions{Delimiter: "/", StartAfter: after})
				if err != nil {
					t.Fatal(name, err)
				}
				wantKeys(t, got, want)
			}
		}
	}
}

func TestListStripsThePrefixOfTheStore(t *testing.T) {
	for _, p := range personalities() {
		s := serve(t, p)
		for _, k := range []string{"team", "team/", "team/a", "team/b/1", "team2/a"} {
			s.put(k, nil)
		}
		st := open(t, s, func(o *Options) { o.Prefix = "team/" })
		for _, c := range []struct {
			prefix string
			o      blob.ListOptions
			want   []string
		}{
			{"", blob.ListOptions{}, []string{"a", "b/1"}}, // an object named like the prefix is none of ours
			{"", blob.ListOptions{StartAfter: "a"}, []string{"b/1"}},
			{"", blob.ListOptions{Delimiter: "/"}, []string{"a", "b/"}},
			{"b", blob.ListOptions{}, []string{"b/1"}},
		} {
			got, err := walk(t, st, c.prefix, &c.o)
			if err != nil {
				t.Fatal(err)
			}
			wantKeys(t, got, c.want)
		}
	}
}

func page(token string, keys ...string) ListPage {
	p := ListPage{Token: token, More: token != ""}
	for _, k := range keys {
		p.Infos = append(p.Infos, blob.Info{Key: k, IsPrefix: k[len(k)-1] == '/'})
	}
	return p
}

// A listing ends where the service says that it ends, in anything else in an error: never early, never in circles.
func TestListNeverEndsEarlyNorTwice(t *testing.T) {
	noToken := page("", "b")
	noToken.More = true
	stale := page("stale", "b")
	stale.More = false
	for _, c := range []struct {
		what  string
		pages []ListPage
		o     blob.ListOptions
		want  []string
		kind  error
	}{
		{what: "goes on without a token", pages: []ListPage{page("1", "a"), noToken}, want: []string{"a", "b"}, kind: blob.ErrTruncated},
		{what: "the same token twice", pages: []ListPage{page("1", "a"), page("1", "b")}, want: []string{"a", "b"}, kind: blob.ErrCorrupt},
		{what: "a token that means nothing", pages: []ListPage{page("1", "a"), stale}, want: []string{"a", "b"}},
		{what: "empty pages", pages: []ListPage{page("1"), page("2", "a"), page("3"), page("4"), page("", "b")}, want: []string{"a", "b"}},
		{what: "an empty listing", pages: []ListPage{page("")}},
		{what: "a repeated key", pages: []ListPage{page("1", "a", "b"), page("", "b", "c")}, want: []string{"a", "b", "c"}},
		{what: "a key twice on a page", pages: []ListPage{page("", "a", "b", "b", "c")}, want: []string{"a", "b", "c"}},
		{what: "a repeated prefix", pages: []ListPage{page("1", "a", "b/"), page("2", "b/"), page("", "b/", "c")}, want: []string{"a", "b/", "c"}},
		{what: "prefixes after keys", pages: []ListPage{page("1", "a", "c", "b/"), page("", "e", "d/")}, want: []string{"a", "b/", "c", "d/", "e"}},
		{what: "a page again", pages: []ListPage{page("1", "a", "b"), page("2", "a", "b")}, want: []string{"a", "b"}, kind: blob.ErrUnsupported},
		{what: "no order", pages: []ListPage{page("1", "a", "c"), page("", "b")}, want: []string{"a", "c"}, kind: blob.ErrUnsupported},
		{what: "another prefix", pages: []ListPage{page("", "a"), page("")}, o: blob.ListOptions{}, want: nil, kind: blob.ErrCorrupt},
		{what: "StartAfter ignored", pages: []ListPage{page("1", "a", "b"), page("", "c", "d")}, o: blob.ListOptions{StartAfter: "b"}, want: []string{"c", "d"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serve(t, s3Like())
			s.list = func(nth int, r ListRequest) (ListPage, error) {
				if want := map[bool]string{true: ""}[nth == 1]; nth == 1 && r.Token != want || nth > 1 && r.Token != c.pages[nth-2].Token {
					t.Errorf("request %d has the token %q", nth, r.Token)
				}
				return c.pages[nth-1], nil
			}
			prefix := ""
			if c.what == "another prefix" {
				prefix = "x"
			}
			got, err := walk(t, open(t, s), prefix, &c.o)
			wantKeys(t, got, c.want)
			if c.kind != nil {
				if e := wantKind(t, err, c.kind); e.Op != blob.OpList || e.Outcome != blob.NotApplied {
					t.Errorf("%#v", e)
				}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// Pages that lead back to one that was there before are no listing, with keys that are passed over or without any; pages without
// keys that lead somewhere are one, however many.
func TestListNeverGoesInCircles(t *testing.T) {
	for what, c := range map[string]struct {
		keys []string
		o    blob.ListOptions
	}{"empty pages": {}, "keys that are passed over": {[]string{"b"}, blob.ListOptions{StartAfter: "x"}}, "the same key": {keys: []string{"b"}}} {
		for _, length := range []int{1, 2, 3, 7} {
			p := s3Like()
			p.traits.StartAfter = false
			s := serve(t, p)
			s.list = func(nth int, _ ListRequest) (ListPage, error) {
				return page(fmt.Sprint("token", nth%length), c.keys...), nil
			}
			_, err := walk(t, open(t, s), "", &c.o)
			wantKind(t, err, blob.ErrCorrupt)
			if n := s.requests("list"); n > 4*length+4 {
				t.Errorf("%s, %d pages in a circle: %d requests", what, length, n)
			}
		}
	}
	s := serve(t, s3Like())
	s.list = func(nth int, _ ListRequest) (ListPage, error) {
		if nth == 500 {
			return page("", "z"), nil
		}
		return page(fmt.Sprint("token", nth)), nil
	}
	got, err := walk(t, open(t, s), "", nil)
	if err != nil {
		t.Error(err)
	}
	wantKeys(t, got, []string{"z"})
}

// A token may come again when there were keys in between: what moves on is the listing.
func TestListWithTokensThatComeAgain(t *testing.T) {
	s := serve(t, s3Like())
	s.list = func(nth int, _ ListRequest) (ListPage, error) {
		if nth == 9 {
			return page("", "k9"), nil
		}
		return page(fmt.Sprint("token", nth%2), fmt.Sprint("k", nth)), nil
	}
	got, err := walk(t, open(t, s), "", nil)
	if err != nil || len(got) != 9 {
		t.Error(got, err)
	}
}

// What is not under the store's own prefix is an error, not somebody's key.
func TestListRefusesKeysOfOthers(t *testing.T) {
	for _, key := range []string{"other/a", "tea", "team2/a"} {
		s := serve(t, s3Like())
		s.list = func(int, ListRequest) (ListPage, error) { return page("", key), nil }
		got, err := walk(t, open(t, s, func(o *Options) { o.Prefix = "team/" }), "", nil)
		wantKeys(t, got, nil)
		wantKind(t, err, blob.ErrCorrupt)
	}
}

// A page that fails is fetched again; when it fails for good the error comes last, after what was listed.
func TestListRetriesPages(t *testing.T) {
	for _, times := range []int{2, 10} {
		s := serve(t, s3Like())
		failed := 0
		s.list = func(_ int, r ListRequest) (ListPage, error) {
			if r.Token == "1" && failed < times {
				failed++
				return page("", "half"), lost() // what comes with an error is not looked at
			}
			return map[string]ListPage{"": page("1", "a"), "1": page("", "b")}[r.Token], nil
		}
		got, err := walk(t, open(t, s), "", nil)
		if times == 2 {
			wantKeys(t, got, []string{"a", "b"})
		} else {
			wantKeys(t, got, []string{"a"})
			if e := wantKind(t, err, blob.ErrUnavailable); !e.Exhausted || e.Attempts != 3 || e.Outcome != blob.NotApplied {
				t.Errorf("%#v", e)
			}
		}
	}
}

// break ends the requests, and each range over the sequence lists anew.
func TestListStopsWithItsConsumer(t *testing.T) {
	s := serve(t, s3Like())
	s.pageSize = 2
	for i := range 10 {
		s.put(fmt.Sprint("k", i), nil)
	}
	seq := open(t, s).List(t.Context(), "", nil)
	wantLog(t, s)
	for range 2 {
		n := 0
		for _, err := range seq {
			if n++; err != nil || n == 2 {
				break
			}
		}
		wantLog(t, s, `list after "" token ""`)
	}
}

// A cancel between pages ends the listing in the context's error.
func TestListEndsWithItsContext(t *testing.T) {
	s := serve(t, s3Like())
	s.pageSize = 1
	s.put("a", nil)
	s.put("b", nil)
	ctx, cancel := contextOf(t)
	var last error
	for _, err := range open(t, s).List(ctx, "", nil) {
		cancel()
		last = err
	}
	if e := wantKind(t, last, ctx.Err()); e.Kind != nil {
		t.Errorf("%#v", e)
	}
	wantLog(t, s, `list after "" token ""`)
}

// A service without an order is refused before any request: no listing is sorted in memory.
func TestUnorderedServiceIsRefused(t *testing.T) {
	p := s3Like()
	p.traits.Ordered = false
	s := serve(t, p)
	s.put("a", nil)
	_, err := walk(t, open(t, s), "", nil)
	wantKind(t, err, blob.ErrUnsupported)
	wantLog(t, s)
}
