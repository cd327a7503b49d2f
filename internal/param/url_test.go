package param

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

func TestParseURLSplitsAndUnescapes(t *testing.T) {
	for raw, want := range map[string]URL{
		"mem://":                           {Scheme: "mem"},
		"S3://bucket":                      {Scheme: "s3", Host: "bucket"},
		"s3://bucket/a/b/?x=1":             {Scheme: "s3", Host: "bucket", Path: "/a/b/"},
		"s3://bucket/a%2Fb+c%20d%23?":      {Scheme: "s3", Host: "bucket", Path: "/a/b+c d#"},
		"file:///dir with space/x@y":       {Scheme: "file", Path: "/dir with space/x@y"},
		"s3://b/p?endpoint=http://h:1/a@b": {Scheme: "s3", Host: "b", Path: "/p"},
	} {
		u, err := ParseURL(raw)
		if err != nil {
			t.Errorf("ParseURL(%q): %v", raw, err)
		} else if u.Scheme != want.Scheme || u.Host != want.Host || u.Path != want.Path {
			t.Errorf("ParseURL(%q) = %q %q %q", raw, u.Scheme, u.Host, u.Path)
		}
	}
}

func TestParseURLRefusesWithoutShowingCredentials(t *testing.T) {
	for _, raw := range []string{
		"", "bucket", "s3:bucket", "://bucket", "3s://bucket", "s 3://bucket", "s3://bucket/a#b", "s3://bucket/%zz", "s3://bad host/",
		"s3://HUSH@bucket", "s3://AKIA:HUSH@bucket/p", "s3://AKIA:HU/SH@bucket", "s3://AKIA:HU?SH@bucket", "s3://AKIA:HU#SH@bucket",
		"s3://AKIA:HU%zzSH@bucket", "AKIA:HUSH@bucket", "s3://bucket/p#?token=HUSH", "s3:bucket?token=HUSH",
		"s3://bucket:HUSH@", "s3://%zz?token=HUSH",
	} {
		_, err := ParseURL(raw)
		if !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("ParseURL(%q): %v, want ErrInvalidOption", raw, err)
			continue
		}
		for _, hush := range []string{"HU", "SH", "AKIA"} {
			if strings.Contains(err.Error(), hush) {
				t.Errorf("ParseURL(%q) shows credentials: %v", raw, err)
			}
		}
	}
}

type taken struct {
	region, secret, endpoint, mode string
	path                           bool
	part                           int64
	wait                           time.Duration
	n                              int
}

func takeAll(query string) (taken, error) {
	v := newValues("s3", query)
	x := taken{
		region:   v.String("region", "us-east-1"),
		secret:   v.Secret("secret"),
		endpoint: v.Endpoint("endpoint", ""),
		mode:     v.Enum("mode", "auto", "auto", "trust"),
		path:     v.Bool("path_style", false),
		part:     v.Size("part", 8<<20),
		wait:     v.Duration("wait", time.Minute),
		n:        v.Int("n", 4, 1, 64),
	}
	return x, v.Err()
}

func TestValuesThatAreGivenWinOverDefaults(t *testing.T) {
	got, err := takeAll("")
	want := taken{region: "us-east-1", mode: "auto", part: 8 << 20, wait: time.Minute, n: 4}
	if err != nil || got != want {
		t.Errorf("defaults: %+v, %v", got, err)
	}
	got, err = takeAll("region=eu%2Dcentral+1&secret=a%2Bb&endpoint=http://h:9000/&mode=trust&path_style=true&part=5MiB&wait=30s&n=64")
	want = taken{region: "eu-central 1", secret: "a+b", endpoint: "http://h:9000", mode: "trust", path: true, part: 5 << 20, wait: 30 * time.Second, n: 64}
	if err != nil || got != want {
		t.Errorf("given: %+v, %v", got, err)
	}
}

func TestValuesNameTheWrongParameter(t *testing.T) {
	const valid = "(valid parameters: endpoint, mode, n, part, path_style, region, secret, wait)"
	wrong := func(query, want, valid string) {
		t.Helper()
		_, err := takeAll(query)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("%q: %v, want a *Error that matches ErrInvalidOption", query, err)
			return
		}
		text := err.Error()
		if !strings.Contains(text, want) || len(text) > 400 || strings.Count(text, "invalid option") != 1 {
			t.Errorf("%.100q: error %q does not contain %q, is long, or repeats the kind", query, text, want)
		}
		if !strings.Contains(text, valid) || valid == "" && strings.Contains(text, "valid parameters") {
			t.Errorf("%.100q: error %q, want %q in it", query, text, valid)
		}
	}
	for query, want := range map[string]string{
		"partsize=5MiB":            `s3 URL parameter "partsize": is unknown`,
		"Region=x":                 `"Region": is unknown`,
		"region=x&region=x":        `"region": is given twice`,
		"region=x&%72egion=y":      `"region": is given twice`,
		"region=":                  `"region": has no value`,
		"region":                   `"region": has no value`,
		"&region=x":                `"": has no name`,
		"region=x&":                `"": has no name`,
		"=x":                       `"": has no name`,
		"region=x;path_style=true": `"region": has a semicolon`,
		"region=%zz":               `"region": has a %`,
		"%zz=1":                    `"%zz": has a %`,
		"unknown=1&wait=-1s":       `"unknown"`, // the first in the order of the URL
	} {
		wrong(query, want, valid)
	}
	for query, want := range map[string]string{
		"path_style=yes":                  `"path_style": "yes": want true or false`,
		"part=5mb":                        `"part": size "5mb"`,
		"part=-1":                         `"part": size "-1"`,
		"part=1e3":                        `"part": size "1e3"`,
		"wait=-1s":                        `"wait": duration "-1s"`,
		"n=0":                             `"n": "0": want a whole number from 1 to 64`,
		"n=65":                            `"n": "65"`,
		"n=+4":                            `"n": " 4"`, // a plus in a query is a space
		"mode=off":                        `"mode": "off": want one of auto, trust`,
		"endpoint=h:9000":                 `"endpoint": "h:9000": want an http:// or https://`,
		"endpoint=ftp://h":                `"endpoint": "ftp://h"`,
		"endpoint=http://":                `it has no host`,
		"endpoint=http://:80":             `it has no host`,
		"endpoint=http://h%3Fx":           `it has parameters`,
		"endpoint=http://a b/":            `want an http`,
		"wait=-1s&unknown=1":              `"wait"`, // the first in the order of the URL
		"n=" + strings.Repeat("9", 10000): `99"...: want`,
	} {
		wrong(query, want, "")
	}
}

