//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package realserver

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

func TestBuildHoldsTheLockAndTheWaitForItEndsWithItsContext(t *testing.T) {
	path := t.TempDir() + "/server"
	done, cancel := context.WithCancel(t.Context())
	cancel()
	err := publish(t.Context(), path, func(tmp string) error {
		err := publish(done, path, func(string) error {
			t.Error("built by two at the same time")
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("second builder: %v", err)
		}
		return os.WriteFile(tmp, nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnlyOneOfManyBuildsTheSameServer(t *testing.T) {
	path := t.TempDir() + "/cache/server"
	var inside, built atomic.Int32
	create := func(tmp string) error {
		if inside.Add(1) > 1 {
			t.Error("two builds at the same time")
		}
		defer inside.Add(-1)
		built.Add(1)
		if exists(path) {
			t.Error("built although it was there")
		}
		return os.WriteFile(tmp, []byte("program"), 0o600)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if err := publish(t.Context(), path, create); err != nil || !exists(path) {
				t.Errorf("publish: %v, exists: %v", err, exists(path))
			}
		})
	}
	callers.Wait()
	if n := built.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}
