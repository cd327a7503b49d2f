package realserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"testing"

	"go.uber.org/goleak"
)

// roleVar makes the test binary, run by one of its own tests, play a part
// instead of running tests.
const roleVar = "WHOLEBLOB_REALSERVER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		goleak.VerifyTestMain(StopAfter(m))
	case "fail": // a server that cannot start
		fmt.Println("cannot listen on", os.Getenv("ADDR"))
		os.Exit(7)
	case "hang": // a server that never answers
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		<-interrupted
	case "own": // a test process that starts a server and waits to be killed
		s, err := servers[os.Getenv("SERVER")].open(context.Background())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.proc.cmd.Process.Pid)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}
