// Package wholeblob_test holds the architecture to its word: imports point down only.
package wholeblob_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/wholeblob/wholeblob"

// Families of packages outside the standard library.
var (
	aws    = []string{"github.com/aws/"}
	azure  = []string{"github.com/Azure"} // and AzureAD
	google = []string{"cloud.google.com/", "google.golang.org/", "github.com/googleapis/"}
	sdks   = slices.Concat(aws, azure, google)
	arrow  = []string{"github.com/apache/arrow"}
	every  = []string{""} // whatever is not in the standard library
)

// Families of this module's packages. Package testing is in the second since the fakes stand beside what tests import.
var (
	stores = []string{"memblob", "fileblob", "s3blob", "gcsblob", "azblob"}
	fakes  = []string{"internal/fakehttp", "internal/fakes3", "internal/fakegcs", "internal/fakeaz", "internal/faultsweep", "internal/realserver", "blob/blobtest", "testing"}
)

// rules say what a package must never link, not even through others. Paths without a dot in their first element
// are this module's.
var rules = []struct {
	pkg       string
	forbidden []string
	but       []string
	reason    string
}{
	{"blob", every, nil, "the contract is linked by everyone: standard library only"},
	{"internal/gate", every, []string{"blob"}, "a counter of calls needs the errors of the contract and nothing else"},
	{"internal/param", every, []string{"blob"}, "parsing what people write needs no store"},
	{"retry", every, []string{"blob", "internal/gate", "github.com/cenkalti/backoff/v4"}, "the one loop knows errors, not stores"},
	{"memblob", every, []string{"blob", "internal/gate"}, "what databases unit-test against must be small"},
	{"fileblob", every, []string{"blob", "internal/gate", "golang.org/x/sys/unix", "golang.org/x/sys/windows"}, "files need no cloud"},
	{"internal/transfer", slices.Concat(sdks, arrow), nil, "the engine is proved without a service"},
	{"internal/transfer", slices.Concat(stores, fakes, []string{"internal/wire", "config", "cmd"}), nil, "imports point down"},
	{"internal/wire", slices.Concat(sdks, arrow), nil, "what is between an SDK and the network knows no SDK"},
	{"internal/wire", slices.Concat(stores, fakes, []string{"internal/param", "config", "cmd"}), nil, "imports point down"},
	{"blob/blobtest", slices.Concat(sdks, arrow, stores, []string{"retry", "config", "internal"}), nil, "a stranger's store is tested without ours"},
	{"s3blob", slices.Concat(azure, google, arrow, others("s3blob"), fakes, []string{"config"}), nil, "a store links its own SDK and never another store"},
	{"gcsblob", slices.Concat(aws, azure, arrow, others("gcsblob"), fakes, []string{"config"}), nil, "a store links its own SDK and never another store"},
	{"azblob", slices.Concat(aws, google, others("azblob"), fakes, []string{"config"}), nil, "a store links its own SDK, Azure's with Arrow, and never another store"},
	{"internal/diskcache", every, []string{"blob", "golang.org/x/sys/unix"}, "files on a local disk need no store and no cache in front"},
	{"cache", slices.Concat(sdks, arrow, stores, fakes, []string{"retry", "config", "internal/transfer", "internal/wire", "testing"}), nil, "a decorator knows no store"},
	{"config", slices.Concat(fakes, []string{"cmd"}), nil, "what every program embeds has no test support in it"},
	{"internal/fakehttp", every, nil, "what all fakes share knows no store and no SDK"},
	{"internal/fakehttp", []string{"testing"}, nil, "a fake can serve a demo"},
	{"internal/faultsweep", slices.Concat(sdks, arrow, stores, []string{"config", "internal/transfer", "internal/fakes3", "internal/fakegcs", "internal/fakeaz"}), nil, "what sweeps every store knows none"},
	{"internal/fakes3", sharesNothing(), nil, "a fake that shares code with what it checks proves nothing"},
	{"internal/fakegcs", sharesNothing("internal/fakes3", "internal/fakeaz"), nil, "a fake that shares code with what it checks proves nothing"},
	{"internal/fakeaz", sharesNothing("internal/fakes3", "internal/fakegcs"), nil, "a fake that shares code with what it checks proves nothing"},
	{"cmd/wholeblob", []string{"testing", "internal/realserver"}, nil, "test support stays out of the command"},
}

// others are the stores but one.
func others(store string) []string {
	return slices.DeleteFunc(slices.Clone(stores), func(s string) bool { return s == store })
}

// sharesNothing is what no fake links, with more. Package testing is not there either: a fake can serve a demo.
func sharesNothing(more ...string) []string {
	return slices.Concat(sdks, arrow, stores, []string{"blob", "retry", "config", "internal/transfer", "internal/param", "internal/gate", "testing"}, more)
}

func TestImportsPointDown(t *testing.T) {
	for _, r := range rules {
		for _, f := range r.forbidden { // a name that nothing has forbids nothing
			if _, err := os.Stat(f); f != "" && f != "testing" && !strings.Contains(f, ".") && err != nil {
				t.Errorf("%s may not link %s, which is no package: %v", r.pkg, f, err)
			}
		}
		deps := list(t, "-deps", "./"+r.pkg)
		if len(deps) == 0 {
			t.Fatalf("%s: go list shows nothing", r.pkg)
		}
		for _, d := range deps {
			name, ours := strings.CutPrefix(d.ImportPath, module+"/")
			if name == r.pkg || slices.Contains(r.but, name) || d.Standard && !slices.Contains(r.forbidden, name) {
				continue
			}
			for _, f := range r.forbidden {
				if f == "" || ours && (name == f || strings.HasPrefix(name, f+"/")) || !ours && strings.HasPrefix(name, f) {
					t.Errorf("%s links %s: %s", r.pkg, name, r.reason)
				}
			}
		}
	}
}

// Only test support imports package testing, and only commands and package-level defaults of the SDK read flags and the environment.
func TestLibraryPackagesReadNoFlagsOrEnvironment(t *testing.T) {
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		support := name == "blob/blobtest" || name == "internal/faultsweep" || name == "internal/diskcache/tiertest" || strings.HasPrefix(name, "internal/realserver")
		command := strings.HasPrefix(name, "cmd/") || strings.HasSuffix(name, "/with")
		if slices.Contains(p.Imports, "testing") && !support {
			t.Errorf("%s imports testing", name)
		}
		if slices.Contains(p.Imports, "flag") && !command {
			t.Errorf("%s imports flag", name)
		}
		if support || command {
			continue
		}
		for _, file := range p.GoFiles {
			src, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{"os.Getenv(", "os.LookupEnv(", "os.Environ("} {
				if bytes.Contains(src, []byte(call)) {
					t.Errorf("%s/%s calls %s): configuration is read by commands", name, file, call)
				}
			}
		}
	}
}

// No Go file is longer than 500 lines.
func TestFilesStayShort(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := bytes.Count(src, []byte("\n")); n > 500 {
			t.Errorf("%s has %d lines, at most 500", path, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

type pkg struct {
	ImportPath, Dir  string
	Standard         bool
	Imports, GoFiles []string
}

// list runs go list, whose answer holds no test files.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Dir,Standard,Imports,GoFiles"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
