package config

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/retry"
)

// Stack is the Blob that a Config describes, with what the store can do beside. From the inside out it is built of
//
//  1. the store, with its own retries per request if it is a cloud store;
//  2. the retry loop, around a store that has none;
//  3. the cache, if the Config asks for one: what it answers is no attempt, and what it fetches is retried.
//
// Close closes them from the outside in: an outer layer still uses the inner one while it finishes.
type Stack struct {
	blob.Blob
	sweep sweepFunc
	cache *cache.Cache // nil: none
}

type sweepFunc func(ctx context.Context, olderThan time.Duration) (blob.SweepResult, error)

// Sweep removes what crashed processes have left in the store: uploads in parts that began more than olderThan ago. A store that keeps no such
// things, or removes them by itself, does nothing; see the Sweep of each store.
func (s *Stack) Sweep(ctx context.Context, olderThan time.Duration) (blob.SweepResult, error) {
	if s.sweep == nil {
		return blob.SweepResult{}, nil
	}
	return s.sweep(ctx, olderThan)
}

// CacheStats returns the counters of the cache; false if the stack has none.
func (s *Stack) CacheStats() (cache.Stats, bool) {
	if s.cache == nil {
		return cache.Stats{}, false
	}
	return s.cache.Stats(), true
}

// Option adds to a stack what no text can say.
type Option func(*environment)

// environment is what options have set.
type environment struct {
	counters *retry.Counters
	logger   *slog.Logger
}

// WithCounters counts attempts and retries of the whole stack. What the cache answers is none.
func WithCounters(c *retry.Counters) Option { return func(e *environment) { e.counters = c } }

// WithLogger sets where the stack reports what no error can tell, such as a clean-up that failed.
func WithLogger(l *slog.Logger) Option { return func(e *environment) { e.logger = l } }

// opened is an open store, and its Sweep if it has one.
type opened struct {
	blob  blob.Blob
	sweep sweepFunc
}

// retried puts the retry loop around a store that has none of its own.
func (e *environment) retried(s blob.Blob, p retry.Policy) (opened, error) {
	p.Counters = e.counters
	b, err := retry.New(s, p)
	if err != nil {
		return opened{}, errors.Join(err, s.Close(context.Background()))
	}
	return opened{blob: b}, nil
}

// Open builds the stack. It makes no request to a cloud store, but may read files: a directory's own, the cache's, those of secrets, and what the store's
// SDK looks for if the Config names no credentials. Errors are those of the store's New, or *Error.
func Open(ctx context.Context, cfg Config, opts ...Option) (*Stack, error) {
	sc, ok := schemes()[cfg.Scheme()]
	if !ok {
		return nil, &Error{Err: invalid("the Config is empty: make one with Parse")}
	}
	p, err := cfg.plan(sc)
	if err != nil {
		return nil, err
	}
	secrets, err := cfg.readSecrets(sc)
	if err != nil {
		return nil, err
	}
	e := new(environment)
	for _, o := range opts {
		if o != nil {
			o(e)
		}
	}
	store, err := p.open(ctx, secrets, e)
	if err != nil {
		return nil, err
	}
	return e.cached(ctx, store, p.cache)
}
