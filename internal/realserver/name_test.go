package realserver

import (
	"strings"
	"testing"
)

func TestBucketNamesAreValid(t *testing.T) {
	for _, hint := range []string{"", "-", "TestX/sub_test,ü//x", strings.Repeat("long/", 50)} {
		name := bucketName(hint)
		trimmed := strings.Trim(name, "-")
		odd := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-")
		if len(name) < 3 || len(name) > 63 || trimmed != name || odd != "" || strings.Contains(name, "--") {
			t.Errorf("hint %q gave bucket %q", hint, name)
		}
	}
}
