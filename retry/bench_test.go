package retry

import (
	"context"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// A call that succeeds at once pays for the Attempt, and for the context and the timer of a limit.
func BenchmarkDo(b *testing.B) {
	for name, p := range map[string]Policy{"default": {}, "no limits": {Total: NoLimit, Attempt: NoLimit}} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			p.Counters = new(Counters)
			call := Call{Op: blob.OpGet, Effect: None, Bytes: 4096}
			fn := func(context.Context, *Attempt) error { return nil }
			b.ReportAllocs()
			for b.Loop() {
				if err := Do(ctx, p, call, fn); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestASuccessfulCallAllocatesLittle(t *testing.T) {
	fn := func(context.Context, *Attempt) error { return nil }
	for _, tc := range []struct {
		name string
		p    Policy
		most float64
	}{
		{"without limits: the Attempt", Policy{Total: NoLimit, Attempt: NoLimit}, 1},
		{"with limits: and a context with its timer", Policy{}, 6},
	} {
		got := testing.AllocsPerRun(100, func() {
			_ = Do(t.Context(), tc.p, Call{Op: blob.OpGet, Effect: None, Bytes: 4096}, fn)
		})
		if got > tc.most {
			t.Errorf("%s: %v allocations, want at most %v", tc.name, got, tc.most)
		}
	}
}
