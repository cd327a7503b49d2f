package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/param"
)

// Defaults of the bench. The sizes span what databases store, from a log record to a compacted file;
// the budget keeps the run over all of them well below a minute on loopback and on a common line to a cloud.
const (
	defaultSizes  = "4KiB,64KiB,1MiB,8MiB,64MiB"
	defaultBudget = 128 << 20 // bytes of objects per size
	minCount      = 4         // objects per size, however large
	maxCount      = 1000      // objects per size, however small
)

// Limits of what the flags accept.
const (
	countLimit       = 1_000_000 // the keys have six digits
	concurrencyLimit = 1024
)

const (
	sourceBytes    = "bytes"
	sourceReaderAt = "readerat"
)

// benchFlags are the checked command line of bench.
type benchFlags struct {
	url         string // "" is the embedded server
	sizes       []int64
	count       int // 0: from budget
	budget      param.Size
	concurrency int
	seed        uint64
	source      string
	dst         bool
	json        bool
	cache       cacheSwitch
	cacheDir    string
	timeout     time.Duration // 0: none
}

const benchUsage = `Usage: wholeblob bench [flags] [URL]

For each size, bench sets objects, lists them, gets them in random order, compares every byte, and deletes them.
All keys lie under a prefix of the run's own; they are deleted at the end, after a failure or Ctrl-C too.

URL is the store:
  mem://                          memory of this process
  file:///dir                     a directory, made if it is missing; parameters create=false, nosync=true, restore=true
  s3://bucket/prefix              Amazon S3 or a server that speaks its protocol; parameters such as
                                  endpoint=http://host:9000, region=us-east-1, path_style=true; credentials
                                  come from the environment, as for the AWS command line
  gs://bucket/prefix              Google Cloud Storage; endpoint=http://host:port for an emulator; credentials
                                  are the application default ones
  azblob://container/prefix       Azure Blob Storage; account=name, and endpoint=http://host:port/account for an
                                  emulator; the default credential chain, or a key in WHOLEBLOB_ACCOUNT_KEY

Parameters are the settings of package config, those of the cache too, such as cache_memory=1GiB. Its secrets are read from
WHOLEBLOB_ and the name in upper case, such as WHOLEBLOB_SECRET_KEY, or from the file that a parameter such as secret_key_file
names.

  (none)                          a fake S3 server inside this process, on loopback: shows the path through the
                                  S3 client, not the speed of a store

Flags:
`

// parseFlags reads the arguments of bench; flags may stand before and after the URL. help is the text to print
// instead of running, if that was asked for.
func parseFlags(args []string) (c benchFlags, help string, err error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	sizes := fs.String("sizes", defaultSizes, "object `sizes`, separated by commas: digits and B, KB, MB, GB, KiB, MiB or GiB")
	fs.IntVar(&c.count, "count", 0, "`objects` per size; 0: as many as fit into --budget, from 4 to 1000")
	c.budget = defaultBudget
	fs.TextVar(&c.budget, "budget", c.budget, "`size` of all objects of one size together, which sets their count")
	fs.IntVar(&c.concurrency, "concurrency", 8, "`operations` in flight")
	fs.Uint64Var(&c.seed, "seed", 1, "`number` that decides contents and order")
	fs.StringVar(&c.source, "source", sourceBytes, "`kind` of source of each set: bytes, or readerat, which makes the content while it is sent")
	fs.BoolVar(&c.dst, "dst", false, "get into buffers that are used again")
	fs.BoolVar(&c.json, "json", false, "print the result as JSON")
	fs.Var(&c.cache, "cache", "get through a cache too, cold and then warm; --cache=off: no cache, whatever the URL says")
	fs.StringVar(&c.cacheDir, "cache-dir", "", "with --cache: existing `directory` for a disk tier of 1GiB, from which a cache opened anew gets; the run's files in it are removed")
	timeout := fs.String("timeout", "0", "`duration` after which the run fails; 0: none")

	var urls []string
	for rest := args; ; {
		if err := fs.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return c, benchUsage + flagHelp(fs), nil
			}
			return c, "", usageError("bench: %w", err)
		}
		if rest = fs.Args(); len(rest) == 0 {
			break
		}
		if c.cache == cacheOn && (rest[0] == cacheOn || rest[0] == cacheOff) {
			return c, "", usageError("bench: %q is no URL: want --cache=%s, in one word", rest[0], rest[0])
		}
		urls, rest = append(urls, rest[0]), rest[1:]
	}
	if c.sizes, err = param.ParseSizes(*sizes); err != nil {
		return c, "", usageError("--sizes: %w", err)
	}
	if c.timeout, err = param.ParseDuration(*timeout); err != nil {
		return c, "", usageError("--timeout: %w", err)
	}
	if len(urls) > 1 {
		return c, "", usageError("bench: %d URLs given, want at most one", len(urls))
	}
	if len(urls) == 1 {
		if c.url = urls[0]; c.url == "" {
			return c, "", usageError("bench: the URL is empty")
		}
	}
	return c, "", c.check()
}

func (c benchFlags) check() error {
	for i, size := range c.sizes {
		switch {
		case size > blob.DefaultMaxGet:
			return usageError("--sizes: %s is above the %s that one get returns", param.FormatSize(size), param.FormatSize(blob.DefaultMaxGet))
		case containsSize(c.sizes[:i], size):
			return usageError("--sizes: %s is given twice", param.FormatSize(size))
		}
	}
	switch {
	case c.count < 0 || c.count > countLimit:
		return usageError("--count: %d: want 0 to %d", c.count, countLimit)
	case c.concurrency < 1 || c.concurrency > concurrencyLimit:
		return usageError("--concurrency: %d: want 1 to %d", c.concurrency, concurrencyLimit)
	case c.cacheDir != "" && c.cache != cacheOn:
		return usageError("--cache-dir: of no use without --cache")
	case c.source != sourceBytes && c.source != sourceReaderAt:
		return usageError("--source: %q: want %s or %s", c.source, sourceBytes, sourceReaderAt)
	}
	return nil
}

func containsSize(sizes []int64, size int64) bool {
	for _, s := range sizes {
		if s == size {
			return true
		}
	}
	return false
}

// countOf returns how many objects of a size the run has.
func (c benchFlags) countOf(size int64) int {
	if c.count > 0 {
		return c.count
	}
	return int(min(max(int64(c.budget)/max(size, 1), minCount), maxCount))
}

func flagHelp(fs *flag.FlagSet) string {
	var b strings.Builder
	fs.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		name := strings.TrimSpace(f.Name + " " + value)
		fmt.Fprintf(&b, "  --%s\n        %s (default %s)\n", name, text, cmp.Or(f.DefValue, "none"))
	})
	return b.String()
}
