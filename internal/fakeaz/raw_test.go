package fakeaz_test

import (
	"sync"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
)

// raw is a client of a fake for the checks' helpers, with names as they are.
func raw(t *testing.T, s *fakeaz.Server) *conf {
	t.Helper()
	c := s.Client()
	t.Cleanup(c.CloseIdleConnections)
	return &conf{Context: t.Context(), c: c, endpoint: s.Endpoint(), account: s.Account(), key: fakeaz.DefaultKey(), container: "cont"}
}

// clock is a clock that tests turn. Signatures are made by the true one, so servers with such a clock are anonymous.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func startAt(t *testing.T, k fakeaz.Knobs) (*fakeaz.Server, *conf, *clock) {
	t.Helper()
	c := newClock()
	s := start(t, fakeaz.Options{Anonymous: true, Now: c.now, Knobs: k})
	return s, raw(t, s), c
}

func report(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}
