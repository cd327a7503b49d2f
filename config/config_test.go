package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/config"
)

func parse(t testing.TB, raw string) config.Config {
	t.Helper()
	c, err := config.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const sample = "s3://bucket/some/prefix?endpoint=http://127.0.0.1:9000&part_size=16MiB&path_style=true&stall=30s&retry_attempts=3"

// One Config, however it is spelled.
func TestAllSpellingsMeanTheSame(t *testing.T) {
	want := parse(t, sample)
	for name, read := range map[string]func() (config.Config, error){
		"YAML": func() (config.Config, error) {
			return config.ParseYAML([]byte("url: s3://bucket/some/prefix\nendpoint: http://127.0.0.1:9000\npart_size: 16MiB\npath_style: true\nstall: 30s\nretry_attempts: 3\n"))
		},
		"YAML with parameters in the URL": func() (config.Config, error) {
			return config.ParseYAML([]byte(`{url: "s3://bucket/some/prefix?part_size=16MiB&stall=30s", endpoint: "http://127.0.0.1:9000", path_style: true, retry_attempts: 3}`))
		},
		"JSON": func() (config.Config, error) {
			return config.ParseJSON([]byte(`{"url": "s3://bucket/some/prefix", "endpoint": "http://127.0.0.1:9000", "part_size": "16MiB", "path_style": true, "stall": "30s", "retry_attempts": 3}`))
		},
		"environment": func() (config.Config, error) {
			return config.ParseEnv("DB_BLOB_", []string{
				"HOME=/", "DB_BLOB_URL=s3://bucket/some/prefix", "DB_BLOB_ENDPOINT=http://127.0.0.1:9000", "DB_BLOB_PART_SIZE=16MiB",
				"DB_BLOB_PATH_STYLE=true", "DB_BLOB_STALL=30s", "DB_BLOB_RETRY_ATTEMPTS=3", "OTHER_DB_BLOB_X=y",
			})
		},
		"its own String": func() (config.Config, error) { return config.Parse(want.String()) },
		"YAML with aliases": func() (c config.Config, err error) {
			var program struct{ Like, Blob config.Config }
			err = yaml.Unmarshal([]byte("like: &l {url: 's3://bucket/some/prefix', endpoint: &e 'http://127.0.0.1:9000', part_size: 16MiB, path_style: true, "+
				"stall: 30s, retry_attempts: &n 3}\nblob: *l\n"), &program)
			if !program.Like.Equal(program.Blob) {
				t.Errorf("%v and %v", program.Like, program.Blob)
			}
			return program.Blob, err
		},
		"YAML with values that are aliases": func() (config.Config, error) {
			c, err := config.ParseYAML([]byte("\xef\xbb\xbfurl: " + strings.Replace(sample, "path_style=true&", "", 1) + "\npath_style: &on true\nunsigned_payload: *on\n"))
			if err != nil || c.Get("unsigned_payload") != "true" {
				return c, errors.Join(err, errors.New("no unsigned_payload"))
			}
			return c.With(map[string]string{"unsigned_payload": ""})
		},
		"a field of YAML": func() (c config.Config, err error) {
			var program struct{ Blob config.Config }
			err = yaml.Unmarshal([]byte("blob:\n  url: "+sample+"\n"), &program)
			return program.Blob, err
		},
		"a URL in a field of YAML": func() (c config.Config, err error) {
			var program struct{ Blob config.Config }
			err = yaml.Unmarshal([]byte("blob: "+sample+"\n"), &program)
			return program.Blob, err
		},
		"a field of JSON": func() (c config.Config, err error) {
			var program struct{ Blob config.Config }
			err = json.Unmarshal([]byte(`{"blob": {"url": "`+sample+`"}}`), &program)
			return program.Blob, err
		},
		"JSON of itself": func() (c config.Config, err error) {
			text, err := json.Marshal(want)
			return c, errors.Join(err, json.Unmarshal(text, &c))
		},
		"YAML of itself": func() (c config.Config, err error) {
			text, err := yaml.Marshal(want)
			return c, errors.Join(err, yaml.Unmarshal(text, &c))
		},
		"another Config with changes": func() (config.Config, error) {
			return parse(t, "s3://bucket/some/prefix?part_size=5MiB&gap=1KiB&stall=30s").With(map[string]string{
				"endpoint": "http://127.0.0.1:9000", "part_size": "16MiB", "path_style": "true", "retry_attempts": "3", "gap": "", "segment": "",
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read()
			if err != nil || !got.Equal(want) {
				t.Errorf("%v, %v\nwant %v", got, err, want)
			}
		})
	}
	if want.Get("part_size") != "16MiB" || want.Get("gap") != "" || want.Scheme() != "s3" {
		t.Errorf("part_size %q, gap %q, scheme %q", want.Get("part_size"), want.Get("gap"), want.Scheme())
	}
}

// What is wrong is refused when it is read, by the name of the setting.
func TestReadingIsStrict(t *testing.T) {
	yamlOf := func(text string) func() (config.Config, error) {
		return func() (config.Config, error) { return config.ParseYAML([]byte(text)) }
	}
	jsonOf := func(text string) func() (config.Config, error) {
		return func() (config.Config, error) { return config.ParseJSON([]byte(text)) }
	}
	env := func(vars ...string) func() (config.Config, error) {
		return func() (config.Config, error) { return config.ParseEnv("P_", vars) }
	}
	urlOf := func(raw string) func() (config.Config, error) {
		return func() (config.Config, error) { return config.Parse(raw) }
	}
	for name, c := range map[string]struct {
		read    func() (config.Config, error)
		setting string
		listed  bool // the valid names are
		text    string
	}{
		"unknown":                       {urlOf("s3://b?part_sise=5MiB"), "part_sise", true, `"part_sise": is unknown`},
		"unknown in YAML":               {yamlOf("url: s3://b\npart_sise: 5MiB"), "part_sise", true, "part_size"},
		"unknown in JSON":               {jsonOf(`{"url":"s3://b","Region":"x"}`), "Region", true, "region"},
		"unknown in the environment":    {env("P_URL=s3://b", "P_REGIO=x"), "regio", true, "region"},
		"of another store":              {urlOf("file:///d?region=x"), "region", true, "nosync"},
		"doubled":                       {urlOf("s3://b?gap=1KiB&gap=1KiB"), "gap", true, "is given twice"},
		"doubled in YAML":               {yamlOf("url: s3://b\ngap: 1KiB\ngap: 2KiB"), "gap", true, "is given twice"},
		"doubled in JSON":               {jsonOf(`{"url":"s3://b","gap":"1KiB","gap":"1KiB"}`), "gap", true, "is given twice"},
		"doubled across":                {jsonOf(`{"url":"s3://b?gap=1KiB","gap":"1KiB"}`), "gap", true, "is given twice"},
		"doubled in the environment":    {env("P_URL=s3://b", "P_GAP=1KiB", "P_GAP=1KiB"), "gap", true, "is given twice"},
		"empty":                         {urlOf("s3://b?region="), "region", true, "no value"},
		"empty in the environment":      {env("P_URL=s3://b", "P_REGION="), "region", true, "no value"},
		"size in a wrong unit":          {urlOf("s3://b?part_size=5mb"), "part_size", false, `"5mb"`},
		"negative size":                 {yamlOf("url: s3://b\npart_size: -1"), "part_size", false, `"-1"`},
		"exponent":                      {jsonOf(`{"url":"s3://b","part_size":1e7}`), "part_size", false, `"1e7"`},
		"duration without unit":         {jsonOf(`{"url":"s3://b","stall":30}`), "stall", false, `"30"`},
		"switch as YAML 1.1 has it":     {yamlOf("url: s3://b\npath_style: yes"), "path_style", false, "true or false"},
		"null":                          {yamlOf("url: s3://b\nregion:"), "region", false, "want one text"},
		"nested":                        {yamlOf("url: s3://b\nretry: {attempts: 3}"), "retry", false, "want one text"},
		"list":                          {jsonOf(`{"url":"s3://b","region":["x"]}`), "region", false, "want one text"},
		"no URL":                        {yamlOf("region: x"), "url", false, "is missing"},
		"no bucket":                     {urlOf("s3:///prefix"), "", false, "no bucket"},
		"no scheme":                     {urlOf("bucket/prefix"), "url", false, "scheme://"},
		"unknown scheme":                {urlOf("ftp://host/x"), "url", false, "file, "},
		"relative directory":            {urlOf("file://dir"), "", false, "three slashes"},
		"something after mem://":        {urlOf("mem://x"), "", false, "nothing after it"},
		"user information":              {urlOf("s3://key:hush@b"), "url", false, "s3://..."},
		"a prefix that is too long":     {urlOf("s3://b/" + strings.Repeat("a", 200)), "", false, "refix"},
		"not YAML":                      {yamlOf("url: [s3"), "", false, "not well-formed"},
		"two documents":                 {yamlOf("url: s3://b\n---\nurl: s3://c"), "", false, "more than one"},
		"empty YAML":                    {yamlOf(""), "", false, "is empty"},
		"JSON that ends early":          {jsonOf(`{"url":"s3://b"`), "", false, "ends early"},
		"JSON that goes on":             {jsonOf(`{"url":"s3://b"}{}`), "", false, "goes on"},
		"a number for JSON":             {jsonOf(`7`), "", false, "neither"},
		"lower case in the environment": {env("P_URL=s3://b", "P_Region=x"), "Region", false, "upper case"},
		"broken escape":                 {urlOf("s3://b?region=%zz"), "", false, "region"},
		"semicolon":                     {urlOf("s3://b?region=x;gap=1KiB"), "", false, "semicolon"},
		"retries that leave no time":    {urlOf("mem://?retry_attempt=5s&retry_total=5s"), "", false, "Attempt"},
		"secret in the URL":             {urlOf("s3://b?secret_key=hush"), "secret_key", false, "does not belong in a URL"},
		"one secret of two":             {jsonOf(`{"url":"s3://b","secret_key":"hush"}`), "access_key", false, "is missing"},
		"a secret twice":                {jsonOf(`{"url":"s3://b","access_key":"a","secret_key":"hush","secret_key_file":"/f"}`), "secret_key_file", false, "secret_key is given too"},
		"JSON that goes on after a URL": {jsonOf(`"s3://b" {}`), "", false, "goes on"},
		"JSON in another encoding":      {jsonOf("{\"url\":\"s3://b\",\"region\":\"\xff\"}"), "", false, "UTF-8"},
		"base64 in YAML":                {yamlOf("url: s3://b\nregion: !!binary aHVzaA=="), "region", false, "want one text"},
		"a tag of another program":      {yamlOf("url: s3://b\naccess_key: a\nsecret_key: !vault hush"), "secret_key", false, "want one text"},
		"null in YAML's long form":      {yamlOf("url: s3://b\nregion: !<tag:yaml.org,2002:null> ''"), "region", false, "want one text"},
		"a merge key":                   {yamlOf("<<: {region: x}\nurl: s3://b"), "<<", false, "want one text"},
		"an alias of a mapping":         {yamlOf("url: s3://b\nregion: &x {y: z}\nread: *x"), "region", false, "want one text"},
		"null in JSON":                  {jsonOf(`{"url":"s3://b","region":null}`), "region", false, "want one text"},
		"tabs in YAML":                  {yamlOf("url: s3://b\n\tregion: x"), "", false, "not well-formed"},
		"a variable without a name":     {env("P_URL=s3://b", "P_=x"), "", true, "no name"},
		"a secret without a value":      {urlOf("s3://b?secret%5Fkey"), "secret_key", false, "does not belong in a URL"},
		"a SAS in the query":            {urlOf("azblob://ctr?account=acct&sv=2020&sig=hush"), "sig", true, "is unknown"},
		"a secret that was left out":    {jsonOf(`{"url":"s3://b","access_key":"a","secret_key":"REDACTED"}`), "secret_key", false, "left out"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.read()
			var e *config.Error
			if !errors.As(err, &e) || !errors.Is(err, blob.ErrInvalidOption) || !got.Equal(config.Config{}) {
				t.Fatalf("%v, %v", got, err)
			}
			if e.Setting != c.setting || (e.Valid != nil) != c.listed || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hush") {
				t.Errorf("setting %q, %d valid names: %v", e.Setting, len(e.Valid), err)
			}
			if strings.Count(err.Error(), blob.ErrInvalidOption.Error()) != 1 {
				t.Errorf("the kind is not said once: %v", err)
			}
		})
	}
}

