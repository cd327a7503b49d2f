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
	"github.com/wholeblob/wholeblob/blob"
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

// opener checks c as a whole.
func (c Config) opener(sc scheme) (openFunc, error) {
	q, secrets := make(url.Values), c.secrets.open()
	for name, value := range c.settings {
		secret, file := strings.CutSuffix(name, fileSuffix)
		if file && sc.secret(secret) {
			if _, twice := secrets[secret]; twice {
				return nil, &Error{Setting: name, Err: invalid("%s is given too: want one of them", secret)}
			}
			continue
		}
		q.Set(name, value)
	}
	for name, value := range secrets {
		if value == redacted {
			return nil, &Error{Setting: name, Err: invalid("is %s: the secret was left out when this was written", redacted)}
		}
	}
	for _, pair := range sc.pairs {
		if c.hasSecret(pair[0]) && !c.hasSecret(pair[1]) {
			return nil, &Error{Setting: pair[1], Err: invalid("is missing: %s is of no use without it", pair[0])}
		}
	}
	raw := c.base
	if len(q) > 0 {
		raw += "?" + q.Encode()
	}
	u, err := param.ParseURL(raw)
	if err != nil {
		return nil, &Error{Setting: "url", Err: err}
	}
	open, err := sc.check(raw, u)
	if err != nil {
		return nil, sc.explain(err)
	}
	return open, nil
}

func (c Config) hasSecret(name string) bool {
	return c.secrets.open()[name] != "" || c.settings[name+fileSuffix] != ""
}

// names lists the settings there are. The store's own reader of URLs knows them: it tells when it is asked for another.
func (s scheme) names(base string) []string {
	raw := base + "?no-such-setting=x"
	u, err := param.ParseURL(raw)
	if err != nil {
		return nil
	}
	var e *Error
	if _, err = s.check(raw, u); errors.As(s.explain(err), &e) {
		return e.Valid
	}
	return nil
}

// explain turns the error of a URL parameter into that of a setting, which may have been written elsewhere.
func (s scheme) explain(err error) error {
	var p *param.Error
	var b *blob.Error
	switch {
	case errors.As(err, &p):
	case errors.As(err, &b) && b.Err != nil: // "s3: open" says nothing: nothing has been opened
		return &Error{Err: b.Err}
	default:
		return &Error{Err: err}
	}
	e := &Error{Setting: p.Name, Err: p.Err}
	if p.Valid != nil {
		e.Valid = slices.Clone(p.Valid)
		for _, name := range s.secrets {
			e.Valid = append(e.Valid, name, name+fileSuffix)
		}
		slices.Sort(e.Valid)
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
