package fakegcs_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/internal/realserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(realserver.StopAfter(m)) }
