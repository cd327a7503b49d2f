// Command with runs a command beside a real object-store server that it starts
// on loopback for it, and ends with the command's exit code:
//
//	go run ./internal/realserver/with versitygw -- sh -c 'echo "$WHOLEBLOB_TEST_URL"'
//
// The command's environment has what the AWS SDK needs to reach the server,
// and WHOLEBLOB_TEST_ENDPOINT, WHOLEBLOB_TEST_BUCKET (a new bucket) and
// WHOLEBLOB_TEST_URL (that bucket as the URL of a store).
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/wholeblob/wholeblob/internal/realserver"
)

// servers starts each server by its name and returns the environment of the
// command.
var servers = map[string]func(context.Context) (env []string, err error){
	"seaweedfs": func(ctx context.Context) ([]string, error) {
		return s3Env(ctx, realserver.OpenSeaweedFS)
	},
	"versitygw": func(ctx context.Context) ([]string, error) {
		return s3Env(ctx, realserver.OpenVersityGW)
	},
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) (code int) {
	if len(args) < 3 || args[1] != "--" || servers[args[0]] == nil {
		fmt.Fprintf(os.Stderr, "usage: with SERVER -- COMMAND [ARGUMENT...]\nservers: %s\n",
			strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	defer func() {
		if err := realserver.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "with:", err)
			code = max(code, 1)
		}
	}()
	env, err := servers[args[0]](ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		return 1
	}
	return runCommand(ctx, args[2:], env)
}

// runCommand returns the exit code of the command.
func runCommand(ctx context.Context, args, env []string) int {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "with:", err)
		return 1
	}
}

func s3Env(ctx context.Context, open func(context.Context) (*realserver.S3, error)) ([]string, error) {
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "with:", s)
	bucket, err := s.CreateBucket(ctx, "with")
	if err != nil {
		return nil, err
	}
	store := url.URL{Scheme: "s3", Host: bucket, Path: "/prefix", RawQuery: url.Values{
		"endpoint":   {s.Endpoint},
		"region":     {s.Region},
		"path_style": {fmt.Sprint(s.PathStyle)},
	}.Encode()}
	return append(s.Env(),
		"WHOLEBLOB_TEST_ENDPOINT="+s.Endpoint,
		"WHOLEBLOB_TEST_BUCKET="+bucket,
		"WHOLEBLOB_TEST_URL="+store.String(),
	), nil
}
