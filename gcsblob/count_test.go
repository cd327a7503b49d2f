package gcsblob_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
	"github.com/wholeblob/wholeblob/retry"
)

// Whatever fails, the service sees no request more often than the policy allows, over kept connections too: neither the SDK nor
// net/http tries on its own.
func TestServerSeesNoMoreAttemptsThanThePolicyAllows(t *testing.T) {
	always := map[string]fakehttp.Fault{
		"503":          {Reply: &fakehttp.Reply{Status: 503}},
		"429":          {Reply: &fakehttp.Reply{Status: 429}},
		"409":          {Reply: &fakehttp.Reply{Status: 409}},
		"401":          {Reply: &fakehttp.Reply{Status: 401}},
		"reset before": {Before: fakehttp.Reset},
		"close before": {Before: fakehttp.Close},
		"reset after":  {After: fakehttp.Reset},
		"cut":          {Cut: &fakehttp.Cut{At: 0}},
	}
	all := maps.Clone(operations)
	all["delete version"] = func(ctx context.Context, b blob.Blob) error {
		info, err := b.Stat(ctx, "k")
		if err != nil {
			return err
		}
		return b.Delete(ctx, "k", &blob.DeleteOptions{If: blob.IfVersion(info.Version)})
	}
	all["restore"] = func(ctx context.Context, b blob.Blob) error { _, err := b.Restore(ctx, "gone"); return err }
	for name, do := range all {
		t.Run(name, func(t *testing.T) {
			usual := countRun(t, do, fakehttp.Fault{Op: "none"}, 3)
			for _, e := range usual {
				for how, f := range always {
					for _, attempts := range []int{1, 3} {
						f.Op, f.Times = e.Op, -1
						log := countRun(t, do, f, attempts)
						for request, n := range counted(log) {
							if n > attempts*max(1, counted(usual)[request]) {
								t.Errorf("%s of %s: %q was sent %d times with %d attempts:\n%s", how, e.Op, request, n, attempts, log)
							}
						}
					}
				}
			}
		})
	}
}

// countRun runs do over kept connections, and returns its requests.
func countRun(t *testing.T, do func(context.Context, blob.Blob) error, f fakehttp.Fault, attempts int) fakehttp.Log {
	t.Helper()
	srv := fakegcs.New(fakegcs.Options{Buckets: []string{"b"}})
	defer srv.Close()
	srv.PutObject("b", "k", content(10<<10), nil)
	srv.PutObject("b", "other", nil, nil)
	srv.PutObject("b", "gone", nil, nil)
	srv.DeleteObject("b", "gone")
	o := options(srv)
	small(o)
	o.Restore = gcsblob.RestoreSoftDelete
	o.Retry = retry.Policy{Attempts: attempts, FirstDelay: time.Microsecond, MaxDelay: 10 * time.Microsecond}
	st, err := gcsblob.New(t.Context(), "b", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Get(t.Context(), "k", nil); err != nil { // opens connections that are kept
		t.Fatal(err)
	}
	srv.ResetLog()
	in := srv.Inject(f)
	if err := do(t.Context(), st); err != nil && in.Hits() == 0 {
		t.Fatalf("%s: %v, though no request failed", f.Op, err)
	}
	log := srv.Log()
	srv.ClearFaults()
	if err := st.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return log
}

// counted counts the requests that differ in nothing. Cancellations go on in the background: they are not the operation's.
func counted(log fakehttp.Log) map[string]int {
	n := make(map[string]int)
	for _, e := range log {
		if e.Op != "uploads.cancel" {
			what, _, _ := strings.Cut(e.String(), " -> ")
			n[fmt.Sprintf("%s %s", what, e.UploadID)]++
		}
	}
	return n
}
