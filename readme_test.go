package wholeblob_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/wholeblob/wholeblob/config"
)

// The example of the README is a part of an example that is compiled and run.
func TestReadmeExampleIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("blob/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	code, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 || len(code) < 100 || !strings.Contains(string(example), code) {
		t.Errorf("the README's example is not in blob/example_test.go:\n%s", code)
	}
}

// The README's configuration is read as it stands, and its table names each setting of the cache.
func TestReadmeConfigurationIsRead(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```yaml\n")
	text, rest, _ := strings.Cut(rest, "```")
	var program struct{ Blob config.Config }
	if err := yaml.Unmarshal([]byte(text), &program); err != nil || program.Blob.Cache() == nil {
		t.Errorf("%v:\n%s", err, text)
	}
	var unknown *config.Error
	if _, err := config.Parse("mem://?no-such-setting=x"); !errors.As(err, &unknown) || unknown.Valid == nil {
		t.Fatal(err)
	}
	for _, name := range unknown.Valid {
		if strings.HasPrefix(name, "cache") && !strings.Contains(rest, "`"+name+"`") {
			t.Errorf("no word of %s", name)
		}
	}
}
