package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/config"
	"github.com/wholeblob/wholeblob/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noEnviron(string) string { return "" }

// outcome is what a run left behind for the eye.
type outcome struct {
	code           int
	stdout, stderr string
}

// runStore runs bench on store, whose Close it does not call, in place of mem://.
func runStore(t *testing.T, ctx context.Context, store blob.Blob, args ...string) outcome { //nolint:revive // t first, as helpers have it
	t.Helper()
	return runWith(t, ctx, func(_ context.Context, _ config.Config, counters *retry.Counters) (blob.Blob, error) {
		return retry.New(kept{store}, retry.Policy{Counters: counters})
	}, append([]string{"bench", "mem://"}, args...)...)
}

func runWith(t *testing.T, ctx context.Context, open opener, args ...string) outcome { //nolint:revive // as above
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := command{open: open, stdout: &stdout, stderr: &stderr, environ: noEnviron}
	code := c.run(ctx, args)
	o := outcome{code, stdout.String(), stderr.String()}
	t.Logf("%q: exit %d\n%s%s", args, o.code, o.stdout, o.stderr)
	return o
}

// want fails the test unless the run ended with code and every text is in stderr.
func (o outcome) want(t *testing.T, code int, stderr ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit %d, want %d", o.code, code)
	}
	for _, s := range stderr {
		if !strings.Contains(o.stderr, s) {
			t.Errorf("stderr does not contain %q", s)
		}
	}
}

// kept is a store that the run must not close: the test looks into it afterwards.
type kept struct{ blob.Blob }

func (kept) Close(context.Context) error { return nil }

// noStores fails the test when a store is opened.
func noStores(t *testing.T) opener {
	return func(context.Context, config.Config, *retry.Counters) (blob.Blob, error) {
		t.Errorf("a store was opened")
		return nil, blob.ErrUnsupported
	}
}

