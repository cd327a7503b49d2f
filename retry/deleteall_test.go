package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// keyed is a DeleteAll that fails for some keys: as often as the list of a key's errors is long.
type keyed struct {
	f     *fake
	errs  map[string][]error
	asked [][]string
}

func (k *keyed) run(ctx context.Context, n int, keys []string) error {
	k.asked = append(k.asked, slices.Clone(keys))
	var failed []blob.KeyError
	for _, key := range keys {
		if errs := k.errs[key]; n <= len(errs) && errs[n-1] != nil {
			failed = append(failed, blob.KeyError{Key: key, Err: errs[n-1]})
		} else if err := k.f.mem.Delete(ctx, key, nil); err != nil {
			failed = append(failed, blob.KeyError{Key: key, Err: err})
		}
	}
	if failed == nil {
		return nil
	}
	return &blob.DeleteError{Failed: failed}
}

func keyedFake(t *testing.T, errs map[string][]error) *keyed {
	f := newFake(t)
	put(t, f, "a", "b", "c", "d", "e")
	k := &keyed{f: f, errs: errs}
	f.deleteAll = k.run
	return k
}

func keyErr(key string, kind error, outcome blob.Outcome) error {
	return &blob.Error{Op: blob.OpDeleteAll, Store: "memory", Key: key, Kind: kind, Outcome: outcome}
}

// wantFailed checks which keys a *blob.DeleteError names: "key: kind, outcome, attempts, exhausted".
func wantFailed(t *testing.T, err error, want ...string) {
	t.Helper()
	de, ok := errors.AsType[*blob.DeleteError](err)
	if !ok {
		t.Fatalf("error %v (%T), want a *blob.DeleteError", err, err)
	}
	var got []string
	for _, f := range de.Failed {
		e, ok := errors.AsType[*blob.Error](f.Err)
		if !ok {
			got = append(got, fmt.Sprintf("%s: %v", f.Key, f.Err))
			continue
		}
		if e.Key != f.Key {
			t.Errorf("the error of key %q names key %q", f.Key, e.Key)
		}
		got = append(got, fmt.Sprintf("%s: %v, %v, %d, %v", f.Key, blob.KindOf(f.Err), e.Outcome, e.Attempts, e.Exhausted))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("failed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDeleteAllTriesAgainOnlyWhatMayPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyedFake(t, map[string][]error{
			"a": {keyErr("a", blob.ErrThrottled, blob.NotApplied)},
			"b": {keyErr("b", blob.ErrPermission, blob.NotApplied)},
			"c": {keyErr("c", blob.ErrUnavailable, blob.Unknown), keyErr("c", blob.ErrUnavailable, blob.Unknown)},
			"d": {&foreignError{"broken"}},
		})
		err := wrap(t, k.f, steady(3)).DeleteAll(t.Context(), []string{"a", "b", "c", "d", "e"})
		wantFailed(t, err, "b: permission denied, not applied, 0, false", "d: broken")
		if want := "[[a b c d e] [a c] [c]]"; fmt.Sprint(k.asked) != want {
			t.Errorf("asked for %v, want %v", k.asked, want)
		}
		if left := keysOf(t, k.f); !slices.Equal(left, []string{"b", "d"}) {
			t.Errorf("left %v", left)
		}
	})
}

func TestDeleteAllThatEndsWellIsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyedFake(t, map[string][]error{
			"a": {keyErr("a", blob.ErrThrottled, blob.NotApplied), keyErr("a", blob.ErrConflict, blob.NotApplied)},
		})
		if err := wrap(t, k.f, steady(3)).DeleteAll(t.Context(), []string{"a", "b", "b"}); err != nil {
			t.Error(err)
		}
		if want := "[[a b b] [a] [a]]"; fmt.Sprint(k.asked) != want {
			t.Errorf("asked for %v, want %v", k.asked, want)
		}
		if left := keysOf(t, k.f); !slices.Equal(left, []string{"c", "d", "e"}) {
			t.Errorf("left %v", left)
		}
	})
}

func TestDeleteAllNamesEveryKeyItGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := func(key string, o blob.Outcome) []error {
			return slices.Repeat([]error{keyErr(key, blob.ErrThrottled, o)}, 9)
		}
		k := keyedFake(t, map[string][]error{
			"a": busy("a", blob.NotApplied),
			"b": append([]error{keyErr("b", blob.ErrUnavailable, blob.Unknown)}, busy("b", blob.NotApplied)...),
			"c": {keyErr("c", blob.ErrUnavailable, blob.Unknown), keyErr("c", blob.ErrPermission, blob.NotApplied)},
		})
		began := time.Now()
		err := wrap(t, k.f, steady(2)).DeleteAll(t.Context(), []string{"a", "b", "c", "d"})
		// "c" is settled with the second attempt: progress, and two more.
		wantFailed(t, err,
			"a: throttled, not applied, 4, true",
			"b: throttled, unknown, 4, true",
			"c: permission denied, unknown, 0, false",
		)
		if now := time.Since(began); now != 400*ms {
			t.Errorf("took %v, want 100 ms after each progress and 200 ms more", now)
		}
	})
}

