package realserver

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
)

// npmProgram is a package of the npm registry, pinned with all that it depends
// on by the hashes of a package-lock.json. What is made is a folder with its
// node_modules. No script of a package runs while it is made.
func npmProgram(name, pkg string) program {
	pins := []string{"package.json", "package-lock.json"}
	return program{
		name:  name,
		pins:  pins,
		needs: "half a minute, node, npm and the npm registry",
		runs: func() error {
			_, err := exec.LookPath("node")
			return err
		},
		make: func(ctx context.Context, from, out string) error {
			if err := os.Mkdir(out, 0o750); err != nil {
				return err
			}
			for _, pin := range pins {
				content, err := os.ReadFile(filepath.Join(from, pin))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(out, pin), content, 0o600); err != nil {
					return err
				}
			}
			return making(ctx, nil, "npm", "ci", "--prefix", out, "--omit=dev", "--ignore-scripts", "--engine-strict=false",
				"--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
		},
		version: func(path string) (string, error) {
			content, err := os.ReadFile(filepath.Join(path, "node_modules", pkg, "package.json"))
			if err != nil {
				return "", err
			}
			var manifest struct{ Version string }
			err = json.Unmarshal(content, &manifest)
			return manifest.Version, err
		},
	}
}
