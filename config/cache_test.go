package config_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/config"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/retry"
)

const cached = "s3://bucket/p?max_get=2GiB&cache_memory=1GiB&cache_dir=/var/cache/db&cache_disk=64GiB&cache_block=128KiB&cache_max_fill=32MiB&" +
	"cache_fill_bytes=16MiB&cache_revalidate=30s&cache_write_through=false"

// Every setting of the cache reaches it, in every spelling.
func TestSettingsOfTheCache(t *testing.T) {
	want := &cache.Options{
		Memory: 1 << 30, Dir: "/var/cache/db", Disk: 64 << 30, Block: 128 << 10, MaxFill: 32 << 20, FillBytes: 16 << 20, MaxGet: 2 << 30,
		Revalidate: 30 * time.Second, NoWriteThrough: true,
	}
	fromYAML, err := config.ParseYAML([]byte("url: s3://bucket/p\nmax_get: 2GiB\ncache: on\ncache_memory: 1GiB\ncache_dir: /var/cache/db\ncache_disk: 64GiB\n" +
		"cache_block: 128KiB\ncache_max_fill: 32MiB\ncache_fill_bytes: 16MiB\ncache_revalidate: 30s\ncache_write_through: false\n"))
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := config.ParseJSON([]byte(`{"url": "s3://bucket/p", "max_get": "2GiB", "cache": "on", "cache_memory": 1073741824, "cache_dir": "/var/cache/db",
		"cache_disk": "64GiB", "cache_block": "128KiB", "cache_max_fill": "32MiB", "cache_fill_bytes": "16MiB", "cache_revalidate": "30s", "cache_write_through": false}`))
	if err != nil {
		t.Fatal(err)
	}
	fromEnv, err := config.ParseEnv("DB_", []string{
		"DB_URL=s3://bucket/p", "DB_MAX_GET=2GiB", "DB_CACHE_MEMORY=1GiB", "DB_CACHE_DIR=/var/cache/db", "DB_CACHE_DISK=64GiB", "DB_CACHE_BLOCK=128KiB",
		"DB_CACHE_MAX_FILL=32MiB", "DB_CACHE_FILL_BYTES=16MiB", "DB_CACHE_REVALIDATE=30s", "DB_CACHE_WRITE_THROUGH=false",
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]config.Config{"URL": parse(t, cached), "itself": parse(t, parse(t, cached).String()), "YAML": fromYAML, "JSON": fromJSON, "environment": fromEnv} {
		if got := c.Cache(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, want)
		}
	}
	// Each field that a text can say is said above: one that is added needs a setting.
	v := reflect.ValueOf(*want)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Off" && name != "Logger" {
			t.Errorf("no setting for Options.%s", name)
		}
	}
}

// There is a cache only if one is asked for, and "off" keeps it out whatever else is said.
func TestACacheHasToBeAskedFor(t *testing.T) {
	for settings, want := range map[string]*cache.Options{
		"":                                       nil,
		"max_get=2GiB":                           nil,
		"cache=off":                              nil,
		"cache=false":                            nil,
		"cache=false&cache_memory=1GB":           nil,
		"cache=off&cache_memory=1GB":             nil,
		"cache_dir=/d&cache_disk=1GiB&cache=off": nil,
		"cache=on":                               {},
		"cache=true":                             {},
		"cache_memory=1KiB":                      {Memory: 1 << 10},
		"cache_memory=off&cache_dir=/d&cache_disk=1GiB":   {Memory: -1, Dir: "/d", Disk: 1 << 30},
		"cache_memory=false&cache_dir=/d&cache_disk=1GiB": {Memory: -1, Dir: "/d", Disk: 1 << 30},
		"cache_dir=/d&cache_disk=9223372036854775807":     {Dir: "/d", Disk: 1<<63 - 1},
		"cache_write_through=true":                        {},
		"cache_revalidate=never":                          {},
		"cache_revalidate=always":                         {Revalidate: cache.Always},
		"cache_revalidate=1ns":                            {Revalidate: 1},
		"cache=on&max_get=8KiB":                           {MaxGet: 8 << 10},
	} {
		for _, base := range []string{"mem://", "s3://bucket"} {
			c := parse(t, strings.TrimSuffix(base+"?"+settings, "?"))
			if got := c.Cache(); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %+v, want %+v", c, got, want)
			}
		}
	}
	if o := (config.Config{}).Cache(); o != nil {
		t.Errorf("the zero Config has a cache: %+v", o)
	}
	c := parse(t, cached)
	c.Cache().Memory = 5
	if got := c.Cache().Memory; got != 1<<30 {
		t.Errorf("a caller's change of the options is seen by the next: %d", got)
	}
}

