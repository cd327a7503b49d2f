package realserver

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var seaweedFS = newKind(goProgram("seaweedfs", "github.com/seaweedfs/seaweedfs/weed"), setUpSeaweedFS)

// seaweedStop is short as the server often waits for its own parts when it is asked to end.
const seaweedStop = 2 * time.Second

// SeaweedFS returns the test process's shared SeaweedFS over a temporary folder, started by the first call: master,
// volume server, filer and S3 gateway in one process. The test is skipped where the server is not to be had, and
// fails instead with CI=true.
func SeaweedFS(t testing.TB) *S3 {
	t.Helper()
	return seaweedFS.forTest(t)
}

// OpenSeaweedFS starts a SeaweedFS for a program, building it when it is not in the cache. [Stop] ends it.
func OpenSeaweedFS(ctx context.Context) (*S3, error) { return seaweedFS.open(ctx, true) }

func setUpSeaweedFS(bin string) (*S3, launch) {
	s := newS3("master, volume server, filer and S3 gateway in one process")
	var ports seaweedPorts // chosen for each start
	return s, launch{
		command: func(dir, addr string) (*exec.Cmd, error) {
			free, err := freeAddrs(context.Background(), len(ports.flags()))
			if err != nil {
				return nil, err
			}
			ports = free
			return s.seaweedFSCommand(bin, dir, addr, ports)
		},
		ready:    func(ctx context.Context, _ string) error { return s.seaweedFSReady(ctx, ports[0]) },
		stopTime: seaweedStop,
		outside:  func() []string { return ports.sockets() },
	}
}

// seaweedFSReady also asks the master: writes fail until the volume server has joined it, which then has a place to assign.
func (s *S3) seaweedFSReady(ctx context.Context, master string) error {
	if err := s.knowsTheSecret(ctx); err != nil {
		return err
	}
	for _, url := range []string{s.Endpoint + "/healthz", "http://" + master + "/dir/assign"} {
		if err := getOK(ctx, url); err != nil {
			return err
		}
	}
	return nil
}

// seaweedPorts are the addresses that its parts listen on beside the one of S3: each part has one for HTTP and one for gRPC.
type seaweedPorts []string

// flags name the ports in their order. The first is the master's.
func (seaweedPorts) flags() []string {
	return []string{
		"master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port.grpc",
	}
}

// sockets are the Unix sockets through which its parts reach one another. Their folder is fixed, and a server that is killed leaves
// them there.
func (p seaweedPorts) sockets() []string {
	var paths []string
	for i, addr := range p {
		if part, ok := strings.CutSuffix(p.flags()[i], ".port.grpc"); ok {
			paths = append(paths, "/tmp/seaweedfs-"+part+"-grpc-"+port(addr)+".sock")
		}
	}
	return paths
}

// seaweedFSCommand is the command line. What has to be said: usage is reported to its makers unless told not to; the Unix sockets that can be
// moved go to the working directory, by relative names, as their paths have to be short; each bucket takes volumes of its own, so
// there are many small ones; the heap grows to most of a gigabyte without a limit, and with a
// quarter of one the collector takes half of the time.
func (s *S3) seaweedFSCommand(bin, dir, addr string, ports seaweedPorts) (*exec.Cmd, error) {
	config := filepath.Join(dir, "s3.json")
	if err := s.writeIdentity(config); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o750); err != nil {
		return nil, err
	}
	args := []string{
		"-logtostderr=true", "server", "-dir=" + data, "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
		"-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=2000", "-volume.preStopSeconds=0",
		"-filer", "-filer.localSocket=filer.sock",
		"-s3", "-s3.localSocket=s3.sock", "-s3.config=" + config,
		"-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
		"-s3.port=" + port(addr),
	}
	for i, flag := range ports.flags() {
		args = append(args, "-"+flag+"="+port(ports[i]))
	}
	cmd := exec.Command(bin, args...) //nolint:noctx // it lives until Stop, not as long as the call that starts it
	cmd.Dir = dir
	// It reads configuration from its working directory, from HOME and from the environment: what the user has must not decide.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GOMEMLIMIT=512MiB"}
	return cmd, nil
}

// writeIdentity writes the file that names the one user, who may do everything.
func (s *S3) writeIdentity(path string) error {
	type keys struct {
		AccessKey string `json:"accessKey"`
		SecretKey string `json:"secretKey"`
	}
	type identity struct {
		Name        string   `json:"name"`
		Actions     []string `json:"actions"`
		Credentials []keys   `json:"credentials"`
	}
	text, err := json.Marshal(map[string][]identity{"identities": {{
		Name:        "test",
		Actions:     []string{"Admin", "Read", "List", "Tagging", "Write"},
		Credentials: []keys{{s.AccessKey, s.SecretKey}},
	}}})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// port returns the port of host:port.
func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}
