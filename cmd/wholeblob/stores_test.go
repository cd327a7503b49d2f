package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakegcs"
	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// onlyThese makes the AWS SDK see these credentials and nothing of the machine's own.
func onlyThese(t *testing.T, c fakes3.Credentials) {
	t.Helper()
	missing := filepath.Join(t.TempDir(), "missing")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": c.AccessKey, "AWS_SECRET_ACCESS_KEY": c.SecretKey, "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": missing, "AWS_SHARED_CREDENTIALS_FILE": missing, "AWS_PROFILE": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
	} {
		t.Setenv(name, value)
	}
}

func s3Server(t *testing.T) (server *fakes3.Server, url string) {
	t.Helper()
	server = fakes3.New(fakes3.Options{Buckets: []string{"bucket"}, NoLog: true})
	t.Cleanup(server.Close)
	onlyThese(t, fakes3.DefaultCredentials())
	return server, "s3://bucket/some/prefix?conditions=trust&path_style=true&endpoint=" + server.URL()
}

func TestBenchOverS3CountsRequestsAndRetries(t *testing.T) {
	server, url := s3Server(t)
	server.Inject(fakes3.Fault{Op: "PutObject", Nth: 2, Reply: &fakes3.Reply{Status: 503, Code: "SlowDown"}})
	server.Inject(fakes3.Fault{Op: "GetObject", Nth: 3, Cut: &fakes3.Cut{At: 100}})
	o := runWith(t, t.Context(), openStack, "bench", url, "--json", "--sizes=4KiB,9MiB", "--count=4")
	o.want(t, exitOK)
	r := parseReport(t, o)
	if r.Store != "s3" || r.URL != "s3://bucket/some/prefix" || r.Retries.Throttled != 1 || r.Retries.total() != 2 {
		t.Errorf("%s at %s, retries %+v", r.Store, r.URL, r.Retries)
	}
	var attempts []int64
	for _, p := range r.Phases {
		attempts = append(attempts, p.Attempts)
	}
	// 4 KiB: one request each, and one more after each fault. 9 MiB: begin, two parts and commit; two parts to read.
	want := []int64{5, listings, 5, 4, 16, listings, 8, 4}
	for i := range want {
		if len(attempts) != len(want) || attempts[i] != want[i] {
			t.Fatalf("attempts %v, want %v", attempts, want)
		}
	}
	if left := server.Objects("bucket"); len(left) > 0 {
		t.Errorf("%d objects left, first %q", len(left), left[0].Key)
	}
}

func TestBenchFindsWhatAnS3ServerHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"one bit":   {func(b []byte) []byte { b[777] ^= 1; return b }, "at byte 777: want "},
		"truncated": {func(b []byte) []byte { return b[:len(b)-1] }, "of 4095 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			server, url := s3Server(t)
			var once sync.Once
			server.Inject(fakes3.Fault{Op: "ListObjectsV2", Nth: listings, Then: func() {
				once.Do(func() {
					for _, obj := range server.Objects("bucket") {
						server.PutObject("bucket", obj.Key, [][]byte{c.change(obj.Bytes())}, nil)
					}
				})
			}})
			o := runWith(t, t.Context(), openStack, "bench", url, "--sizes=4KiB", "--count=4")
			o.want(t, exitFail, "MISMATCH: get", c.want)
			if left := server.Objects("bucket"); len(left) > 0 {
				t.Errorf("%d objects left, first %q", len(left), left[0].Key)
			}
		})
	}
}

func TestBenchOverFiles(t *testing.T) {
	for _, params := range []string{"", "?nosync=true", "?nosync=true&restore=true&create=true"} {
		dir := filepath.Join(t.TempDir(), "not there yet")
		url := "file://" + strings.ReplaceAll(dir, " ", "%20")
		o := runWith(t, t.Context(), openStack, "bench", url+params, "--json", "--sizes=0,4KiB,1MiB", "--count=5")
		o.want(t, exitOK)
		if r := parseReport(t, o); r.Store != "file" || r.URL != url {
			t.Errorf("store %q at %q", r.Store, r.URL)
		}
		if found, err := filepath.Glob(filepath.Join(dir, "[^.]*")); err != nil || len(found) > 0 {
			t.Errorf("left in the directory: %q, %v", found, err)
		}
	}
	o := runWith(t, t.Context(), openStack, "bench", "file://"+t.TempDir()+"/missing?create=false")
	o.want(t, exitFail, "opening file://", "missing")
}

func TestTheEmbeddedServerIsNamedAsSuch(t *testing.T) {
	onlyThese(t, fakes3.Credentials{}) // it needs none of the machine's
	args := []string{"bench", "--sizes=4KiB,9MiB", "--count=3"}
	o := runWith(t, t.Context(), openStack, args...)
	o.want(t, exitOK)
	if !strings.Contains(o.stdout, "embedded fake S3 server") || !strings.Contains(o.stdout, "not a real store") {
		t.Error("the table does not say that the store is a fake")
	}
	o = runWith(t, t.Context(), openStack, append(args, "--json")...)
	o.want(t, exitOK)
	if r := parseReport(t, o); !r.Embedded || r.Store != "s3" {
		t.Errorf("embedded %v, store %q", r.Embedded, r.Store)
	}
}

