package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/cache"
	"github.com/wholeblob/wholeblob/fileblob"
	"github.com/wholeblob/wholeblob/gcsblob"
	"github.com/wholeblob/wholeblob/internal/param"
	"github.com/wholeblob/wholeblob/memblob"
	"github.com/wholeblob/wholeblob/retry"
	"github.com/wholeblob/wholeblob/s3blob"
)

// scheme is one kind of store.
type scheme struct {
	secrets []string // its settings that are secrets
	// pairs are secrets of which the first is of no use without the second.
	pairs [][2]string
	// check reads the URL with its settings, without the secrets, and does no I/O.
	check func(raw string, u *param.URL) (openFunc, error)
}

// openFunc opens the store. secrets are by name, those in files already read.
type openFunc func(ctx context.Context, secrets map[string]string, e *environment) (opened, error)

// schemes are made anew for each use: nobody can change them for others.
func schemes() map[string]scheme {
	return map[string]scheme{
		"mem":  {check: checkMem},
		"file": {check: checkFile},
		"s3": {
			check: checkS3, secrets: []string{"access_key", "secret_key", "session_token"},
			pairs: [][2]string{{"access_key", "secret_key"}, {"secret_key", "access_key"}, {"session_token", "access_key"}},
		},
		"gs":     {check: checkGCS, secrets: []string{"credentials_json"}},
		"azblob": {check: checkAzure, secrets: []string{"account_key", "sas"}},
	}
}

// Schemes returns the schemes of the URLs that can be opened, sorted.
func Schemes() []string { return slices.Sorted(maps.Keys(schemes())) }

// Secrets returns which settings of a scheme are secrets.
func Secrets(scheme string) []string { return slices.Clone(schemes()[scheme].secrets) }

const fileSuffix = "_file"

func (s scheme) secret(name string) bool { return slices.Contains(s.secrets, name) }

// plan is a stack that has been checked and not opened.
type plan struct {
	open  openFunc
	cache *cache.Options // nil: none
}

// plan checks c as a whole.
func (c Config) plan(sc scheme) (plan, error) {
	store, cached, err := c.split(sc)
	if err != nil {
		return plan{}, err
	}
	u, err := param.ParseURL(store)
	if err != nil {
		return plan{}, &Error{Setting: "url", Err: err}
	}
	open, err := sc.check(store, u)
	if err != nil {
		return plan{}, sc.explain(c.base, err)
	}
	u, err = param.ParseURL(cached)
	if err != nil {
		return plan{}, &Error{Err: err}
	}
	maxGet := int64(0)
	if text, ok := c.settings["max_get"]; ok {
		if maxGet, err = param.ParseSize(text); err != nil {
			return plan{}, &Error{Setting: "max_get", Err: err} // not after the store has read it
		}
	}
	o, err := checkCache(u.Query, maxGet)
	if err != nil {
		return plan{}, sc.explain(c.base, err)
	}
	return plan{open, o}, nil
}

// split checks the secrets, and returns URLs with the other settings: those of the store and those of the cache.
func (c Config) split(sc scheme) (store, cached string, err error) {
	q, cq, secrets := make(url.Values), make(url.Values), c.secrets.open()
	for name, value := range c.settings {
		secret, file := strings.CutSuffix(name, fileSuffix)
		if file && sc.secret(secret) {
			if _, twice := secrets[secret]; twice {
				return "", "", &Error{Setting: name, Err: invalid("%s is given too: want one of them", secret)}
			}
			continue
		}
		if cacheSetting(name) {
			cq.Set(name, value)
		} else {
			q.Set(name, value)
		}
	}
	for name, value := range secrets {
		if value == redacted {
			return "", "", &Error{Setting: name, Err: invalid("is %s: the secret was left out when this was written", redacted)}
		}
	}
	for _, pair := range sc.pairs {
		if c.hasSecret(pair[0]) && !c.hasSecret(pair[1]) {
			return "", "", &Error{Setting: pair[1], Err: invalid("is missing: %s is of no use without it", pair[0])}
		}
	}
	return withQuery(c.base, q), withQuery("cache://", cq), nil
}

func withQuery(base string, q url.Values) string {
	if len(q) == 0 {
		return base
	}
	return base + "?" + q.Encode()
}

func (c Config) hasSecret(name string) bool {
	return c.secrets.open()[name] != "" || c.settings[name+fileSuffix] != ""
}

// names lists the settings there are. Those who read them know them, and tell when they are asked for another.
func (s scheme) names(base string) []string {
	const other = "?no-such-setting=x"
	u, err := param.ParseURL(base + other)
	if err != nil {
		return nil
	}
	_, err = s.check(base+other, u)
	var p *param.Error
	if !errors.As(err, &p) || p.Valid == nil {
		return nil
	}
	names := slices.Clone(p.Valid)
	if u, err = param.ParseURL("cache://" + other); err == nil {
		_, err = checkCache(u.Query, 0)
	}
	if errors.As(err, &p) {
		names = append(names, p.Valid...)
	}
	for _, name := range s.secrets {
		names = append(names, name, name+fileSuffix)
	}
	slices.Sort(names)
	return names
}

