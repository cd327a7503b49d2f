package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/config"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg config.Config, opts ...config.Option) *config.Stack {
	t.Helper()
	stack, err := config.Open(t.Context(), cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(context.Background()); err != nil { // the context of the test has ended by now
			t.Error(err)
		}
	})
	return stack
}

// One program, several stores: only the text differs.
func TestOneProgramRunsOnEveryStore(t *testing.T) {
	for name, cfg := range configs(t, "prefix") {
		t.Run(name, func(t *testing.T) {
			counters := new(retry.Counters)
			stack := open(t, cfg, nil, config.WithCounters(counters)) // an Option that is nil is none
			info, err := stack.Set(t.Context(), "k", blob.Bytes([]byte("hello")), &blob.SetOptions{If: blob.IfAbsent()})
			if err != nil {
				t.Fatal(err)
			}
			obj, err := stack.Get(t.Context(), "k", nil)
			if err != nil || string(obj.Data) != "hello" || obj.Version != info.Version {
				t.Errorf("%q of version %s, %v", obj.Data, obj.Version, err)
			}
			if _, err := stack.Sweep(t.Context(), time.Hour); err != nil {
				t.Errorf("Sweep: %v", err)
			}
			if n := counters.Snapshot().Attempts; n < 2 {
				t.Errorf("%d attempts counted", n)
			}
			if !stack.Capabilities().SelfRetrying {
				t.Error("the stack does not retry")
			}
			if err := stack.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
			if _, err := stack.Get(t.Context(), "k", nil); !errors.Is(err, blob.ErrClosed) {
				t.Errorf("Get after Close: %v", err)
			}
		})
	}
}

// The prefix of a Config is a folder, with or without a final slash: "team" and "team/" are the same, and neither reaches "team2", nor does what is
// deleted by a prefix inside it (apache/iceberg-rust #1118).
func TestAPrefixIsAFolder(t *testing.T) {
	all := configs(t, "team", "team/", "team2")
	for _, scheme := range []string{"s3", "gs", "azblob"} {
		t.Run(scheme, func(t *testing.T) {
			team, slash, team2 := open(t, all[scheme]), open(t, all[scheme+" team/"]), open(t, all[scheme+" team2"])
			keys := []string{"2/x", "a", "a/1", "a-b/1"}
			for _, s := range []*config.Stack{team, team2} {
				for _, key := range keys {
					if _, err := s.Set(t.Context(), key, blob.Bytes(nil), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n, err := blob.DeletePrefix(t.Context(), slash, "a/"); n != 1 || err != nil {
				t.Errorf("%d deleted, %v", n, err)
			}
			if n, err := blob.DeletePrefix(t.Context(), slash, "a"); n != 2 || err != nil {
				t.Errorf("%d deleted, %v", n, err)
			}
			if err := team.DeleteAll(t.Context(), []string{"2/x", "2/a"}); err != nil {
				t.Error(err)
			}
			for _, c := range []struct {
				s    *config.Stack
				want []string
			}{{team, nil}, {team2, []string{"2/x", "a", "a-b/1", "a/1"}}} {
				var got []string
				for info, err := range c.s.List(t.Context(), "", nil) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, info.Key)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("left %q, want %q", got, c.want)
				}
			}
		})
	}
}

// configs has a Config of a working store of every scheme by its name; of the clouds one for each prefix on the same server, and all but the first
// have the prefix in their names.
func configs(t *testing.T, prefixes ...string) map[string]config.Config {
	t.Helper()
	s3 := fakes3.New(fakes3.Options{Buckets: []string{"bucket"}})
	t.Cleanup(s3.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(fakes3.DefaultCredentials().SecretKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gcs := fakegcs.New(fakegcs.Options{Buckets: []string{"bucket"}, Anonymous: true})
	t.Cleanup(gcs.Close)
	azure := fakeaz.New(fakeaz.Options{Containers: []string{"container"}})
	t.Cleanup(azure.Close)
	all := map[string]config.Config{
		"mem":  parse(t, "mem://"),
		"file": parse(t, "file://"+filepath.ToSlash(t.TempDir())+"?nosync=true"),
	}
	for i, prefix := range prefixes {
		onS3, err := config.ParseYAML([]byte(strings.Join([]string{
			"url: s3://bucket/" + prefix + "?conditions=trust", "path_style: true", "endpoint: " + s3.URL(),
			"access_key: " + fakes3.DefaultCredentials().AccessKey, "secret_key_file: " + secret,
		}, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		onAzure, err := config.ParseEnv("DB_", []string{
			"DB_URL=azblob://container/" + prefix, "DB_CONDITIONS=trust", "DB_ACCOUNT=" + azure.Account(), "DB_ENDPOINT=" + azure.Endpoint(),
			"DB_ACCOUNT_KEY=" + fakeaz.DefaultKey(),
		})
		if err != nil {
			t.Fatal(err)
		}
		suffix := ""
		if i > 0 {
			suffix = " " + prefix
		}
		all["s3"+suffix], all["azblob"+suffix] = onS3, onAzure
		all["gs"+suffix] = parse(t, "gs://bucket/"+prefix+"?conditions=trust&endpoint="+gcs.URL())
	}
	return all
}

func TestOpenOfWhatCannotBeOpened(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg  config.Config
		kind error
		text string
	}{
		"the zero Config":         {config.Config{}, blob.ErrInvalidOption, "is empty"},
		"a secret's file missing": {parse(t, "s3://b?access_key_file="+missing+"&secret_key_file="+missing), blob.ErrInvalidOption, "access_key_file"},
		"a secret's file empty":   {parse(t, "s3://b?access_key_file="+empty+"&secret_key_file="+empty), blob.ErrInvalidOption, "is empty"},
		"a directory not made":    {parse(t, "file://"+filepath.ToSlash(missing)+"?create=false"), blob.ErrNoContainer, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			stack, err := config.Open(t.Context(), c.cfg)
			if stack != nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%v, %v", stack, err)
			}
		})
	}
}
