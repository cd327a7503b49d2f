package wire

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"
)

func TestContentRange(t *testing.T) {
	for _, c := range []struct {
		v               string
		off, end, total int64
		ok              bool
	}{
		{"bytes 0-99/1000", 0, 100, 1000, true},
		{"bytes 900-999/1000", 900, 1000, 1000, true},
		{"bytes 0-99/*", 0, 100, -1, true},
		{"bytes 0-9223372036854775806/*", 0, math.MaxInt64, -1, true},
		{v: "bytes 0-9223372036854775807/*"}, // its end would be beyond an int64
		{v: "bytes 0-18446744073709551615/*"},
		{v: ""},
		{v: "bytes"},
		{v: "bytes "},
		{v: "bytes */1000"},
		{v: "bytes 0-99"},
		{v: "bytes 0-99/"},
		{v: "bytes 0/1000"},
		{v: "bytes -99/1000"},
		{v: "bytes 0-/1000"},
		{v: "bytes 0--99/1000"},
		{v: "bytes +0-99/1000"},
		{v: "bytes 0-99/-1"},
		{v: "bytes 0 - 99/1000"},
		{v: "bytes 0-99/1000 "},
		{v: "bytes 0-99/1000, bytes 200-299/1000"},
		{v: "bytes=0-99/1000"},
		{v: "items 0-99/1000"},
		{v: "bytes 0x0-0x9/10"},
		{v: "bytes 0-9_9/1000"},
	} {
		off, end, total, ok := ContentRange(c.v)
		if off != c.off || end != c.end || total != c.total || ok != c.ok {
			t.Errorf("%q: [%d, %d) of %d, %v", c.v, off, end, total, ok)
		}
	}
}

// Whatever a header says, it is understood as what it says or not at all, and no number is out of bounds.
func FuzzContentRange(f *testing.F) {
	for _, v := range []string{
		"bytes 0-99/1000", "bytes 0-99/*", "bytes */1000", "bytes 99-0/1", "bytes 0-9223372036854775807/9223372036854775807", "bytes 00-01/002", "",
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		off, end, total, ok := ContentRange(v)
		if !ok {
			if off != 0 || end != 0 || total != 0 {
				t.Fatalf("%q is no range but has numbers: %d %d %d", v, off, end, total)
			}
			return
		}
		if off < 0 || end < 1 || total < -1 {
			t.Fatalf("%q: [%d, %d) of %d", v, off, end, total)
		}
		size := "*"
		if total >= 0 {
			size = fmt.Sprint(total)
		}
		again := fmt.Sprintf("bytes %d-%d/%s", off, end-1, size)
		off2, end2, total2, ok := ContentRange(again)
		if !ok || off2 != off || end2 != end || total2 != total {
			t.Fatalf("%q is [%d, %d) of %d, but %q is [%d, %d) of %d", v, off, end, total, again, off2, end2, total2)
		}
	})
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, "-3": 0, "3.5": 0, "99999999999": 0,
		"Mon, 30 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Mon, 30 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}
