package blobtest

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

type setFunc = func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error)

// notApplied makes the outcome of every failure of set a lie.
func notApplied(set setFunc) setFunc {
	return func(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
		info, err := set(ctx, key, src, opts)
		var e *blob.Error
		if errors.As(err, &e) {
			e.Outcome = blob.NotApplied
		}
		return info, err
	}
}

// withKeys returns a store that holds keys, each with its name as content.
func withKeys(t *testing.T, keys ...string) blob.Blob {
	t.Helper()
	s := memblob.New(nil)
	for _, k := range keys {
		if _, err := s.Set(t.Context(), k, blob.Bytes([]byte(k)), nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func listedKeys(t *testing.T, s blob.Blob) (keys []string, err error) {
	t.Helper()
	for info, err := range s.List(t.Context(), "", nil) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, info.Key)
	}
	return keys, nil
}

func TestNoFaultsKeepEveryRule(t *testing.T) {
	Run(t, func(*testing.T) blob.Blob { return NewFaults(memblob.New(&memblob.Options{Restore: true})) }, &Config{Pending: pendingOfMemory()})
}

func TestFailBeforeDoesNotReachTheStore(t *testing.T) {
	f := NewFaults(withKeys(t, "a"), Fault{Do: FailBefore})
	_, err := f.Set(t.Context(), "b", blob.Bytes(nil), nil)
	if !errors.Is(err, blob.ErrUnavailable) || blob.OutcomeOf(err) != blob.NotApplied {
		t.Errorf("Set: %v", err)
	}
	if err := f.Delete(t.Context(), "a", nil); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("Delete: %v", err)
	}
	if _, err := f.Get(t.Context(), "a", nil); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("Get: %v", err)
	}
	if keys, _ := listedKeys(t, f.inner); fmt.Sprint(keys) != "[a]" {
		t.Errorf("the inner store has %v", keys)
	}
}

func TestFailAfterHasHappenedAndIsUnknown(t *testing.T) {
	f := NewFaults(withKeys(t, "a"), Fault{Do: FailAfter})
	_, err := f.Set(t.Context(), "b", blob.Bytes(nil), nil)
	if !errors.Is(err, blob.ErrUnavailable) || blob.OutcomeOf(err) != blob.Unknown {
		t.Errorf("Set: %v", err)
	}
	if err := f.Delete(t.Context(), "a", nil); blob.OutcomeOf(err) != blob.Unknown {
		t.Errorf("Delete: %v", err)
	}
	if _, err := f.Get(t.Context(), "b", nil); err == nil || blob.OutcomeOf(err) != blob.NotApplied {
		t.Errorf("Get: %v", err)
	}
	if keys, _ := listedKeys(t, f.inner); fmt.Sprint(keys) != "[b]" {
		t.Errorf("the inner store has %v", keys)
	}
	// What was refused without a request had no reply to lose.
	if _, err := f.Set(t.Context(), "b.", blob.Bytes(nil), nil); !errors.Is(err, blob.ErrInvalidKey) {
		t.Errorf("Set of an invalid key: %v", err)
	}
}

func TestThrottleSaysWhenToComeBack(t *testing.T) {
	f := NewFaults(withKeys(t), Fault{Do: Throttle, RetryAfter: 3 * time.Second})
	_, err := f.Stat(t.Context(), "a")
	var e *blob.Error
	if !errors.As(err, &e) || !errors.Is(err, blob.ErrThrottled) || e.RetryAfter != 3*time.Second || e.Op != blob.OpStat || e.Key != "a" || e.Store != "memory" {
		t.Errorf("Stat: %#v", err)
	}
}

func TestErrChoosesTheKindOrTheCause(t *testing.T) {
	cause := errors.New("cable cut")
	f := NewFaults(withKeys(t), Fault{Do: FailBefore, Op: blob.OpStat, Err: blob.ErrConflict}, Fault{Do: FailBefore, Op: blob.OpGet, Err: cause})
	if _, err := f.Stat(t.Context(), "a"); blob.KindOf(err) != blob.ErrConflict {
		t.Errorf("Stat: %v", err)
	}
	if _, err := f.Get(t.Context(), "a", nil); !errors.Is(err, cause) || blob.KindOf(err) != nil {
		t.Errorf("Get: %v", err)
	}
}

func TestTruncateIsSilent(t *testing.T) {
	f := NewFaults(withKeys(t, "0123456789"), Fault{Do: Truncate, Call: 1}, Fault{Do: Truncate, Call: 2, Keep: 4}, Fault{Do: Truncate, Call: 3, Keep: -1}, Fault{Do: Truncate, Call: 4, Keep: 100})
	for i, want := range []string{"012345678", "0123", "", "0123456789", "0123456789"} {
		o, err := f.Get(t.Context(), "0123456789", nil)
		if err != nil || string(o.Data) != want || o.Size != 10 {
			t.Errorf("Get number %d: %q of %d, %v", i+1, o.Data, o.Size, err)
		}
	}
}

