package realserver

import (
	"context"
	"debug/buildinfo"
	"runtime"
)

// goProgram is a program of the main package pkg, pinned by a nested module
// whose tool directive names it.
func goProgram(name, pkg string) program {
	return program{
		name:  name,
		suits: runtime.Version(),
		pins:  []string{"go.mod", "go.sum"},
		needs: "some minutes and the Go module proxy",
		// It is built for this machine, whatever the flags and the target of the tests that want it.
		make: func(ctx context.Context, from, out string) error {
			env := []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
			return making(ctx, env, "go", "build", "-C", from, "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
		},
		version: func(path string) (string, error) {
			info, err := buildinfo.ReadFile(path)
			if err != nil {
				return "", err
			}
			return info.Main.Version, nil
		},
	}
}
