package param

import (
	"errors"
	"flag"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func TestParseSizeAcceptsExactlyTheDocumentedUnits(t *testing.T) {
	good := map[string]int64{
		"0": 0, "1": 1, "512": 512, "512B": 512, "0B": 0, "0TiB": 0,
		"4KiB": 4096, "64KiB": 65536, "512MiB": 512 << 20, "1GiB": 1 << 30, "3TiB": 3 << 40,
		"1KB": 1000, "10MB": 10_000_000, "2GB": 2_000_000_000, "1TB": 1_000_000_000_000,
		"9223372036854775807": math.MaxInt64, "8388607TiB": 8388607 << 40,
	}
	for s, want := range good {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	bad := []string{
		"", " ", "5mb", "5Mb", "5mib", "5MIB", "5M", "5K", "5kB", "5KIB", "5 MiB", " 5MiB", "5MiB ", "5MiB\n",
		"-1", "+1", "-1MiB", "1e3", "1E3", "1.5", "1.5MiB", "1.5.2", "0x10", "1_000", "1,000", "MiB", "B",
		"5MiBB", "5BMiB", "٣", "infinite", "off",
	}
	for _, s := range bad {
		got, err := ParseSize(s)
		if !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("ParseSize(%q) = %d, %v; want ErrInvalidOption", s, got, err)
		} else if !strings.Contains(err.Error(), quote(s)) || !strings.Contains(err.Error(), sizeSyntax) {
			t.Errorf("ParseSize(%q): error does not name the value and the syntax: %v", s, err)
		}
	}
}

func TestParseSizeRefusesWhatDoesNotFit(t *testing.T) {
	for _, s := range []string{"9223372036854775808", "8388608TiB", "9223372036854775807KB", "99999999999999999999TiB"} {
		if got, err := ParseSize(s); !errors.Is(err, blob.ErrInvalidOption) || !strings.Contains(err.Error(), "above 9223372036854775807 bytes") {
			t.Errorf("ParseSize(%q) = %d, %v; want ErrInvalidOption and the limit", s, got, err)
		}
	}
}

func TestFormatSizeIsShortAndReadsBack(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1: "1", 1000: "1KB", 1023: "1023", 1024: "1KiB", 1_000_000: "1MB", 10_000_000: "10MB",
		1 << 20: "1MiB", 3 << 19: "1536KiB", 1 << 62: "4194304TiB", math.MaxInt64: "9223372036854775807", -1: "-1",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestParseSizesRefusesAnEmptyElement(t *testing.T) {
	got, err := ParseSizes("4KiB,1MiB,7")
	if err != nil || !slices.Equal(got, []int64{4096, 1 << 20, 7}) {
		t.Errorf("ParseSizes = %v, %v", got, err)
	}
	for _, s := range []string{"", ",", "4KiB,", ",4KiB", "4KiB,,1MiB", "4KiB, 1MiB"} {
		if _, err := ParseSizes(s); !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("ParseSizes(%q): %v, want ErrInvalidOption", s, err)
		}
	}
}

func TestSizeIsAFlag(t *testing.T) {
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var n Size
	fs.TextVar(&n, "limit", Size(64<<20), "")
	if n != 64<<20 || fs.Lookup("limit").DefValue != "64MiB" {
		t.Errorf("default %d, shown as %q", n, fs.Lookup("limit").DefValue)
	}
	if err := fs.Parse([]string{"-limit=4KiB"}); err != nil || n != 4096 {
		t.Errorf("parsed %d, %v", n, err)
	}
	if err := fs.Parse([]string{"-limit=5mb"}); err == nil || n != 4096 {
		t.Errorf("5mb was taken: %d, %v", n, err)
	}
}

func TestParseDurationIsNeverNegative(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "0": 0, "0s": 0, "1.5s": 1500 * time.Millisecond,
	} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "30", "-1s", "+1s", "-0", "1e3s", "1.5.2s", "s", "30 s", "30S", "1d", "0.1ns", "9999999h"} {
		if got, err := ParseDuration(s); !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("ParseDuration(%q) = %v, %v; want ErrInvalidOption", s, got, err)
		}
	}
}

func TestParseBoolAcceptsTwoWords(t *testing.T) {
	for s, want := range map[string]bool{"true": true, "false": false} {
		if got, err := ParseBool(s); err != nil || got != want {
			t.Errorf("ParseBool(%q) = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "0", "t", "TRUE", "True", "yes", "on", " true"} {
		if _, err := ParseBool(s); !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("ParseBool(%q): %v, want ErrInvalidOption", s, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"0", "4KiB", "10MB", "-1", "1e3", "1.5.2", "9223372036854775808", "8388607TiB"} {
		f.Add(s, int64(len(s)))
	}
	f.Fuzz(func(t *testing.T, s string, n int64) {
		if got, err := ParseSize(s); err == nil {
			if got < 0 {
				t.Fatalf("ParseSize(%q) = %d", s, got)
			}
			if again, err := ParseSize(FormatSize(got)); err != nil || again != got {
				t.Fatalf("%q is %d, formatted %q, read back as %d, %v", s, got, FormatSize(got), again, err)
			}
		} else if !errors.Is(err, blob.ErrInvalidOption) {
			t.Fatalf("ParseSize(%q): %v is no ErrInvalidOption", s, err)
		}
		if n >= 0 {
			if got, err := ParseSize(FormatSize(n)); err != nil || got != n {
				t.Fatalf("%d formatted %q, read back as %d, %v", n, FormatSize(n), got, err)
			}
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"0", "30s", "-1s", "1e3s", "1.5.2s", "0.1ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		switch {
		case err != nil && !errors.Is(err, blob.ErrInvalidOption):
			t.Fatalf("%q: %v is no ErrInvalidOption", s, err)
		case err != nil:
		case d < 0:
			t.Fatalf("%q is %v", s, d)
		default:
			if again, err := ParseDuration(d.String()); err != nil || again != d {
				t.Fatalf("%q is %v, read back as %v, %v", s, d, again, err)
			}
		}
	})
}