func TestTruncatedSetReportsTheWholeSize(t *testing.T) {
	f := NewFaults(withKeys(t), Fault{Do: Truncate, Op: blob.OpSet, Keep: 3})
	info, err := f.Set(t.Context(), "a", blob.Bytes([]byte("0123456789")), nil)
	if err != nil || info.Size != 10 {
		t.Errorf("Set: size %d, %v", info.Size, err)
	}
	if o, err := f.Get(t.Context(), "a", nil); err != nil || string(o.Data) != "012" {
		t.Errorf("Get: %q, %v", o.Data, err)
	}
}

func TestCorruptChangesOneBitOfTheReaderAndNoneOfTheStore(t *testing.T) {
	key := "some-content"
	f := NewFaults(withKeys(t, key), Fault{Do: Corrupt, Op: blob.OpGet, Times: 2})
	dst := make([]byte, 100)
	for _, o := range []*blob.GetOptions{nil, {Dst: dst}} {
		got, err := f.Get(t.Context(), key, o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range got.Data {
			n += bits.OnesCount8(got.Data[i] ^ key[i])
		}
		if n != 1 || len(got.Data) != len(key) {
			t.Errorf("%d bits of %d bytes differ, want 1 of %d", n, len(got.Data), len(key))
		}
		if o != nil && &got.Data[0] != &dst[0] {
			t.Error("Data does not lie in Dst")
		}
	}
	if o, err := f.Get(t.Context(), key, nil); err != nil || string(o.Data) != key {
		t.Errorf("Get afterwards: %q, %v", o.Data, err)
	}
}

func TestListEndsEarlyCleanlyOrInAnError(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		want  string
		fails bool
	}{
		{Fault{Do: Truncate}, "[a b]", false}, {Fault{Do: Truncate, Keep: 1}, "[a]", false}, {Fault{Do: Truncate, Keep: -1}, "[]", false}, {Fault{Do: Truncate, Keep: 9}, "[a b c]", false},
		{Fault{Do: FailAfter}, "[a b]", true}, {Fault{Do: FailAfter, Keep: 1}, "[a]", true}, {Fault{Do: FailAfter, Keep: 9}, "[a b c]", true}, {Fault{Do: FailBefore}, "[]", true},
	} {
		f := NewFaults(withKeys(t, "a", "b", "c"), c.fault)
		keys, err := listedKeys(t, f)
		if fmt.Sprint(keys) != c.want || (err != nil) != c.fails {
			t.Errorf("%v, Keep %d: %v, %v", c.fault.Do, c.fault.Keep, keys, err)
		}
		for _, err := range f.List(t.Context(), "", nil) { // a break must not panic
			_ = err
			break
		}
	}
}

func TestDeleteAllFailsForTheKeysThatMatch(t *testing.T) {
	f := NewFaults(withKeys(t, "a", "b", "c"), Fault{Do: FailBefore, Key: KeyIs("a")}, Fault{Do: FailAfter, Key: KeyIs("b")})
	err := f.DeleteAll(t.Context(), []string{"a", "b", "c"})
	var d *blob.DeleteError
	if !errors.As(err, &d) || len(d.Failed) != 2 {
		t.Fatalf("DeleteAll: %v", err)
	}
	for _, k := range d.Failed {
		want := map[string]blob.Outcome{"a": blob.NotApplied, "b": blob.Unknown}[k.Key]
		if blob.OutcomeOf(k.Err) != want {
			t.Errorf("%s: %v", k.Key, k.Err)
		}
	}
	if keys, _ := listedKeys(t, f.inner); fmt.Sprint(keys) != "[a]" {
		t.Errorf("the inner store has %v", keys)
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFaults(withKeys(t, "a"), Fault{Do: Delay, Delay: time.Hour}, Fault{Do: FailBefore, Op: blob.OpStat})
		start := time.Now()
		if _, err := f.Get(t.Context(), "a", nil); err != nil || time.Since(start) != time.Hour {
			t.Errorf("Get after %v: %v", time.Since(start), err)
		}
		if _, err := f.Stat(t.Context(), "a"); !errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("the fault after a Delay: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		err := f.Delete(ctx, "a", nil)
		if !errors.Is(err, context.DeadlineExceeded) || blob.OutcomeOf(err) != blob.NotApplied || time.Since(start) != time.Minute {
			t.Errorf("Delete after %v: %v", time.Since(start), err)
		}
		start = time.Now()
		if err := f.DeleteAll(t.Context(), []string{"a", "b", "c"}); err != nil || time.Since(start) != time.Hour {
			t.Errorf("DeleteAll after %v: %v", time.Since(start), err)
		}
	})
}