// What is wrong with a setting of the cache is said when it is read, by its name, also while the cache is off, and in the words of who wrote it.
func TestSettingsOfTheCacheAreChecked(t *testing.T) {
	var names []string
	for v, i := reflect.TypeFor[cache.Options](), 0; i < v.NumField(); i++ {
		names = append(names, v.Field(i).Name)
	}
	fields := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	for settings, want := range map[string]struct{ setting, text string }{
		"cache=yes":                         {"cache", "want one of on, off, true, false"},
		"cache=1":                           {"cache", "want one of on, off, true, false"},
		"cache=":                            {"cache", "no value"},
		"cache_dri=/d":                      {"cache_dri", "is unknown"},
		"cache_memory=1gb":                  {"cache_memory", `"1gb"`},
		"cache_memory=0":                    {"cache_memory", "off for none"},
		"cache_memory=-1":                   {"cache_memory", `"-1"`},
		"cache_memory=none":                 {"cache_memory", "or off for none"},
		"cache_memory=off":                  {"cache_memory", "no cache_dir"},
		"cache_memory=false":                {"cache_memory", "no cache_dir"},
		"cache_memory=on":                   {"cache_memory", "or off for none"},
		"cache_memory=true":                 {"cache_memory", "or off for none"},
		"cache_dir=/d":                      {"cache_disk", "is missing"},
		"cache_disk=1GiB":                   {"cache_dir", "is missing"},
		"cache_dir=/d&cache_disk=0":         {"cache_disk", "above 0"},
		"cache_dir=/d&cache_disk=1KiB":      {"cache_disk", `"1KiB": want at least 64KiB`},
		"cache_dir=/d&cache_disk=65535":     {"cache_disk", `"65535": want at least 64KiB`},
		"cache_dir=/d&cache_disk=off":       {"cache_disk", `"off": want whole bytes`},
		"cache_block=5000":                  {"cache_block", `"5000": want a multiple of 4KiB`},
		"cache_block=5KB":                   {"cache_block", `"5KB": want a multiple of 4KiB`},
		"cache_block=-4KiB":                 {"cache_block", `"-4KiB"`},
		"cache_max_fill=-1":                 {"cache_max_fill", `"-1"`},
		"cache_fill_bytes=-1":               {"cache_fill_bytes", `"-1"`},
		"cache_fill_bytes=9EiB":             {"cache_fill_bytes", `"9EiB"`},
		"cache_fill_bytes=9999999TiB":       {"cache_fill_bytes", "9223372036854775807"},
		"cache_block=0":                     {"cache_block", "above 0"},
		"cache_max_fill=0":                  {"cache_max_fill", "above 0"},
		"cache_fill_bytes=0B":               {"cache_fill_bytes", "above 0"},
		"cache_revalidate=0s":               {"cache_revalidate", "never, always or"},
		"cache_revalidate=30":               {"cache_revalidate", `"30"`},
		"cache_revalidate=on":               {"cache_revalidate", "never, always or"},
		"cache_revalidate=-1s":              {"cache_revalidate", "never, always or"},
		"cache_write_through=on":            {"cache_write_through", "true or false"},
		"cache_block=8KiB&cache_block=8KiB": {"cache_block", "given twice"},
		"cache=off&cache_block=5000":        {"cache_block", "5000"},
		"cache=false&cache_block=5000":      {"cache_block", "5000"},
		"cache=off&cache_dir=/d":            {"cache_disk", "is missing"},
	} {
		for _, base := range []string{"mem://", "azblob://container?account=acct"} {
			sep := "?"
			if strings.Contains(base, "?") {
				sep = "&"
			}
			_, err := config.Parse(base + sep + settings)
			var e *config.Error
			if !errors.As(err, &e) || !errors.Is(err, blob.ErrInvalidOption) || e.Setting != want.setting || !strings.Contains(err.Error(), want.text) {
				t.Errorf("%s: %v", settings, err)
			}
			if strings.Count(err.Error(), blob.ErrInvalidOption.Error()) != 1 {
				t.Errorf("the kind is not said once: %v", err)
			}
			if name := fields.FindString(err.Error()); name != "" {
				t.Errorf("it says %s, which nobody has written: %v", name, err)
			}
		}
	}
}

