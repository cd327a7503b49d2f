package fileblob

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

func list(t testing.TB, s blob.Blob, prefix string, o *blob.ListOptions) (keys []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix, o) {
		if err != nil {
			t.Fatal(err)
		}
		if info.IsPrefix {
			info.Key += "*"
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// expect computes a listing from the contract's words alone.
func expect(keys []string, prefix string, o blob.ListOptions) (want []string) {
	for _, key := range slices.Sorted(slices.Values(keys)) {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		if head, _, ok := strings.Cut(rest, o.Delimiter); ok && o.Delimiter != "" {
			key = prefix + head + o.Delimiter
			if key > o.StartAfter && !slices.Contains(want, key+"*") {
				want = append(want, key+"*")
			}
			continue
		}
		if key > o.StartAfter {
			want = append(want, key)
		}
	}
	return want
}

// randomKey makes keys that share beginnings and straddle the places where a layout cuts.
func randomKey(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString([]string{"a", "a", "b", "/", "/", "-", ".x", "0", "É", strings.Repeat("a", 127), strings.Repeat("É", 21)}[r.IntN(11)])
	}
	return b.String()
}

func TestListEqualsTheSortedKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed ", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := open(t, t.TempDir(), Options{NoSync: true})
	s.listBudget = 1 << 10 // many windows in each directory
	var keys []string
	for range 400 {
		if key := randomKey(r); !slices.Contains(keys, key) && blob.CheckKey(key) == nil {
			set(t, s, key, "")
			keys = append(keys, key)
		}
	}
	pick := func() string {
		key := keys[r.IntN(len(keys))]
		for i := r.IntN(len(key) + 1); i > 0; i-- { // at a character
			if i == len(key) || key[i]&0xC0 != 0x80 {
				return key[:i]
			}
		}
		return ""
	}
	for range 400 {
		prefix, o := pick(), blob.ListOptions{Delimiter: []string{"", "/", "/", "-", "a", "a/", "É"}[r.IntN(7)]}
		if r.IntN(2) == 0 {
			o.StartAfter = pick()
		}
		if got, want := list(t, s, prefix, &o), expect(keys, prefix, o); !slices.Equal(got, want) {
			t.Fatalf("List(%q, %+v):\n%q\nwant\n%q", prefix, o, got, want)
		}
	}
}

// apache/arrow-rs-object-store #71, and the order in which S3 lists: '-' sorts before '/', '0' after it.
func TestHugeDirectoryIsListedInOrderInLittleMemory(t *testing.T) {
	s := open(t, t.TempDir(), Options{NoSync: true})
	var keys []string
	for i := range 1500 {
		keys = append(keys, fmt.Sprintf("a%c%04d", "-/0"[i%3], i))
		set(t, s, keys[i], "")
	}
	slices.Sort(keys)
	for _, budget := range []int{1, 1 << 10, listBudget} {
		s.listBudget = budget
		if budget == 1 { // a window of one name: quadratic
			if got := list(t, s, "", &blob.ListOptions{StartAfter: keys[1450]}); !slices.Equal(got, keys[1451:]) {
				t.Errorf("budget %d: %d keys", budget, len(got))
			}
			continue
		}
		if got := list(t, s, "", nil); !slices.Equal(got, keys) {
			t.Errorf("budget %d: %d keys, sorted: %v", budget, len(got), slices.IsSorted(got))
		}
	}
}

func TestListEntersOnlyDirectoriesThatCanHoldTheKeys(t *testing.T) {
	s, p := probedStore(t, t.TempDir(), Options{NoSync: true})
	for i := range 5 {
		set(t, s, fmt.Sprintf("d%d/x/k", i), "")
	}
	for _, c := range []struct {
		prefix string
		opts   blob.ListOptions
		want   []string
	}{
		{"d3/x/", blob.ListOptions{}, []string{"readdir d3/x"}},
		{"d3/", blob.ListOptions{StartAfter: "d3/x/k"}, []string{"readdir d3", "readdir d3/x"}},
		{"", blob.ListOptions{StartAfter: "d3/x/k"}, []string{"readdir ", "readdir d3", "readdir d3/x", "readdir d4", "readdir d4/x"}},
		{"d2/", blob.ListOptions{Delimiter: "/"}, []string{"readdir d2", "readdir d2/x"}},
		{"nothing/", blob.ListOptions{}, nil},
	} {
		p.reset(nil)
		list(t, s, c.prefix, &c.opts)
		equalLines(t, grep(p.trace(), "readdir"), trimmed(c.want))
	}
}

func trimmed(lines []string) (list []string) {
	for _, l := range lines {
		list = append(list, strings.TrimSpace(l))
	}
	return list
}

func TestEmptyDirectoriesArePrunedAndNeverListed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	set(t, s, "a/b/c/k", "")
	remove(t, s, "a/b/c/k")
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	// As a crash between mkdir and rename leaves them.
	if err := os.MkdirAll(filepath.Join(dir, "x", "y"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, delimiter := range []string{"", "/"} {
		if got := list(t, s, "", &blob.ListOptions{Delimiter: delimiter}); len(got) != 0 {
			t.Errorf("delimiter %q: %q", delimiter, got)
		}
	}
	if _, err := s.Set(t.Context(), "a/k", blob.Bytes(nil), &blob.SetOptions{If: blob.IfVersion("none")}); !errors.Is(err, blob.ErrPrecondition) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused Set made a directory: %v", err)
	}
}

// apache/arrow-rs-object-store #71: a walk meets files that vanish, a Set directories that are pruned under it.
func TestSetDeleteAndListInOneDirectoryDoNotDisturbEachOther(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	other := open(t, dir, Options{NoSync: true}) // as another process would
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	worker := func(turn func(i int) error) {
		wg.Go(func() {
			defer cancel()
			for i := 0; i < 300 && ctx.Err() == nil; i++ {
				if err := turn(i); err != nil {
					t.Errorf("turn %d: %v", i, err)
					return
				}
			}
		})
	}
	writer := func(b *Store, key string) func(int) error {
		return func(i int) error {
			if _, err := b.Set(t.Context(), key, blob.Bytes([]byte(key)), nil); err != nil {
				return err
			}
			o, err := b.Get(t.Context(), key, nil)
			if err != nil || string(o.Data) != key {
				return fmt.Errorf("read %q: %w", o.Data, err)
			}
			if i%2 == 0 {
				return b.Delete(t.Context(), key, nil)
			}
			return b.DeleteAll(t.Context(), []string{key})
		}
	}
	worker(writer(s, "a/b/c/k"))
	worker(writer(s, "a/b/c/j"))
	worker(writer(other, "a/b/c/i"))
	worker(writer(other, "a/b/d"))
	lister := func(delimiter string) func(int) error {
		return func(int) error {
			last := ""
			for info, err := range s.List(t.Context(), "", &blob.ListOptions{Delimiter: delimiter}) {
				if err != nil {
					return err
				}
				if info.Key <= last || !strings.HasPrefix(info.Key, "a/") {
					return fmt.Errorf("%q after %q", info.Key, last)
				}
				last = info.Key
			}
			return nil
		}
	}
	worker(lister(""))
	worker(lister("/"))
	wg.Wait()
}