func TestDeleteAllWaitsAsLongAsAnyKeyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &blob.Error{Op: blob.OpDeleteAll, Key: "b", Kind: blob.ErrThrottled, Outcome: blob.NotApplied, RetryAfter: 7 * time.Second}
		k := keyedFake(t, map[string][]error{"a": {keyErr("a", blob.ErrThrottled, blob.NotApplied)}, "b": {slow}})
		began := time.Now()
		if err := wrap(t, k.f, steady(3)).DeleteAll(t.Context(), []string{"a", "b"}); err != nil {
			t.Error(err)
		}
		if now := time.Since(began); now != 7*time.Second {
			t.Errorf("took %v, want 7 s", now)
		}
	})
}

func TestACancelDuringDeleteAllNamesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyedFake(t, map[string][]error{
			"a": {keyErr("a", blob.ErrThrottled, blob.NotApplied)},
			"b": {keyErr("b", blob.ErrUnavailable, blob.Unknown)},
			"c": {keyErr("c", blob.ErrPermission, blob.NotApplied)},
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(50*ms, cancel)
		err := wrap(t, k.f, steady(3)).DeleteAll(ctx, []string{"a", "b", "c", "d"})
		wantFailed(t, err,
			"a: context canceled, not applied, 1, false",
			"b: context canceled, unknown, 1, false",
			"c: permission denied, not applied, 0, false",
		)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v does not match the context's", err)
		}
	})
}

func TestDeleteAllThatFailsAsAWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		then error // after a first attempt that failed for "a" alone
		want string
	}{
		"for good":       {&blob.Error{Op: blob.OpDeleteAll, Kind: blob.ErrPermission, Outcome: blob.NotApplied}, "a: permission denied, not applied, 2, false"},
		"for good, lost": {&blob.Error{Op: blob.OpDeleteAll, Kind: blob.ErrPermission}, "a: permission denied, unknown, 2, false"},
		"and gives up":   {&blob.Error{Op: blob.OpDeleteAll, Kind: blob.ErrUnavailable}, "a: unavailable, unknown, 3, true"},
		"unclassified":   {&foreignError{"broken"}, "a: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := keyedFake(t, map[string][]error{"a": {keyErr("a", blob.ErrThrottled, blob.NotApplied)}})
				k.f.before = func(_ string, n int) error {
					if n > 1 {
						return tc.then
					}
					return nil
				}
				wantFailed(t, wrap(t, k.f, steady(2)).DeleteAll(t.Context(), []string{"a", "b"}), tc.want)
			})
		})
	}
}

func TestDeleteAllAsksForAKeyOnceHoweverOftenItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyedFake(t, map[string][]error{"a": {keyErr("a", blob.ErrThrottled, blob.NotApplied)}})
		if err := wrap(t, k.f, steady(3)).DeleteAll(t.Context(), []string{"a", "a"}); err != nil {
			t.Error(err)
		}
		if want := "[[a a] [a]]"; fmt.Sprint(k.asked) != want {
			t.Errorf("asked for %v, want %v", k.asked, want)
		}
	})
}

func TestDeleteAllThatNeverReachedAKeyReturnsTheStoresError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.before = failing(9, &blob.Error{Op: blob.OpDeleteAll, Kind: blob.ErrThrottled, Outcome: blob.NotApplied})
		err := wrap(t, f, steady(2)).DeleteAll(t.Context(), []string{"a", "b"})
		if isDeleteError(err) {
			t.Errorf("error %v (%T), want that of the store", err, err)
		}
		wantAttempts(t, wantError(t, err, blob.ErrThrottled, blob.NotApplied), 2, true)
	})
}

func TestALongDeleteAllStillRetriesItsLastKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyedFake(t, map[string][]error{"a": {keyErr("a", blob.ErrThrottled, blob.NotApplied)}})
		k.f.before = func(string, int) error {
			<-time.After(time.Hour)
			return nil
		}
		if err := wrap(t, k.f, Policy{Total: time.Minute}).DeleteAll(t.Context(), []string{"a", "b"}); err != nil {
			t.Error(err)
		}
	})
}

// A key that nobody asked for may be another view's name for one of ours.
func TestDeleteAllTriesNoKeyThatWasNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		put(t, f, "e")
		var asked [][]string
		f.deleteAll = func(_ context.Context, _ int, keys []string) error {
			asked = append(asked, keys)
			return &blob.DeleteError{Failed: []blob.KeyError{{Key: "e", Err: keyErr("e", blob.ErrThrottled, blob.NotApplied)}}}
		}
		err := wrap(t, f, steady(3)).DeleteAll(t.Context(), []string{"a"})
		wantFailed(t, err, "e: throttled, not applied, 0, false")
		if len(asked) != 1 {
			t.Errorf("asked for %v", asked)
		}
	})
}
