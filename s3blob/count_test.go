package s3blob_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// countOps are operations on the object k of three parts, and on a deleted object.
var countOps = map[string]func(context.Context, blob.Blob) error{
	"get":       func(ctx context.Context, b blob.Blob) error { _, err := b.Get(ctx, "k", nil); return err },
	"get range": func(ctx context.Context, b blob.Blob) error { return getRange(ctx, b, blob.Span(5, P)) },
	"get end":   func(ctx context.Context, b blob.Blob) error { return getRange(ctx, b, blob.Last(2*P)) },
	"get none":  func(ctx context.Context, b blob.Blob) error { return getRange(ctx, b, blob.Span(5, 0)) },
	"getranges": func(ctx context.Context, b blob.Blob) error {
		_, err := b.GetRanges(ctx, "k", []blob.Range{blob.Span(0, 5), blob.Last(5), blob.Span(P, 9)}, nil)
		return err
	},
	"stat":          func(ctx context.Context, b blob.Blob) error { _, err := b.Stat(ctx, "k"); return err },
	"set":           func(ctx context.Context, b blob.Blob) error { return setN(ctx, b, 10, blob.Condition{}) },
	"set parts":     func(ctx context.Context, b blob.Blob) error { return setN(ctx, b, 3*P, blob.Condition{}) },
	"set IfAbsent":  func(ctx context.Context, b blob.Blob) error { return setN(ctx, b, 10, blob.IfAbsent()) },
	"set parts too": func(ctx context.Context, b blob.Blob) error { return setN(ctx, b, 3*P, blob.IfAbsent()) },
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
	"restore":   func(ctx context.Context, b blob.Blob) error { _, err := b.Restore(ctx, "gone"); return err },
}

func getRange(ctx context.Context, b blob.Blob, r blob.Range) error {
	_, err := b.Get(ctx, "k", &blob.GetOptions{Range: r})
	return err
}

func setN(ctx context.Context, b blob.Blob, n int, c blob.Condition) error {
	_, err := b.Set(ctx, "new", blob.Bytes(content(n)), &blob.SetOptions{If: c})
	return err
}

// However the decorators are stacked, the service sees no request more often than the policy allows, kept connections included: neither
// the SDK nor net/http nor a second loop tries on its own.
func TestServerSeesNoMoreAttemptsThanThePolicyAllows(t *testing.T) {
	always := map[string]fakes3.Fault{
		"503":          reply(503, "SlowDown", 0),
		"500":          reply(500, "", 0),
		"409":          reply(409, "", 0),
		"reset before": {Before: fakes3.Reset},
		"close before": {Before: fakes3.Close},
		"reset after":  {After: fakes3.Reset},
		"cut":          {Cut: &fakes3.Cut{At: 0}},
	}
	for name, do := range countOps {
		t.Run(name, func(t *testing.T) {
			usual := countRun(t, do, fakes3.Fault{Op: "none"}, 3)
			for _, failing := range opsOf(usual) {
				for how, f := range always {
					for _, attempts := range []int{1, 3} {
						f.Op, f.Times = failing, -1
						log := countRun(t, do, f, attempts)
						if n := log.Count("CreateMultipartUpload"); n > attempts {
							t.Errorf("%s of %s: %d uploads begun with %d attempts", how, failing, n, attempts)
						}
						for request, n := range counted(log) {
							if n > attempts*max(1, counted(usual)[request]) {
								t.Errorf("%s of %s: %q was sent %d times with %d attempts:\n%s", how, failing, request, n, attempts, log)
							}
						}
					}
				}
			}
		})
	}
}

// opsOf returns the operations of requests, each once.
func opsOf(log fakes3.Log) []string {
	var ops []string
	for _, e := range log {
		ops = append(ops, e.Op)
	}
	slices.Sort(ops)
	return slices.Compact(ops)
}

// countRun runs do through a stack of all decorators, each twice, over kept connections, and returns the requests.
func countRun(t *testing.T, do func(context.Context, blob.Blob) error, f fakes3.Fault, attempts int) fakes3.Log {
	t.Helper()
	srv := fakes3.New(fakes3.Options{Buckets: []string{"b"}, MinPartSize: -1, Versioned: true})
	defer srv.Close()
	srv.PutObject("b", "p/q/k", inParts(content(3*P), P), nil)
	srv.PutObject("b", "p/q/gone", nil, nil)
	srv.DeleteObject("b", "p/q/gone")
	o := options(srv)
	small(o)
	policy := retry.Policy{Attempts: attempts, FirstDelay: time.Microsecond, MaxDelay: 10 * time.Microsecond}
	o.Restore, o.Retry = true, policy
	st, err := s3blob.New(t.Context(), "b", o)
	if err != nil {
		t.Fatal(err)
	}
	b := blob.Blob(st)
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
	if _, err := b.Get(t.Context(), "k", nil); err != nil { // opens connections that are kept
		t.Fatal(err)
	}
	srv.ResetLog()
	in := srv.Inject(f)
	err = do(t.Context(), b)
	if (err == nil) != (f.Op == "none") && in.Hits() == 0 {
		t.Fatalf("%s: %v, though no request failed", f.Op, err)
	}
	log := srv.Log()
	if err := st.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return log
}

// counted counts the requests that differ in nothing. Aborts go on in the background: they are not the operation's.
func counted(log fakes3.Log) map[string]int {
	n := make(map[string]int)
	for _, e := range log {
		if e.Op != "AbortMultipartUpload" {
			what, _, _ := strings.Cut(e.String(), " -> ")
			n[fmt.Sprintf("%s %s", what, e.UploadID)]++
		}
	}
	return n
}
