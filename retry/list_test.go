package retry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// cut ends a listing in err after n elements.
func cut(seq iter.Seq2[blob.Info, error], n int, err error) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		i := 0
		for info, e := range seq {
			if i == n {
				break
			}
			if !yield(info, e) {
				return
			}
			i++
		}
		yield(blob.Info{}, err)
	}
}

// collect ranges over a listing to its end. An error must come last and with a zero Info.
func collect(t *testing.T, seq iter.Seq2[blob.Info, error]) (keys []string, last error) {
	t.Helper()
	for info, err := range seq {
		if last != nil {
			t.Fatalf("an element after the error: %v, %v", info, err)
		}
		if err != nil {
			if info.Key != "" || info.Size != 0 || info.IsPrefix {
				t.Errorf("error with Info %+v", info)
			}
			last = err
			continue
		}
		keys = append(keys, info.Key)
	}
	return keys, last
}

func TestAListingGoesOnAfterTheLastKeyWhereverItIsCut(t *testing.T) {
	all := []string{"a", "b/", "b/1", "b/2", "b0", "c/x", "c/y", "d"}
	for _, opts := range []*blob.ListOptions{nil, {StartAfter: "b/1"}, {Delimiter: "/"}, {Delimiter: "/", StartAfter: "b/1"}} {
		for every := range 5 {
			t.Run(fmt.Sprintf("%+v, cut after %d", opts, every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(t)
					put(t, f, all...)
					want, err := collect(t, f.mem.List(t.Context(), "", opts))
					if err != nil {
						t.Fatal(err)
					}
					f.list = func(n int, seq iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error] {
						if n > 2 && every == 0 {
							return seq // no progress for ever would be the end
						}
						return cut(seq, every, notApplied(blob.ErrUnavailable))
					}
					list := wrap(t, f, steady(3)).List(t.Context(), "", opts)
					got, err := collect(t, list)
					if every == 0 {
						if err != nil || f.n != 3 || !slices.Equal(got, want) {
							t.Errorf("got %v, %v in %d listings, want %v", got, err, f.n, want)
						}
						return
					}
					// The last cut is behind the last key, three times without progress.
					wantAttempts(t, wantError(t, err, blob.ErrUnavailable, blob.NotApplied), f.n, true)
					if !slices.Equal(got, want) {
						t.Errorf("got %v, want %v", got, want)
					}
				})
			})
		}
	}
}

func TestAListingResumesWithoutRepeatingACommonPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		put(t, f, "a/1", "a/2", "b/1", "c")
		f.list = func(n int, seq iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error] {
			if n > 1 {
				return seq
			}
			return cut(seq, 1, notApplied(blob.ErrTruncated))
		}
		got, err := collect(t, wrap(t, f, steady(3)).List(t.Context(), "", &blob.ListOptions{Delimiter: "/"}))
		if err != nil || !slices.Equal(got, []string{"a/", "b/", "c"}) || !slices.Equal(f.seen, []string{"", "a/"}) {
			t.Errorf("got %v, %v, with listings after %q", got, err, f.seen)
		}
	})
}

func TestEachRangeOverAListingBeginsAnew(t *testing.T) {
	f := newFake(t)
	put(t, f, "a", "b", "c")
	list := wrap(t, f, steady(3)).List(t.Context(), "", nil)
	for _, err := range list {
		if err != nil {
			t.Error(err)
		}
		break
	}
	got, err := collect(t, list)
	if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) || f.n != 2 {
		t.Errorf("got %v, %v in %d listings", got, err, f.n)
	}
}

func TestABreakEndsTheListing(t *testing.T) {
	f := newFake(t)
	put(t, f, "a", "b")
	f.list = func(_ int, seq iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error] {
		return cut(seq, 1, notApplied(blob.ErrUnavailable))
	}
	for info, err := range wrap(t, f, steady(3)).List(t.Context(), "", nil) {
		if err != nil || info.Key != "a" {
			t.Errorf("got %v, %v", info, err)
		}
		break
	}
	if f.n != 1 {
		t.Errorf("%d listings, want 1", f.n)
	}
}

func TestASlowConsumerDoesNotUseUpTheTimeOfAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		put(t, f, "a", "b", "c", "d")
		f.list = func(n int, seq iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error] {
			if n == 4 {
				return seq
			}
			return cut(seq, 1, notApplied(blob.ErrUnavailable))
		}
		n := 0
		for _, err := range wrap(t, f, Policy{Total: time.Second}).List(t.Context(), "", nil) {
			if err != nil {
				t.Error(err)
			}
			n++
			<-time.After(time.Hour)
		}
		if n != 4 {
			t.Errorf("%d keys, want 4", n)
		}
	})
}

func TestAListingThatFailsForGoodEndsInItsError(t *testing.T) {
	f := newFake(t)
	put(t, f, "a", "b")
	f.list = func(_ int, seq iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error] {
		return cut(seq, 1, notApplied(blob.ErrPermission))
	}
	got, err := collect(t, wrap(t, f, steady(3)).List(t.Context(), "", nil))
	wantAttempts(t, wantError(t, err, blob.ErrPermission, blob.NotApplied), 1, false)
	if !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %v", got)
	}
}

func TestACancelEndsAListingThatSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		put(t, f, "a", "b")
		f.list = func(_ int, seq iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error] {
			return cut(seq, 1, notApplied(blob.ErrThrottled))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(50*ms, cancel)
		got, err := collect(t, wrap(t, f, steady(3)).List(ctx, "p", nil))
		if e := wantError(t, err, context.Canceled, blob.NotApplied); e.Op != blob.OpList || e.Key != "p" {
			t.Errorf("error %q", e)
		}
		if len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
}

// A store that ignores StartAfter, or does not sort, would make a resumed listing repeat keys or leave some out.
func TestAListingOutOfOrderEndsInAnError(t *testing.T) {
	for name, second := range map[string][]string{
		"ignores StartAfter": {"a", "b", "c"},
		"not sorted":         {"c", "b"},
		"repeats":            {"b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.list = func(n int, _ iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error] {
					keys := []string{"a", "b"}
					if n > 1 {
						keys = second
					}
					return cut(func(yield func(blob.Info, error) bool) {
						for _, k := range keys {
							if !yield(blob.Info{Key: k}, nil) {
								return
							}
						}
					}, len(keys), notApplied(blob.ErrUnavailable))
				}
				got, err := collect(t, wrap(t, f, steady(3)).List(t.Context(), "", nil))
				if !errors.Is(err, blob.ErrUnsupported) || !slices.IsSorted(got) || len(slices.Compact(got)) != len(got) {
					t.Errorf("got %v, %v", got, err)
				}
			})
		})
	}
}
