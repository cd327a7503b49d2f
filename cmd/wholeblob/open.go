package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/config"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/retry"
)

// opener opens the stack of a Config; its retries are counted in counters.
type opener func(ctx context.Context, cfg config.Config, counters *retry.Counters) (blob.Blob, error)

func openStack(ctx context.Context, cfg config.Config, counters *retry.Counters) (blob.Blob, error) {
	stack, err := config.Open(ctx, cfg, config.WithCounters(counters))
	if err != nil {
		return nil, err // not stack: a nil *Stack is no nil Blob
	}
	return stack, nil
}

// target is a store that can be opened.
type target struct {
	name     string // to show: a URL without parameters
	embedded bool
	cfg      config.Config
	cache    *cache.Options // of the cache to compare the store with; nil: none
	stop     func()         // ends what was started for it; may be nil
}

// findStore checks the URL, and adds the secrets in the environment. Its errors name what is wrong and show no credentials.
func findStore(conf benchFlags, environ func(string) string) (target, error) {
	cfg, err := conf.parseStore()
	if err != nil {
		return target{}, &badUsage{err}
	}
	secrets := make(map[string]string)
	for _, name := range config.Secrets(cfg.Scheme()) {
		if value := environ("WHOLEBLOB_" + strings.ToUpper(name)); value != "" && cfg.Get(name+"_file") == "" {
			secrets[name] = value
		}
	}
	if cfg, err = cfg.With(secrets); err != nil {
		return target{}, &badUsage{err}
	}
	return target{name: cfg.Target(), cfg: cfg}, nil
}

const embeddedBucket = "bench"

// embedded starts a fake S3 server in this process, so that the command shows the whole path through the S3 client on a machine that has
// no server. The caller calls stop.
func embedded(conf benchFlags) (target, error) {
	server, err := fakes3.Start(fakes3.Options{
		Buckets:  []string{embeddedBucket},
		FastETag: true, // MD5 sums would be half of the processor time
		NoLog:    true,
	})
	if err != nil {
		return target{}, fmt.Errorf("starting the embedded S3 server: %w", err)
	}
	credentials := fakes3.DefaultCredentials()
	cfg, err := config.ParseJSON(fmt.Appendf(nil,
		`{"url": "s3://%s", "endpoint": %q, "region": %q, "path_style": true, "access_key": %q, "secret_key": %q}`,
		embeddedBucket, server.URL(), server.Region(), credentials.AccessKey, credentials.SecretKey))
	if err == nil {
		cfg, err = cfg.With(conf.diskSettings())
	}
	if err != nil {
		server.Close()
		return target{}, err
	}
	name := fmt.Sprintf("s3://%s on %s", embeddedBucket, server.URL())
	return target{name: name, embedded: true, cfg: cfg, stop: server.Close}, nil
}
