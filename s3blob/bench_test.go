package s3blob_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// allocated returns the bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// A Get allocates its payload once, and not at all with Dst. The server's share, which is in this process too and
// copies nothing, is in the figure.
func TestGetAllocatesItsPayloadOnce(t *testing.T) {
	const size = 64 << 20
	srv := fake(t, fakes3.Options{FastETag: true, NoLog: true})
	srv.PutObject("b", "k", inParts(make([]byte, size), 8<<20), nil)
	st := open(t, srv, nil)
	dst := make([]byte, size)
	mustGet(t, st, "k", &blob.GetOptions{Dst: dst}) // connections and their buffers
	if got := allocated(func() { mustGet(t, st, "k", nil) }); got > size*105/100 {
		t.Errorf("a Get of %d bytes allocated %d: %.3f times as many", size, got, float64(got)/size)
	}
	if got := allocated(func() { mustGet(t, st, "k", &blob.GetOptions{Dst: dst}) }); got > size*5/100 {
		t.Errorf("a Get of %d bytes into Dst allocated %d", size, got)
	}
}

// A Set of a file of 1 GiB holds none of it: its peak resident set stays within 64 MiB of the idle one. The server is a process of its own.
func TestSetOfALargeFileStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 1 GiB")
	}
	got := setLargeFile(t, 1<<30)
	t.Logf("peak resident set: %d MiB over idle", got>>20)
	if !raceEnabled && got > 64<<20 {
		t.Errorf("peak resident set is %d MiB over idle, want at most 64", got>>20)
	}
}

// setLargeFile sets a sparse file of size bytes on a server in another process and returns by how many bytes the
// peak resident set of this one rose.
func setLargeFile(t testing.TB, size int64) int64 {
	url := serveElsewhere(t)
	c := fakes3.DefaultCredentials()
	st, err := s3blob.New(t.Context(), "b", &s3blob.Options{
		Endpoint: url, PathStyle: true, AccessKey: c.AccessKey, SecretKey: c.SecretKey, UnsignedPayload: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	f, err := os.Create(filepath.Join(t.TempDir(), "large"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	resetPeak(t)
	idle := peak(t)
	info, err := st.Set(t.Context(), "k", blob.ReaderAt(f, size), nil)
	if err != nil || info.Size != size {
		t.Fatalf("Set: %+v, %v", info, err)
	}
	return peak(t) - idle
}

// resetPeak sets the peak resident set to the present one (proc(5), /proc/pid/clear_refs).
func resetPeak(t testing.TB) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skipf("no peak resident set to be had here: %v", err)
	}
}

func peak(t testing.TB) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM in /proc/self/status")
	return 0
}

const serverRole = "S3BLOB_TEST_SERVER"

// serveElsewhere starts a fake server in a process of its own, which ends with its standard input.
func serveElsewhere(t testing.TB) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), serverRole+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// serve is the other process.
func serve() {
	srv, err := fakes3.Start(fakes3.Options{Buckets: []string{"b"}, FastETag: true, NoLog: true})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	fmt.Println(srv.URL())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		for _, into := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dKiB/dst=%t", size>>10, into), func(b *testing.B) {
				srv := fake(b, fakes3.Options{FastETag: true, NoLog: true})
				srv.PutObject("b", "k", inParts(make([]byte, size), 8<<20), nil)
				st := open(b, srv, nil)
				var o blob.GetOptions
				if into {
					o.Dst = make([]byte, size)
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := st.Get(b.Context(), "k", &o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkSet(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			st := open(b, fake(b, fakes3.Options{FastETag: true, NoLog: true}), func(o *s3blob.Options) { o.UnsignedPayload = true })
			data := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := st.Set(b.Context(), "k", blob.Bytes(data), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSetOfALargeFile reports by how much the peak resident set rises over idle while 1 GiB is sent.
func BenchmarkSetOfALargeFile(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(setLargeFile(b, 1<<30))/(1<<20), "MiB-over-idle")
	}
}