func TestWaitHoldsACallUntilTheTestLetsItGo(t *testing.T) {
	arrived, release := make(chan string), make(chan struct{})
	f := NewFaults(withKeys(t, "a"), Fault{Do: Delay, Op: blob.OpGet, Wait: func(_ context.Context, op, key string) {
		arrived <- op + " " + key
		<-release
	}})
	done := make(chan error, 1)
	go func() {
		_, err := f.Get(t.Context(), "a", nil)
		done <- err
	}()
	if got := <-arrived; got != "get a" {
		t.Errorf("arrived: %s", got)
	}
	if len(done) != 0 {
		t.Error("Get returned while it was held")
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCallAndTimesCountWhatMatches(t *testing.T) {
	f := NewFaults(withKeys(t, "a", "b"), Fault{Do: FailBefore, Op: blob.OpGet, Key: KeyIs("a"), Call: 2}, Fault{Do: Throttle, Op: blob.OpStat, Times: 2})
	var got string
	for _, k := range []string{"a", "b", "a", "a"} {
		_, err := f.Get(t.Context(), k, nil)
		got += fmt.Sprint(err == nil, " ")
	}
	for range 3 {
		_, err := f.Stat(t.Context(), "a")
		got += fmt.Sprint(err == nil, " ")
	}
	if want := "true true false true false false true "; got != want {
		t.Errorf("successes are %s, want %s", got, want)
	}
	if f.Calls(blob.OpGet) != 4 || f.Calls(blob.OpStat) != 3 || f.Calls(blob.OpSet) != 0 {
		t.Errorf("calls: %d, %d, %d", f.Calls(blob.OpGet), f.Calls(blob.OpStat), f.Calls(blob.OpSet))
	}
	if in := f.Injected(); len(in) != 3 || in[0].String() != `get "a", call 2: FailBefore` {
		t.Errorf("injected: %v", in)
	}
}

// work makes the same calls on the keys each time, from as many goroutines as there are keys, and returns how they ended.
func work(t *testing.T, f *Faulty) map[string]string {
	var mu sync.Mutex
	results := map[string]string{}
	atOnce(8, func(g int) {
		key := fmt.Sprint("key", g)
		text := ""
		for i := range 20 {
			_, err := f.Set(t.Context(), key, blob.Bytes([]byte(fmt.Sprint(key, i))), nil)
			o, getErr := f.Get(t.Context(), key, nil)
			text += fmt.Sprintf("%v %v %q\n", err, getErr, o.Data)
		}
		mu.Lock()
		defer mu.Unlock()
		results[key] = text
	})
	return results
}

func chances() []Fault {
	return []Fault{{Do: FailAfter, Op: blob.OpSet, Chance: 0.2}, {Do: Corrupt, Op: blob.OpGet, Chance: 0.2}, {Do: Throttle, Chance: 0.1}}
}

func TestSameSeedSameFaultsWhateverTheSchedule(t *testing.T) {
	seed := RandomSeed(t)
	first := work(t, NewFaults(memblob.New(nil), chances()...).Seed(seed))
	for range 5 {
		if again := work(t, NewFaults(memblob.New(nil), chances()...).Seed(seed)); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("seed %d gives\n%v\nand\n%v", seed, first, again)
		}
	}
	if other := work(t, NewFaults(memblob.New(nil), chances()...).Seed(seed+2)); fmt.Sprint(other) == fmt.Sprint(first) {
		t.Error("another seed gives the same faults")
	}
}

func TestReplayDoesWhatWasDone(t *testing.T) {
	seed := RandomSeed(t)
	f := NewFaults(memblob.New(nil), chances()...).Seed(seed)
	first := work(t, f)
	if len(f.Injected()) == 0 {
		t.Fatal("no fault was injected")
	}
	r := NewFaults(memblob.New(nil), f.Replay()...).Seed(seed)
	if again := work(t, r); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("the run is\n%v\nand its replay\n%v", first, again)
	}
	if len(r.Injected()) != len(f.Injected()) {
		t.Errorf("%d faults, replayed %d", len(f.Injected()), len(r.Injected()))
	}
}

func TestADoneContextMeetsNoFault(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := NewFaults(withKeys(t, "a"), Fault{Do: FailBefore})
	if _, err := f.Get(ctx, "a", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	if len(f.Injected()) != 0 {
		t.Errorf("injected: %v", f.Injected())
	}
}