// Programs print their own structs. What is in an unexported field, package fmt reads without asking.
type hidden struct {
	c config.Config
	p *config.Config
}

type embedding struct{ config.Config }

func printed(values ...any) (text string) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range values {
			text += fmt.Sprintf(verb+"\n", v)
		}
	}
	return text
}

// A secret shows up in no text that is made of a Config, and no text that lacks it passes for the whole.
func TestSecretsAreNeverShown(t *testing.T) {
	for scheme, base := range bases {
		for _, name := range config.Secrets(scheme) {
			text, err := json.Marshal(map[string]string{"url": base, name: "hush-hush"})
			if err != nil {
				t.Fatal(err)
			}
			c, err := config.ParseJSON(text)
			if err != nil { // another secret belongs to it
				c, err = config.ParseJSON([]byte(fmt.Sprintf(`{"url":%q,"access_key":"hush-hush","secret_key":"hush-hush","session_token":"hush-hush"}`, base)))
			}
			if err != nil {
				t.Fatalf("%s %s: %v", scheme, name, err)
			}
			marshalled, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			marshalledYAML, err := yaml.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			slog.New(slog.NewTextHandler(&log, nil)).Info("opening", "config", c, "program", hidden{c, &c})
			for _, shown := range []string{
				c.String(), fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %q %x", c, c, c, c, c), fmt.Sprintf("%+v", struct{ C config.Config }{c}),
				printed(c, &c, hidden{c, &c}, &hidden{c, &c}, []any{struct{ x any }{c}}, embedding{c}, map[string]hidden{"": {c, &c}}),
				string(marshalled), string(marshalledYAML), log.String(), c.Get(name),
			} {
				if strings.Contains(shown, "hush") || strings.Contains(shown, fmt.Sprintf("%x", "hush")) {
					t.Errorf("%s %s: %s", scheme, name, shown)
				}
			}
			if got, err := config.Parse(c.String()); err == nil {
				t.Errorf("%s %s: read back as %v", scheme, name, got)
			}
			if !slices.Contains(config.Secrets(scheme), name) || strings.Contains(name, "_file") {
				t.Errorf("secrets of %s: %v", scheme, config.Secrets(scheme))
			}
		}
	}
}

