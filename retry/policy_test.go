package retry

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

const ms = time.Millisecond

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	var p Policy
	got := p.WithDefaults()
	want := Policy{
		FirstDelay: 100 * ms, Factor: 2, MaxDelay: 20 * time.Second, Jitter: 0.5,
		Attempts: 8, Total: 5 * time.Minute, Attempt: 30 * time.Second, MinRate: 65536,
	}
	if got != want {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
	if p != (Policy{}) {
		t.Errorf("WithDefaults changed its receiver to %+v", p)
	}
	if again := got.WithDefaults(); again != got {
		t.Errorf("defaults of the defaults are %+v, want %+v", again, got)
	}
}

func TestAttemptsThatAllTimeOutFitIntoTotal(t *testing.T) {
	p := Policy{Jitter: NoJitter}.WithDefaults()
	var sum time.Duration
	delays := p.delays()
	for range p.Attempts - 1 {
		sum += delays.NextBackOff()
	}
	if sum != 12700*ms {
		t.Errorf("the default delays add up to %v, documented are 12.7 s", sum)
	}
	if sum += time.Duration(p.Attempts) * p.Attempt; sum >= p.Total {
		t.Errorf("all attempts take %v, Total is %v", sum, p.Total)
	}
}

func TestDefaultsGiveWayToWhatIsSet(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   Policy
		got  func(Policy) time.Duration
		want time.Duration
	}{
		{"FirstDelay to MaxDelay", Policy{MaxDelay: 10 * ms}, func(p Policy) time.Duration { return p.FirstDelay }, 10 * ms},
		{"MaxDelay to FirstDelay", Policy{FirstDelay: time.Minute}, func(p Policy) time.Duration { return p.MaxDelay }, time.Minute},
		{"Attempt to Total", Policy{Total: 10 * time.Second}, func(p Policy) time.Duration { return p.Attempt }, 2500 * ms},
		{"Attempt without Total", Policy{Total: NoLimit}, func(p Policy) time.Duration { return p.Attempt }, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.in.Check(); err != nil {
				t.Error(err)
			}
			if got := tc.got(tc.in.WithDefaults()); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCheckNamesTheFieldThatMakesNoSense(t *testing.T) {
	for _, tc := range []struct {
		field string
		p     Policy
	}{
		{"FirstDelay", Policy{FirstDelay: -1}},
		{"FirstDelay", Policy{FirstDelay: 2 * time.Second, MaxDelay: time.Second}},
		{"MaxDelay", Policy{FirstDelay: 1, MaxDelay: -1}},
		{"Factor", Policy{Factor: 0.5}},
		{"Factor", Policy{Factor: -2}},
		{"Factor", Policy{Factor: math.NaN()}},
		{"Factor", Policy{Factor: math.Inf(1)}},
		{"Jitter", Policy{Jitter: 1.01}},
		{"Jitter", Policy{Jitter: -0.5}},
		{"Jitter", Policy{Jitter: math.NaN()}},
		{"Attempts", Policy{Attempts: -1}},
		{"Total", Policy{Total: -time.Second}},
		{"Attempt", Policy{Attempt: -time.Second}},
		{"Attempt", Policy{Attempt: time.Minute, Total: time.Minute}},
		{"Attempt", Policy{Attempt: time.Hour}},
		{"MinRate", Policy{MinRate: -1}},
	} {
		err := tc.p.Check()
		if !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("%+v: error %v, want ErrInvalidOption", tc.p, err)
			continue
		}
		if e := wantError(t, err, blob.ErrInvalidOption, blob.NotApplied); !strings.Contains(e.Error(), "retry.Policy."+tc.field+" ") {
			t.Errorf("%+v: error %q does not name %s", tc.p, e, tc.field)
		}
		fn := play()
		if doErr := Do(t.Context(), tc.p, Call{Op: blob.OpGet}, fn.run); !errors.Is(doErr, blob.ErrInvalidOption) || len(fn.calls) > 0 {
			t.Errorf("%+v: Do made %d attempts and returned %v", tc.p, len(fn.calls), doErr)
		}
	}
	for _, p := range []Policy{{}, Off(), {Jitter: 1, Factor: 1}, {Total: NoLimit, Attempt: time.Hour}, {Attempt: NoLimit, Jitter: NoJitter}} {
		if err := p.Check(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestDelaysWithoutJitterAreExact(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    Policy
		want []time.Duration
	}{
		{"default", Policy{}, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 20000 * ms, 20000 * ms}},
		{"factor 3, cap", Policy{FirstDelay: ms, Factor: 3, MaxDelay: 20 * ms}, []time.Duration{ms, 3 * ms, 9 * ms, 20 * ms, 20 * ms}},
		{"factor 1", Policy{FirstDelay: 5 * ms, Factor: 1}, []time.Duration{5 * ms, 5 * ms, 5 * ms}},
		{"no overflow", Policy{FirstDelay: math.MaxInt64 / 3, MaxDelay: math.MaxInt64, Factor: 1e300}, []time.Duration{math.MaxInt64 / 3, math.MaxInt64}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.p
			p.Jitter = NoJitter
			p = p.WithDefaults()
			delays := p.delays()
			for i, want := range tc.want {
				// A float64 holds 53 bits: near MaxInt64 a delay is exact to 1 µs.
				if got := delays.NextBackOff(); (got - want).Abs() > time.Microsecond {
					t.Errorf("delay %d is %v, want %v", i, got, want)
				}
			}
			delays.Reset()
			if got := delays.NextBackOff(); (got - tc.want[0]).Abs() > time.Microsecond {
				t.Errorf("first delay after progress is %v, want %v", got, tc.want[0])
			}
		})
	}
}

func TestJitterOnlyShortensAndStaysBelowTheCap(t *testing.T) {
	for _, jitter := range []float64{0.01, 0.5, 1} {
		p := Policy{Jitter: jitter, FirstDelay: time.Second, MaxDelay: 3 * time.Second}.WithDefaults()
		atCap := 0
		for range 200 {
			delays := p.delays()
			for i, full := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
				got := delays.NextBackOff()
				least := time.Duration(float64(full)*(1-jitter)) - 2
				if got < least || got > full+2 {
					t.Fatalf("jitter %v: delay %d is %v, want within [%v, %v]", jitter, i, got, least, full)
				}
				if got >= 3*time.Second {
					atCap++
				}
			}
		}
		if atCap > 4 {
			t.Errorf("jitter %v: %d of 400 capped delays are the cap itself: those sleepers wake together", jitter, atCap)
		}
	}
}

func TestLimitsGrowWithTheBytes(t *testing.T) {
	p := Policy{MinRate: 1 << 20}.WithDefaults()
	for _, tc := range []struct {
		limit time.Duration
		bytes int64
		want  time.Duration
	}{
		{30 * time.Second, 0, 30 * time.Second},
		{30 * time.Second, -1, 30 * time.Second},
		{30 * time.Second, 8 << 20, 38 * time.Second},
		{30 * time.Second, math.MaxInt64, NoLimit},
		{NoLimit, 8 << 20, NoLimit},
	} {
		if tc.bytes == math.MaxInt64 {
			p.MinRate = 1
		}
		if got := p.extend(tc.limit, tc.bytes); got != tc.want {
			t.Errorf("limit %v of %d bytes grows to %v, want %v", tc.limit, tc.bytes, got, tc.want)
		}
	}
}
