package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/internal/param"
)

// cacheSetting reports whether a setting is the cache's and not the store's.
func cacheSetting(name string) bool { return name == "cache" || strings.HasPrefix(name, "cache_") }

// Cache returns the options of the cache that Open puts in front of the store, but for the logger; nil if it puts none. A program that has the
// store in hand already can give them to cache.New.
func (c Config) Cache() *cache.Options {
	sc, ok := schemes()[c.Scheme()]
	if !ok {
		return nil
	}
	p, err := c.plan(sc)
	if err != nil { // not after Parse
		return nil
	}
	return p.cache
}

// checkCache reads the settings of the cache and does no I/O. maxGet is the store's. It returns nil options if there is to be no cache.
func checkCache(q *param.Values, maxGet int64) (*cache.Options, error) {
	o := &cache.Options{
		Memory:         cacheMemory(q),
		Dir:            q.String("cache_dir", ""),
		Disk:           cacheSize(q, "cache_disk"),
		Block:          cacheSize(q, "cache_block"),
		MaxFill:        cacheSize(q, "cache_max_fill"),
		FillBytes:      cacheSize(q, "cache_fill_bytes"),
		Revalidate:     cacheRevalidate(q),
		NoWriteThrough: !q.Bool("cache_write_through", true),
		MaxGet:         maxGet,
	}
	asked := false
	for range q.All() {
		asked = true
	}
	switched := q.Enum("cache", "on", "on", "off", "true", "false")
	if (&cache.Options{Block: o.Block}).Check() != nil { // whose error names a field, which nobody has written
		q.Fail("cache_block", invalid("%s: want a multiple of 4KiB", param.Quote(q.String("cache_block", ""))))
	}
	if err := q.Err(); err != nil {
		return nil, err
	}
	if err := (&cache.Options{Dir: o.Dir, Disk: o.Disk}).Check(); err != nil {
		switch {
		case o.Disk == 0:
			return nil, &Error{Setting: "cache_disk", Err: invalid("is missing: cache_dir is of no use without it")}
		case o.Dir == "":
			return nil, &Error{Setting: "cache_dir", Err: invalid("is missing: cache_disk is of no use without it")}
		}
		return nil, &Error{Setting: "cache_disk", Err: invalid("%s: want at least 64KiB", param.Quote(q.String("cache_disk", "")))}
	}
	if o.Memory < 0 && o.Dir == "" {
		return nil, &Error{Setting: "cache_memory", Err: invalid("is off and there is no cache_dir: a cache needs one of the two")}
	}
	if err := o.Check(); err != nil {
		return nil, &Error{Err: err}
	}
	// Off means that there is no such layer, and not cache.Options.Off, which counts what goes past it: nothing of the cache is on the way of
	// a call, so that a program with it off is what the same program without it would be. Its settings are checked all the same: turning
	// it on again must not be what fails.
	if !asked || isOff(switched) {
		return nil, nil //nolint:nilnil // no cache is a Config like any other
	}
	return o, nil
}

// isOff reports whether a setting is written as off, or as what YAML 1.1 makes of that: a tool that reads and writes a file may leave false.
func isOff(text string) bool { return text == "off" || text == "false" }

// cacheMemory takes the size of the memory tier. 0 is refused, since it could be taken for none as well as for the default.
func cacheMemory(q *param.Values) int64 {
	switch text := q.String("cache_memory", ""); {
	case text == "":
		return 0
	case isOff(text):
		return -1
	default:
		n, err := param.ParseSize(text)
		switch {
		case err != nil:
			q.Fail("cache_memory", fmt.Errorf("%w, or off for none", err))
		case n == 0:
			q.Fail("cache_memory", invalid("is 0: want a size, or off for none"))
		}
		return n
	}
}

func cacheSize(q *param.Values, name string) int64 {
	n := q.Size(name, 0)
	if n == 0 { // Fail does nothing where the setting is not given
		q.Fail(name, invalid("is 0: want a size above 0, or leave it out for its default"))
	}
	return n
}

func cacheRevalidate(q *param.Values) time.Duration {
	switch text := q.String("cache_revalidate", "never"); text {
	case "never":
		return 0
	case "always":
		return cache.Always
	default:
		d, err := param.ParseDuration(text)
		if err != nil || d == 0 {
			q.Fail("cache_revalidate", invalid("%s: want never, always or a duration above 0 such as 30s", param.Quote(text)))
		}
		return d
	}
}

// cause takes off what a *blob.Error says of a store, which is not the one at fault.
func cause(err error) error {
	var b *blob.Error
	if errors.As(err, &b) && b.Err != nil {
		return b.Err
	}
	return err
}

// cached puts the cache around what was opened, and is the last layer of a stack. No options: no cache.
func (e *environment) cached(ctx context.Context, s opened, o *cache.Options) (*Stack, error) {
	if o == nil {
		return &Stack{Blob: s.blob, sweep: s.sweep}, nil
	}
	own := *o
	own.Logger = e.logger
	c, err := cache.New(ctx, s.blob, &own)
	if err != nil {
		return nil, errors.Join(notCached(ctx, err), s.blob.Close(context.WithoutCancel(ctx)))
	}
	return &Stack{Blob: c, sweep: s.sweep, cache: c}, nil
}

// notCached names the setting that err of cache.New is about. Its options have been checked, so it is the directory: another process has it, or it
// cannot be used, which is no matter of options and may pass.
func notCached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("setting %s: %w", param.Quote("cache_dir"), cause(err))
}