func TestWrongS3URLsAreNamedBeforeAnyRequest(t *testing.T) {
	server := fakes3.New(fakes3.Options{Buckets: []string{"bucket"}})
	t.Cleanup(server.Close)
	onlyThese(t, fakes3.Credentials{AccessKey: "AKIAHUSH", SecretKey: "HUSHHUSH"})
	endpoint := "endpoint=" + server.URL()
	for url, want := range map[string]string{
		"s3://?" + endpoint:                              "no bucket",
		"s3:///prefix?" + endpoint:                       "no bucket",
		"s3://bucket?part_sise=5MiB&" + endpoint:         `"part_sise"`,
		"s3://bucket?region=x&region=x&" + endpoint:      `"region": is given twice`,
		"s3://bucket?part_size=5mb&" + endpoint:          `"5mb"`,
		"s3://bucket?part_size=-1&" + endpoint:           `"-1"`,
		"s3://bucket?retry_total=1e3&" + endpoint:        `"1e3"`,
		"s3://bucket?path_style=1&" + endpoint:           `"path_style"`,
		"s3://bucket?endpoint=localhost:9000":            `"endpoint"`,
		"s3://bucket?endpoint=http://k:HUSH@h":           `"http://...": want`,
		"s3://bucket?endpoint=http%3A%2F%2Fk%3AHUSH%40h": `"endpoint": "http://..."`,
		"s3://bucket/a%5Cb?" + endpoint:                  `a\\b`,
		"s3://bucket":                                    "region", // nowhere to be found
	} {
		o := runWith(t, t.Context(), openStack, "bench", url)
		o.want(t, exitUsage, want, "invalid option")
		if strings.Contains(o.stdout+o.stderr, "HUSH") {
			t.Errorf("%q shows credentials", url)
		}
	}
	if log := server.Log(); len(log) > 0 {
		t.Errorf("the server saw requests: %v", log)
	}
}

func TestSecretsComeFromTheEnvironment(t *testing.T) {
	server, url := s3Server(t)
	onlyThese(t, fakes3.Credentials{}) // the SDK finds none
	good := fakes3.DefaultCredentials()
	for _, key := range []string{good.SecretKey, "HUSHHUSH"} {
		var stdout, stderr strings.Builder
		environ := map[string]string{"WHOLEBLOB_ACCESS_KEY": good.AccessKey, "WHOLEBLOB_SECRET_KEY": key}
		c := command{open: openStack, stdout: &stdout, stderr: &stderr, environ: func(name string) string { return environ[name] }}
		code := c.run(t.Context(), []string{"bench", "--sizes=4KiB", "--count=4", url})
		if want := map[bool]int{true: exitOK, false: exitFail}[key == good.SecretKey]; code != want {
			t.Errorf("exit %d, want %d:\n%s", code, want, &stderr)
		}
		if strings.Contains(stdout.String()+stderr.String(), key) {
			t.Error("the secret is shown")
		}
	}
	if left := server.Objects("bucket"); len(left) > 0 {
		t.Errorf("%d objects left", len(left))
	}
}

func TestBenchOverGCSAndAzure(t *testing.T) {
	gcs := fakegcs.New(fakegcs.Options{Buckets: []string{"bucket"}, Anonymous: true, NoLog: true})
	t.Cleanup(gcs.Close)
	azure := fakeaz.New(fakeaz.Options{Containers: []string{"box"}, NoLog: true})
	t.Cleanup(azure.Close)
	for name, c := range map[string]struct {
		url     string
		environ map[string]string
		left    func() int
	}{
		"gcs": {
			"gs://bucket/some/prefix?conditions=trust&anonymous=true&endpoint=" + gcs.URL(), nil,
			func() int { return len(gcs.Objects("bucket")) },
		},
		"azure": {
			"azblob://box/some/prefix?conditions=trust&endpoint=" + azure.Endpoint(),
			map[string]string{"WHOLEBLOB_ACCOUNT_KEY": fakeaz.DefaultKey()},
			func() int { return len(azure.Objects("box")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			bench := command{open: openStack, stdout: &stdout, stderr: &stderr, environ: func(name string) string { return c.environ[name] }}
			code := bench.run(t.Context(), []string{"bench", c.url, "--json", "--sizes=0,4KiB,9MiB", "--count=4"})
			o := outcome{code, stdout.String(), stderr.String()}
			o.want(t, exitOK)
			r := parseReport(t, o)
			if want, _, _ := strings.Cut(c.url, "?"); r.Store != name || r.URL != want || r.Retries.total() != 0 {
				t.Errorf("%s at %s, %d retries:\n%s", r.Store, r.URL, r.Retries.total(), &stderr)
			}
			for _, p := range r.Phases {
				if p.Attempts == 0 {
					t.Errorf("%s of %d bytes counted no request", p.Phase, p.Size)
				}
			}
			if n := c.left(); n > 0 {
				t.Errorf("%d objects left", n)
			}
			if key := c.environ["WHOLEBLOB_ACCOUNT_KEY"]; key != "" && strings.Contains(o.stdout+o.stderr, key) {
				t.Error("the account key is shown")
			}
		})
	}
}
