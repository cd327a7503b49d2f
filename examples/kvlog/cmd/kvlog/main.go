// Command kvlog runs the example on the store that its one argument names: the same program on every backend.
//
//	kvlog mem://
//	kvlog file:///tmp/kvlog
//	kvlog 's3://bucket/prefix?region=eu-central-1'
//
// Secrets come from variables such as KVLOG_SECRET_KEY and KVLOG_ACCOUNT_KEY.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/config"
	"github.com/wholeblob/wholeblob/examples/kvlog"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kvlog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("want one argument: the URL of a store")
	}
	cfg, err := config.Parse(args[0])
	if err != nil {
		return err
	}
	secrets := make(map[string]string)
	for _, name := range config.Secrets(cfg.Scheme()) {
		secrets[name] = os.Getenv("KVLOG_" + strings.ToUpper(name))
	}
	if cfg, err = cfg.With(secrets); err != nil {
		return err
	}
	store, err := config.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		// After Ctrl-C ctx is done already, and what was cut off is still to be cleaned up.
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer done()
		err = errors.Join(err, store.Close(closing))
	}()
	return demo(ctx, store)
}

const keys = 100

// demo writes, reads, overwrites, deletes, compacts, collects, and finds everything again after opening the store anew.
func demo(ctx context.Context, store *config.Stack) error {
	db, err := kvlog.Open(ctx, store)
	if err != nil {
		return err
	}
	for round := range 3 {
		for i := range keys {
			db.Put(key(i), value(i, round))
		}
		db.Delete(key(round))
		if err := db.Commit(ctx); err != nil {
			return err
		}
	}
	if err := check(ctx, db); err != nil {
		return err
	}
	if err := db.Compact(ctx); err != nil {
		return err
	}
	collected, err := db.CollectGarbage(ctx)
	if err != nil {
		return err
	}
	again, err := kvlog.Open(ctx, store)
	if err != nil {
		return err
	}
	if err := check(ctx, again); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	db.Put("late", nil)
	if err := db.Commit(ctx); !errors.Is(err, kvlog.ErrFenced) {
		return fmt.Errorf("the commit of a writer that was overtaken: want ErrFenced, have %v", err) //nolint:errorlint // it can be nil
	}
	if _, err := again.CollectGarbage(ctx); err != nil { // the segment of the commit that lost
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s: %d keys committed, compacted, %d segments collected, and read again\n", store.Capabilities().Store, keys-1, collected)
	return err
}

func key(i int) string { return fmt.Sprintf("key %03d", i) }

func value(i, round int) []byte {
	return []byte(strings.Repeat(fmt.Sprintf("value %d of round %d;", i, round), i))
}

// check compares all keys with what the last round left.
func check(ctx context.Context, db *kvlog.DB) error {
	if n := len(db.Keys()); n != keys-1 {
		return fmt.Errorf("%d keys, want %d", n, keys-1)
	}
	for i := range keys {
		got, err := db.Get(ctx, key(i))
		if i == 2 {
			if !errors.Is(err, kvlog.ErrNotFound) {
				return fmt.Errorf("%q was deleted: want ErrNotFound, have %v", key(i), err) //nolint:errorlint // it can be nil
			}
			continue
		}
		if err != nil {
			return err
		}
		if string(got) != string(value(i, 2)) {
			return fmt.Errorf("%q is another value, of %d bytes", key(i), len(got))
		}
	}
	return nil
}