func TestValuesNeverShowSecrets(t *testing.T) {
	for _, query := range []string{
		"secret=HUSH&secret=HUSH", "secret=HUSH%zz", "secret=HUSH;x", "token=HUSH", "=HUSH", "region=x&region=HUSH",
		"endpoint=http://u:HUSH@h", "endpoint=http://u:HU/SH@h", "endpoint=http%3A%2F%2Fu%3AHUSH%40h", "endpoint=u:HUSH@h",
		"endpoint=http://h/?token=HUSH", "path_style=http://u:HUSH@h", "part=HUSH@1", "wait=HUSH@1", "n=HUSH@1", "mode=HUSH@1",
		"endpoint=http://h&u:HUSH@h",
	} {
		_, err := takeAll(query)
		if !errors.Is(err, blob.ErrInvalidOption) {
			t.Errorf("%q: %v, want ErrInvalidOption", query, err)
		} else if s := err.Error(); strings.Contains(s, "HU") || strings.Contains(s, "SH") {
			t.Errorf("%q: %v shows a secret", query, err)
		}
	}
}

func TestErrorOfASchemeWithoutParameters(t *testing.T) {
	err := newValues("mem", "x=1").Err()
	if err == nil || !strings.Contains(err.Error(), `mem URL parameter "x": is unknown (it has no parameters)`) {
		t.Errorf("Err = %v", err)
	}
}

func TestFailReportsAReasonOfTheTaker(t *testing.T) {
	v := newValues("s3", "part=1")
	v.Size("part", 0)
	v.Fail("other", invalid("never given"))
	if err := v.Err(); err != nil {
		t.Errorf("a parameter that is not given failed: %v", err)
	}
	v.Fail("part", invalid("must be 5MiB or more"))
	if err := v.Err(); err == nil || !strings.Contains(err.Error(), `"part": must be 5MiB or more`) {
		t.Errorf("Err = %v", err)
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"mem://", "s3://b/p?region=x&n=4", "s3://k:s@b", "file:///a%20b?path_style=true", "s3://b?a;b", "s3://b?%zz=1", "://", "s3://[::1]:80/"} {
		f.Add(s, "key:word")
	}
	f.Fuzz(func(t *testing.T, raw, user string) {
		u, err := ParseURL(raw)
		if err != nil {
			if !errors.Is(err, blob.ErrInvalidOption) {
				t.Fatalf("%q: %v is no ErrInvalidOption", raw, err)
			}
		} else {
			u.Query.Bool("path_style", false)
			u.Query.Size("part", 0)
			u.Query.String("region", "")
			if err := u.Query.Err(); err != nil && !errors.Is(err, blob.ErrInvalidOption) {
				t.Fatalf("%q: %v is no ErrInvalidOption", raw, err)
			}
			again, err := ParseURL(u.String())
			if err != nil || again.Scheme != u.Scheme || again.Host != u.Host || again.Path != u.Path {
				t.Fatalf("%q is %q, which reads back as %+v, %v", raw, u, again, err)
			}
		}
		// User information in front of the host is refused and never shown, whatever it holds.
		const mark = "Zq9Xw"
		_, err = ParseURL("s3://" + user + mark + user + "@" + raw)
		if err != nil && strings.Contains(err.Error(), mark) {
			t.Fatalf("%v shows user information", err)
		}
	})
}

// FuzzValuesAgreeWithNetURL: whatever is accepted is what net/url reads.
func FuzzValuesAgreeWithNetURL(f *testing.F) {
	for _, s := range []string{"", "a=1&b=2", "a=%2B+x", "a=1&a=2", "a", "&", "a=1;b=2", "a=%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		v := newValues("s3", query)
		for _, g := range v.given {
			v.String(g.name, "")
		}
		if v.Err() != nil {
			return
		}
		want, err := url.ParseQuery(query)
		if err != nil || len(want) != len(v.given) {
			t.Fatalf("%q: taken as %v, net/url has %v, %v", query, v.given, want, err)
		}
		for name := range want {
			if got := v.String(name, ""); got != want.Get(name) || len(want[name]) != 1 {
				t.Fatalf("%q: %q is %q, net/url has %q", query, name, got, want[name])
			}
		}
	})
}