// In YAML a switch is written in any of the ways that mean on and off; true and false are also what a tool leaves that knows YAML 1.1. In JSON it is
// a switch or a text.
func TestTheCacheIsSwitchedInYAMLAndJSON(t *testing.T) {
	for text, want := range map[string]*cache.Options{
		"cache: on": {}, "cache: true": {}, `cache: "true"`: {}, "cache: off": nil, "cache: false": nil, `cache: "off"`: nil,
		"cache: false\ncache_memory: 1GiB":                     nil,
		"cache_memory: off\ncache_dir: /d\ncache_disk: 1GiB":   {Memory: -1, Dir: "/d", Disk: 1 << 30},
		"cache_memory: false\ncache_dir: /d\ncache_disk: 1GiB": {Memory: -1, Dir: "/d", Disk: 1 << 30},
	} {
		c, err := config.ParseYAML([]byte("url: mem://\n" + text + "\n"))
		if got := c.Cache(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]*cache.Options{`"cache": true`: {}, `"cache": "on"`: {}, `"cache": false`: nil, `"cache": "off"`: nil} {
		c, err := config.ParseJSON([]byte(`{"url": "mem://", ` + text + `}`))
		if got := c.Cache(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"cache: yes", "cache: On", "cache: 1"} { // as other switches are read
		_, err := config.ParseYAML([]byte("url: mem://\n" + text + "\n"))
		var e *config.Error
		if !errors.As(err, &e) || e.Setting != "cache" || !strings.Contains(err.Error(), "want one of on, off") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An unknown name is answered with all there are, those of the store and those of the cache.
func TestSettingsOfTheCacheAreListed(t *testing.T) {
	for scheme, base := range bases {
		for _, name := range []string{"cache_", "chache"} {
			sep := "?"
			if strings.Contains(base, "?") {
				sep = "&"
			}
			_, err := config.Parse(base + sep + name + "=x")
			var e *config.Error
			if !errors.As(err, &e) || e.Setting != name {
				t.Fatal(err)
			}
			for _, want := range []string{"cache", "cache_block", "cache_dir", "cache_write_through", "max_get", "retry_total"} {
				if !slices.Contains(e.Valid, want) {
					t.Errorf("%s: %q lists %q", scheme, name, e.Valid)
				}
			}
			if !slices.IsSorted(e.Valid) || len(slices.Compact(slices.Clone(e.Valid))) != len(e.Valid) {
				t.Errorf("%s: not sorted, or doubled: %q", scheme, e.Valid)
			}
			for _, name := range config.Secrets(scheme) {
				if !slices.Contains(e.Valid, name+"_file") {
					t.Errorf("%s: %q lists no %s_file", scheme, e.Valid, name)
				}
			}
		}
	}
}

const hello = "hello"

func setHello(t *testing.T, s blob.Blob) {
	t.Helper()
	if _, err := s.Set(t.Context(), "k", blob.Bytes([]byte(hello)), nil); err != nil {
		t.Fatal(err)
	}
}

func getHello(t *testing.T, s blob.Blob) {
	t.Helper()
	obj, err := s.Get(t.Context(), "k", nil)
	if err != nil || string(obj.Data) != hello {
		t.Errorf("%q, %v, want %q", obj.Data, err, hello)
	}
}

// The cache is outside the retry loop, on every store: what it answers is no attempt, and what it fetches is retried.
func TestTheCacheIsOutsideTheRetries(t *testing.T) {
	for name, cfg := range configs(t, "prefix") {
		t.Run(name, func(t *testing.T) {
			cfg, err := cfg.With(map[string]string{"cache": "on", "cache_write_through": "false"})
			if err != nil {
				t.Fatal(err)
			}
			counters := new(retry.Counters)
			stack := open(t, cfg, config.WithCounters(counters))
			setHello(t, stack)
			before := counters.Snapshot().Attempts
			for range 10 {
				getHello(t, stack)
			}
			if n := counters.Snapshot().Attempts - before; n != 1 {
				t.Errorf("%d attempts for ten reads", n)
			}
			if s, ok := stack.CacheStats(); !ok || s.Misses != 1 || s.MemoryHits != 9 {
				t.Errorf("%v %+v", ok, s)
			}
			if _, err := stack.Sweep(t.Context(), time.Hour); err != nil {
				t.Errorf("Sweep: %v", err)
			}
			if !stack.Capabilities().SelfRetrying {
				t.Error("the stack does not retry")
			}
			if err := stack.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := stack.Get(t.Context(), "k", nil); !errors.Is(err, blob.ErrClosed) {
				t.Errorf("Get after Close: %v", err)
			}
		})
	}
}

func TestFetchesOfTheCacheAreRetried(t *testing.T) {
	server := fakes3.New(fakes3.Options{Buckets: []string{"bucket"}})
	t.Cleanup(server.Close)
	cfg, err := config.ParseJSON([]byte(`{"url": "s3://bucket?path_style=true&cache=on&endpoint=` + server.URL() + `", "access_key": "` +
		fakes3.DefaultCredentials().AccessKey + `", "secret_key": "` + fakes3.DefaultCredentials().SecretKey + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	server.PutObject("bucket", "k", [][]byte{[]byte("hello")}, nil)
	server.Inject(fakes3.Fault{Op: "GetObject", Nth: 1, Reply: &fakes3.Reply{Status: 503, Code: "SlowDown"}})
	counters := new(retry.Counters)
	getHello(t, open(t, cfg, config.WithCounters(counters)))
	if c := counters.Snapshot(); c.Throttled != 1 {
		t.Errorf("%+v", c)
	}
}

// What was cached on disk is there after a restart, and the first to close is the cache, which lets go of its directory.
func TestTheDiskTierOutlivesTheStack(t *testing.T) {
	store, dir := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	cfg := parse(t, "file://"+filepath.ToSlash(store)+"?nosync=true&cache_memory=off&cache_disk=16MiB&cache_dir="+filepath.ToSlash(dir))
	for i := range 2 {
		counters := new(retry.Counters)
		stack := open(t, cfg, config.WithCounters(counters))
		if i == 0 {
			setHello(t, stack)
		}
		before := counters.Snapshot().Attempts
		if getHello(t, stack); i == 1 {
			if s, _ := stack.CacheStats(); s.DiskHits != 1 || counters.Snapshot().Attempts != before {
				t.Errorf("%+v, %d attempts", s, counters.Snapshot().Attempts-before)
			}
		}
		if err := stack.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// With the cache off no layer is there: reads reach the store, and its directory is neither made nor taken.
func TestOffKeepsTheCacheOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	counters := new(retry.Counters)
	stack := open(t, parse(t, "mem://?cache=off&cache_disk=16MiB&cache_dir="+filepath.ToSlash(dir)), config.WithCounters(counters))
	setHello(t, stack)
	before := counters.Snapshot().Attempts
	for range 10 {
		getHello(t, stack)
	}
	if n := counters.Snapshot().Attempts - before; n != 10 {
		t.Errorf("%d attempts for ten reads", n)
	}
	if s, ok := stack.CacheStats(); ok || s != (cache.Stats{}) {
		t.Errorf("statistics of no cache: %+v", s)
	}
	if _, isCache := stack.Blob.(*cache.Cache); isCache {
		t.Error("there is a cache in the stack")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
}

// A cache that cannot be opened is named by its setting. Where that may pass, it is no matter of options.
func TestACacheThatCannotBeOpened(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	owner := open(t, parse(t, "mem://?cache_disk=16MiB&cache_dir="+filepath.ToSlash(dir)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx            context.Context
		settings, text string
		kind           error
	}{
		"taken":       {t.Context(), "cache_disk=16MiB&cache_dir=" + dir, `setting "cache_dir"`, blob.ErrConflict},
		"a file":      {t.Context(), "cache_disk=16MiB&cache_dir=" + file, `setting "cache_dir"`, nil},
		"ended early": {ended, "cache=on", "canceled", context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			stack, err := config.Open(c.ctx, parse(t, "mem://?"+c.settings))
			if stack != nil || err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("%v, %v", stack, err)
			}
			if errors.Is(err, blob.ErrInvalidOption) != errors.Is(c.kind, blob.ErrInvalidOption) {
				t.Errorf("a matter of options: %v", err)
			}
		})
	}
	if err := owner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What the cache has to report goes where the stack's own reports go.
func TestTheCacheReportsToTheLoggerOfTheStack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var log strings.Builder
	stack := open(t, parse(t, "mem://?cache_disk=16MiB&cache_dir="+filepath.ToSlash(dir)), config.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	setHello(t, stack)
	if err := stack.Close(t.Context()); err != nil { // which waits for what the cache writes
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "disk cache") || !strings.Contains(log.String(), dir) {
		t.Errorf("logged: %s", &log)
	}
}
