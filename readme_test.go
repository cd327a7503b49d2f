package wholeblob_test

import (
	"os"
	"strings"
	"testing"
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
