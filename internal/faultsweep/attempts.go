package faultsweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/retry"
)

// Attempts shows that however the decorators are stacked, the service sees no request more often than the policy allows, kept
// connections included: neither the SDK nor net/http nor a second loop tries on its own.
func Attempts(t *testing.T, target *Target) {
	for name, do := range target.calls() {
		t.Run(name, func(t *testing.T) {
			usual := target.attempt(t, do, fakehttp.Fault{Op: "none"}, 3)
			for _, failing := range opsOf(usual) {
				for how, f := range target.always() {
					for _, attempts := range []int{1, 3} {
						f.Op, f.Times = failing, -1
						log := target.attempt(t, do, f, attempts)
						if n := target.count(log, Begin); n > attempts {
							t.Errorf("%s of %s: %d uploads begun with %d attempts", how, failing, n, attempts)
						}
						for request, n := range target.counted(log) {
							if n > attempts*max(1, target.counted(usual)[request]) {
								t.Errorf("%s of %s: %q was sent %d times with %d attempts:\n%s", how, failing, request, n, attempts, log)
							}
						}
					}
				}
			}
		})
	}
}

// always are the faults that each request of a kind meets.
func (target *Target) always() map[string]fakehttp.Fault {
	faults := map[string]fakehttp.Fault{
		"reset before": {Before: fakehttp.Reset},
		"close before": {Before: fakehttp.Close},
		"reset after":  {After: fakehttp.Reset},
		"cut":          {Cut: &fakehttp.Cut{At: 0}},
	}
	for _, r := range slices.Concat(target.Throttles, target.Failures, target.Conflicts) {
		faults[said(r)] = fakehttp.Fault{Reply: &r}
	}
	return faults
}

// calls are operations on the object of theKey, of three parts, and on a deleted object.
func (target *Target) calls() map[string]func(context.Context, blob.Blob) error {
	p := target.PartSize
	get := func(r blob.Range) func(context.Context, blob.Blob) error {
		return func(ctx context.Context, b blob.Blob) error {
			_, err := b.Get(ctx, theKey, &blob.GetOptions{Range: r})
			return err
		}
	}
	set := func(n int, c blob.Condition) func(context.Context, blob.Blob) error {
		return func(ctx context.Context, b blob.Blob) error {
			_, err := b.Set(ctx, "new", blob.Bytes(content(n)), &blob.SetOptions{If: c})
			return err
		}
	}
	calls := map[string]func(context.Context, blob.Blob) error{
		"get":       func(ctx context.Context, b blob.Blob) error { _, err := b.Get(ctx, theKey, nil); return err },
		"get range": get(blob.Span(5, int64(p))),
		"get end":   get(blob.Last(int64(2 * p))),
		"get none":  get(blob.Span(5, 0)),
		"getranges": func(ctx context.Context, b blob.Blob) error {
			_, err := b.GetRanges(ctx, theKey, []blob.Range{blob.Span(0, 5), blob.Last(5), blob.Span(int64(p), 9)}, nil)
			return err
		},
		"stat":               func(ctx context.Context, b blob.Blob) error { _, err := b.Stat(ctx, theKey); return err },
		"set":                set(10, blob.Condition{}),
		"set parts":          set(3*p, blob.Condition{}),
		"set IfAbsent":       set(10, blob.IfAbsent()),
		"set parts IfAbsent": set(3*p, blob.IfAbsent()),
		"list": func(ctx context.Context, b blob.Blob) error {
			for _, err := range b.List(ctx, "", nil) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"delete":    func(ctx context.Context, b blob.Blob) error { return b.Delete(ctx, "other", nil) },
		"deleteall": func(ctx context.Context, b blob.Blob) error { return b.DeleteAll(ctx, []string{"x", "y"}) },
	}
	if target.Restore {
		calls["restore"] = func(ctx context.Context, b blob.Blob) error { _, err := b.Restore(ctx, "gone"); return err }
	}
	return calls
}

// opsOf returns the operations of requests, each once.
func opsOf(log fakehttp.Log) []string {
	ops := make(map[string]bool)
	for _, e := range log {
		ops[e.Op] = true
	}
	return slices.Sorted(maps.Keys(ops))
}

// attempt runs do through a stack of all decorators, each twice, over kept connections, and returns the requests.
func (target *Target) attempt(t *testing.T, do func(context.Context, blob.Blob) error, f fakehttp.Fault, attempts int) fakehttp.Log {
	t.Helper()
	s := target.Start(Setup{Restore: target.Restore})
	srv := s.HTTP()
	defer srv.Close()
	s.Put("p/q/"+theKey, inParts(content(3*target.PartSize), target.PartSize), nil)
	s.Put("p/q/gone", nil, nil)
	s.Remove("p/q/gone")
	policy := quick(attempts)
	policy.MaxDelay = 10 * time.Microsecond
	_, st, err := target.openOver(t.Context(), s, Config{Policy: policy, Restore: target.Restore})
	if err != nil {
		t.Fatal(err)
	}
	b := stacked(t, st, policy)
	if _, err := b.Get(t.Context(), theKey, nil); err != nil { // opens connections that are kept
		t.Fatal(err)
	}
	srv.ResetLog()
	in := srv.Inject(f)
	err = do(t.Context(), b)
	if (err == nil) != (f.Op == "none") && in.Hits() == 0 {
		t.Fatalf("%s: %v, though no request failed", f.Op, err)
	}
	log := srv.Log()
	srv.ClearFaults() // what is left of an upload can be aborted
	if err := st.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return log
}

func stacked(t *testing.T, b blob.Blob, policy retry.Policy) blob.Blob {
	t.Helper()
	var err error
	for _, wrap := range []func(blob.Blob) (blob.Blob, error){
		func(b blob.Blob) (blob.Blob, error) { return retry.New(b, policy) },
		func(b blob.Blob) (blob.Blob, error) { return blob.Prefixed(b, "p") },
		func(b blob.Blob) (blob.Blob, error) { return retry.New(b, policy) },
		func(b blob.Blob) (blob.Blob, error) { return blob.Prefixed(b, "q") },
		func(b blob.Blob) (blob.Blob, error) { return retry.New(b, policy) },
	} {
		if b, err = wrap(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// counted counts the requests that differ in nothing. Aborts go on in the background: they are not the operation's.
func (target *Target) counted(log fakehttp.Log) map[string]int {
	n := make(map[string]int)
	for i, e := range log {
		if target.Kind(&log[i].Request) != Abort {
			what, _, _ := strings.Cut(e.String(), " -> ")
			n[fmt.Sprintf("%s %s %s", what, e.UploadID, e.RawQuery)]++
		}
	}
	return n
}
