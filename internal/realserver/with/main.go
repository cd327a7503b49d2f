// Command with runs a command beside a real object-store server that it starts
// on loopback for it, and ends with the command's exit code:
//
//	go run ./internal/realserver/with versitygw -- sh -c 'echo "$WHOLEBLOB_TEST_URL"'
//
// The command's environment has what the vendor's own tools and SDK need to
// reach the server, and WHOLEBLOB_TEST_ENDPOINT, WHOLEBLOB_TEST_BUCKET (a new
// bucket or container) and WHOLEBLOB_TEST_URL (that bucket as the URL of a
// store). Of Azure the account's key is in WHOLEBLOB_ACCOUNT_KEY, where the
// command wholeblob looks for it.
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
	"azurite":       azureEnv,
	"fakegcsserver": gcsEnv,
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
	return append(s.Env(), testEnv("s3", bucket, url.Values{
		"endpoint":   {s.Endpoint},
		"region":     {s.Region},
		"path_style": {fmt.Sprint(s.PathStyle)},
	})...), nil
}

func gcsEnv(ctx context.Context) ([]string, error) {
	s, err := realserver.OpenFakeGCS(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "with:", s)
	bucket, err := s.CreateBucket(ctx, "with")
	if err != nil {
		return nil, err
	}
	return append(s.Env(), testEnv("gs", bucket, url.Values{"endpoint": {s.Endpoint}})...), nil
}

func azureEnv(ctx context.Context) ([]string, error) {
	s, err := realserver.OpenAzurite(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "with:", s)
	container, err := s.CreateContainer(ctx, "with")
	if err != nil {
		return nil, err
	}
	env := append(s.Env(), testEnv("azblob", container, url.Values{"account": {s.Account}, "endpoint": {s.Endpoint}})...)
	return append(env, "WHOLEBLOB_ACCOUNT_KEY="+s.Key), nil
}

// testEnv describes a place on a server to the command.
func testEnv(scheme, bucket string, params url.Values) []string {
	store := url.URL{Scheme: scheme, Host: bucket, Path: "/prefix", RawQuery: params.Encode()}
	return []string{
		"WHOLEBLOB_TEST_ENDPOINT=" + params.Get("endpoint"),
		"WHOLEBLOB_TEST_BUCKET=" + bucket,
		"WHOLEBLOB_TEST_URL=" + store.String(),
	}
}