// explain turns the error of a URL parameter into that of a setting, which may have been written elsewhere.
func (s scheme) explain(base string, err error) error {
	var own *Error
	var p *param.Error
	switch {
	case errors.As(err, &own):
		return own
	case !errors.As(err, &p): // "s3: open" says nothing: nothing has been opened
		return &Error{Err: cause(err)}
	}
	e := &Error{Setting: p.Name, Err: p.Err}
	if p.Valid != nil {
		e.Valid = s.names(base)
	}
	return e
}

// readSecrets returns all secrets, with those that are in files.
func (c Config) readSecrets(sc scheme) (map[string]string, error) {
	all := make(map[string]string)
	maps.Copy(all, c.secrets.open())
	for _, name := range sc.secrets {
		path, ok := c.settings[name+fileSuffix]
		if !ok {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, &Error{Setting: name + fileSuffix, Err: fmt.Errorf("%w: %w", invalid("cannot be read"), err)}
		}
		all[name] = strings.TrimRight(string(text), "\r\n") // editors end a file so, and no secret does
		if all[name] == "" {
			return nil, &Error{Setting: name + fileSuffix, Err: invalid("the file is empty")}
		}
	}
	return all, nil
}

func checkMem(_ string, u *param.URL) (openFunc, error) {
	if u.Host != "" || u.Path != "" {
		return nil, invalid("URL %s: want mem:// and nothing after it", param.Quote(u.String()))
	}
	opts := &memblob.Options{
		MaxGet:    u.Query.Size("max_get", 0),
		MaxObject: u.Query.Size("max_object", 0),
		Restore:   u.Query.Bool("restore", false),
	}
	policy, err := retries(u.Query)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, _ map[string]string, e *environment) (opened, error) {
		return e.retried(memblob.New(opts), policy)
	}, nil
}

func checkFile(_ string, u *param.URL) (openFunc, error) {
	if u.Host != "" || u.Path == "" {
		return nil, invalid("URL %s: want file:///dir with three slashes and an absolute path", param.Quote(u.String()))
	}
	opts := &fileblob.Options{
		Create:    u.Query.Bool("create", true), // who writes a URL does not make directories first
		NoSync:    u.Query.Bool("nosync", false),
		Restore:   u.Query.Bool("restore", false),
		MaxGet:    u.Query.Size("max_get", 0),
		MaxObject: u.Query.Size("max_object", 0),
		TempAge:   u.Query.Duration("temp_age", 0),
	}
	policy, err := retries(u.Query)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ map[string]string, e *environment) (opened, error) {
		s, err := fileblob.New(ctx, u.Path, opts)
		if err != nil {
			return opened{}, err
		}
		return e.retried(s, policy)
	}, nil
}

// retries takes the settings of the loop that the stack puts around a store which has none, and ends the reading of q.
func retries(q *param.Values) (retry.Policy, error) {
	p := retry.Policy{
		Attempts: q.Int("retry_attempts", 0, 1, 1<<16),
		Attempt:  q.Duration("retry_attempt", 0),
		Total:    q.Duration("retry_total", 0),
	}
	if err := q.Err(); err != nil {
		return p, err
	}
	return p, p.Check()
}

func checkS3(raw string, _ *param.URL) (openFunc, error) {
	bucket, opts, err := s3blob.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, secrets map[string]string, e *environment) (opened, error) {
		o := *opts
		o.AccessKey, o.SecretKey, o.SessionToken = secrets["access_key"], secrets["secret_key"], secrets["session_token"]
		o.Retry.Counters, o.Logger = e.counters, e.logger
		s, err := s3blob.New(ctx, bucket, &o)
		if err != nil {
			return opened{}, err
		}
		return opened{s, s.Sweep}, nil
	}, nil
}

func checkGCS(raw string, _ *param.URL) (openFunc, error) {
	bucket, opts, err := gcsblob.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, secrets map[string]string, e *environment) (opened, error) {
		o := *opts
		o.CredentialsJSON = []byte(secrets["credentials_json"])
		o.Retry.Counters, o.Logger = e.counters, e.logger
		s, err := gcsblob.New(ctx, bucket, &o)
		if err != nil {
			return opened{}, err
		}
		return opened{s, s.Sweep}, nil
	}, nil
}

func checkAzure(raw string, _ *param.URL) (openFunc, error) {
	container, opts, err := azblob.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, secrets map[string]string, e *environment) (opened, error) {
		o := *opts
		o.AccountKey, o.SAS = secrets["account_key"], secrets["sas"]
		o.Retry.Counters, o.Logger = e.counters, e.logger
		s, err := azblob.New(ctx, container, &o)
		if err != nil {
			return opened{}, err
		}
		return opened{s, s.Sweep}, nil
	}, nil
}
