package config

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/memblob"
	"github.com/wholeblob/wholeblob/retry"
)

// closings is a store that counts how often it was closed with time to do so, and says err then.
type closings struct {
	blob.Blob
	n   int
	err error
}

func (c *closings) Close(ctx context.Context) error {
	if ctx.Err() == nil {
		c.n++
	}
	return errors.Join(c.err, c.Blob.Close(ctx))
}

// What was opened is closed again if a layer around it cannot be made, also when the context has ended.
func TestAStackThatFailsHalfwayClosesWhatItOpened(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	why := errors.New("no matter of the cache")
	for name, add := range map[string]func(opened) (any, error){
		"cache": func(s opened) (any, error) { return new(environment).cached(ctx, s, &cache.Options{}) },
		"retry": func(s opened) (any, error) { return new(environment).retried(s.blob, retry.Policy{Attempts: -1}) },
	} {
		store := &closings{Blob: memblob.New(nil), err: why}
		_, err := add(opened{blob: store})
		if store.n != 1 || !errors.Is(err, why) || name == "cache" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: closed %d times: %v", name, store.n, err)
		}
		if strings.Contains(err.Error(), "setting") {
			t.Errorf("no setting is at fault: %v", err)
		}
	}
}

// Sweep reaches the store with a cache in between, too.
func TestSweepGoesPastTheCache(t *testing.T) {
	for _, o := range []*cache.Options{nil, {}} {
		sweep := func(context.Context, time.Duration) (blob.SweepResult, error) {
			return blob.SweepResult{}, blob.ErrPermission
		}
		stack, err := new(environment).cached(t.Context(), opened{blob: memblob.New(nil), sweep: sweep}, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stack.Sweep(t.Context(), time.Hour); !errors.Is(err, blob.ErrPermission) {
			t.Errorf("with %+v: %v", o, err)
		}
		if err := stack.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