func TestBadArgumentsAreNamedBeforeAnyStoreIsOpened(t *testing.T) {
	t.Chdir(t.TempDir()) // a path that was taken for relative would show here
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":       {nil, "no command"},
		"other command":    {[]string{"benchmark"}, `"benchmark"`},
		"flag first":       {[]string{"--json"}, `"--json"`},
		"unknown flag":     {[]string{"bench", "--size=1", "mem://"}, "-size"},
		"two URLs":         {[]string{"bench", "mem://", "mem://"}, "2 URLs"},
		"empty URL":        {[]string{"bench", ""}, "URL is empty"},
		"no URL":           {[]string{"bench", "bucket"}, `"bucket"`},
		"other scheme":     {[]string{"bench", "gopher://x"}, `"gopher": want one of`},
		"scheme in prefix": {[]string{"bench", "mem:x"}, `"mem:x"`},
		"mem host":         {[]string{"bench", "mem://host"}, `"mem://host"`},
		"mem path":         {[]string{"bench", "mem:///path"}, `"mem:///path"`},
		"mem parameter":    {[]string{"bench", "mem://?nosync=true"}, `"nosync"`},
		"file host":        {[]string{"bench", "file://dir/x"}, `"file://dir/x"`},
		"file empty":       {[]string{"bench", "file://"}, `"file://"`},
		"file relative":    {[]string{"bench", "file:dir"}, `"file:dir"`},
		"file parameter":   {[]string{"bench", "file:///x?sync=false"}, `"sync"`},
		"file switch":      {[]string{"bench", "file:///x?nosync=1"}, `"nosync"`},
		"size unit":        {[]string{"bench", "--sizes", "5mb", "mem://"}, `--sizes: invalid option: size "5mb"`},
		"size sign":        {[]string{"bench", "--sizes=-1", "mem://"}, `"-1"`},
		"size exponent":    {[]string{"bench", "--sizes", "1e3", "mem://"}, `"1e3"`},
		"size fraction":    {[]string{"bench", "--sizes", "1.5.2", "mem://"}, `"1.5.2"`},
		"size empty":       {[]string{"bench", "--sizes", "4KiB,,1MiB", "mem://"}, `size ""`},
		"size twice":       {[]string{"bench", "--sizes", "1MiB,1024KiB", "mem://"}, "1MiB is given twice"},
		"size large":       {[]string{"bench", "--sizes", "2GiB", "mem://"}, "2GiB is above the 1GiB"},
		"budget":           {[]string{"bench", "--budget", "1e3", "mem://"}, `"1e3"`},
		"count":            {[]string{"bench", "--count=-1", "mem://"}, "--count: -1"},
		"count large":      {[]string{"bench", "--count=1000001", "mem://"}, "--count: 1000001"},
		"count text":       {[]string{"bench", "--count=many", "mem://"}, `"many"`},
		"concurrency":      {[]string{"bench", "--concurrency=0", "mem://"}, "--concurrency: 0"},
		"concurrency high": {[]string{"bench", "--concurrency=1025", "mem://"}, "--concurrency: 1025"},
		"timeout":          {[]string{"bench", "--timeout", "30", "mem://"}, `duration "30"`},
		"timeout sign":     {[]string{"bench", "--timeout=-1s", "mem://"}, `duration "-1s"`},
		"source":           {[]string{"bench", "--source", "stream", "mem://"}, `"stream"`},
		"cache switch":     {[]string{"bench", "--cache=yes", "mem://"}, `"yes"`},
		"cache then off":   {[]string{"bench", "--cache", "off", "mem://"}, "want --cache=off"},
		"cache then on":    {[]string{"bench", "--cache", "on"}, "want --cache=on"},
		"cache directory":  {[]string{"bench", "--cache-dir=/x", "mem://"}, "--cache-dir: of no use without --cache"},
		"cache off, dir":   {[]string{"bench", "--cache=off", "--cache-dir=/x", "mem://"}, "--cache-dir: of no use without --cache"},
		"two directories":  {[]string{"bench", "--cache", "--cache-dir=/x", "mem://?cache_dir=/y&cache_disk=1GiB"}, "cache_dir is in the URL"},
		"two disks":        {[]string{"bench", "--cache", "--cache-dir=/x", "mem://?cache_disk=1GiB"}, "cache_disk is in the URL"},
		"cache setting":    {[]string{"bench", "--cache", "mem://?cache_block=5"}, `"cache_block"`},
		"after the URL":    {[]string{"bench", "mem://", "--source", "stream"}, `"stream"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := runWith(t, t.Context(), noStores(t), c.args...)
			o.want(t, exitUsage, c.want, "invalid option", "wholeblob help")
			if o.stdout != "" {
				t.Error("stdout is not empty")
			}
		})
	}
}

func TestCredentialsAreNeverPrinted(t *testing.T) {
	for _, url := range []string{
		"mem://AKIA:HUSH@", "s3://AKIA:HUSH@bucket", "s3://AKIA:HU/SH@bucket/p", "s3://AKIA:HU?SH@bucket", "s3://HUSH@bucket:port",
		"gopher://AKIA:HUSH@host", "AKIA:HUSH@bucket", "mem://?token=HUSH", "mem://?HU=SH;x", "file:///x?token=HUSH",
	} {
		for _, args := range [][]string{{"bench", url}, {"bench", url, "--json"}} {
			o := runWith(t, t.Context(), noStores(t), args...)
			o.want(t, exitUsage)
			for _, hush := range []string{"AKIA", "HUSH", "SH@"} {
				if strings.Contains(o.stdout+o.stderr, hush) {
					t.Errorf("%q shows %q", args, hush)
				}
			}
		}
	}
}

func TestHelpAndVersionSucceed(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"-h"}, {"version"}, {"--version"}, {"bench", "--help"}, {"bench", "mem://", "-h"}} {
		o := runWith(t, t.Context(), noStores(t), args...)
		o.want(t, exitOK)
		if !strings.Contains(o.stdout, "wholeblob") || o.stderr != "" {
			t.Errorf("%q: want the text on stdout and nothing on stderr", args)
		}
	}
}

func TestRunKnowsTheStores(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"bench", "mem://", "--sizes=1KiB", "--count=3"}, &stdout, &stderr, noEnviron); code != exitOK {
		t.Errorf("exit %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "all correct, 0 errors") {
		t.Errorf("no verdict in %s", &stdout)
	}
}