// bases are the shortest URL of each scheme.
var bases = map[string]string{"mem": "mem://", "file": "file:///dir", "s3": "s3://bucket", "gs": "gs://bucket", "azblob": "azblob://container?account=acct"}

func TestEverySchemeIsTested(t *testing.T) {
	if got, want := config.Schemes(), slices.Sorted(maps.Keys(bases)); !slices.Equal(got, want) {
		t.Errorf("schemes %v, tested %v", got, want)
	}
	for _, base := range bases {
		parse(t, base)
	}
}

// What one URL sets is not seen by the next (google/go-cloud #2851), however many are read at once.
func TestConfigsAreIndependent(t *testing.T) {
	with := parse(t, "s3://a/p?endpoint=http://127.0.0.1:9000&region=r1&path_style=true")
	without := parse(t, "s3://a/p")
	if without.Get("endpoint") != "" || without.String() != "s3://a/p" {
		t.Errorf("%v", without)
	}
	changed, err := with.With(map[string]string{"region": "r2"})
	if err != nil || with.Get("region") != "r1" || changed.Get("region") != "r2" {
		t.Errorf("%v became %v, %v", with, changed, err)
	}
	var readers sync.WaitGroup
	for i := range 100 {
		readers.Go(func() {
			raw := fmt.Sprintf("s3://b%d?region=r%d", i, i)
			if c, err := config.Parse(raw); err != nil || c.String() != raw {
				t.Errorf("%s is read as %v, %v", raw, c, err)
			}
		})
	}
	readers.Wait()
}

// The URL of a Config keeps what needs escaping.
func TestPrefixesAndEscapes(t *testing.T) {
	for raw, want := range map[string]string{
		"s3://b/team":             "s3://b/team",
		"s3://b/team/":            "s3://b/team/",
		"s3://b/a%20b":            "s3://b/a%20b",
		"s3://b/a+b":              "s3://b/a+b",
		"s3://b/a%2Fb":            "s3://b/a%2Fb",
		"s3://b/p?region=a%26b":   "s3://b/p?region=a%26b",
		"s3://b?gap=0&region=a+b": "s3://b?gap=0&region=a+b",
	} {
		c := parse(t, raw)
		if c.String() != want || !parse(t, c.String()).Equal(c) {
			t.Errorf("%s is written as %s", raw, c)
		}
	}
}

func FuzzConfigRoundTrip(f *testing.F) {
	for _, raw := range []string{sample, "mem://", "file:///a%20dir?nosync=true", "s3://b?region=%C3%A9", "s3://b?secret_key_file=/x&access_key_file=%2Fy",
		cached, "mem://?cache=on", "mem://?cache=off&cache_dir=%2Fa%20b&cache_disk=1GB", "file:///d?cache_memory=off&cache_revalidate=always",
		"gs://b?cache_revalidate=1h0m0s&cache_block=4096&cache_memory=0", "mem://?cache_=&cache=1",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := config.Parse(raw)
		if err != nil {
			if !errors.Is(err, blob.ErrInvalidOption) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := config.Parse(c.String())
		if err != nil || !again.Equal(c) || again.String() != c.String() {
			t.Fatalf("%q became %v, then %v, %v", raw, c, again, err)
		}
	})
}
