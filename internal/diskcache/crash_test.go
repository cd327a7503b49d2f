//go:build linux || darwin

package diskcache

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

const (
	crashChildVar = "CACHE_DISK_TEST_CHILD" // directory and seed: makes the test below the child
	crashKeys     = 8
	crashSize     = 30_000
)

// crashData is what the version n of a key holds; so a reader can tell which versions are right.
func crashData(key string, n int) []byte {
	b := make([]byte, crashSize+n%5000)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i*7) ^ byte(n) ^ byte(n>>8) ^ key[0]
	}
	return b
}

// TestDiskCrashChild is the process that is killed. It tells on standard output what is certain: "drop KEY VERSION" once no version up to that
// one may be found again.
func TestDiskCrashChild(t *testing.T) {
	dir, start, ok := strings.Cut(os.Getenv(crashChildVar), "\n")
	if !ok {
		t.Skip("only as the child of TestDiskSurvivesKill")
	}
	n, err := strconv.Atoi(start)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir, Options{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	for {
		n++
		key := string(rune('a' + n%crashKeys))
		data := crashData(key, n)
		info := testInfo(key, strconv.Itoa(n), len(data))
		d.Drop(key)
		if _, err := fmt.Fprintf(out, "drop %s %d\n", key, n-1); err != nil {
			t.Fatal(err)
		}
		d.Put(info, 0, data[:8192])
		d.Put(info, 8192, data[8192:])
		if n%3 == 0 {
			tiertest.WaitFor(t, "the queue", func() bool { return d.queue.size() == 0 })
		}
	}
}

// kill -9 at any moment: after the restart each hit is right and nothing that was dropped is found.
func TestDiskSurvivesKill(t *testing.T) {
	if bootID() == "" {
		t.Skip("without the name of the kernel's run no entry survives a kill")
	}
	dir := t.TempDir()
	rounds, hits, last := 12, 0, 0
	dropped := map[string]int{}
	for round := range rounds {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskCrashChild$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%d", crashChildVar, dir, last))
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		for i := 0; i < 20+37*round && lines.Scan(); i++ { // killed at another line each time
			readCrashLine(t, lines.Text(), dropped, &last)
		}
		_ = cmd.Process.Kill()
		for lines.Scan() { // what it had written before
			readCrashLine(t, lines.Text(), dropped, &last)
		}
		_, _ = io.Copy(io.Discard, pipe)
		_ = cmd.Wait()
		last += crashKeys // versions are not used twice
		hits += checkCrash(t, dir, dropped)
	}
	if hits == 0 {
		t.Error("no entry survived any kill: this test shows nothing")
	}
}

func readCrashLine(t *testing.T, line string, dropped map[string]int, last *int) {
	var key string
	var n int
	if _, err := fmt.Sscanf(line, "drop %s %d", &key, &n); err != nil {
		return // the line that the kill cut
	}
	if n < dropped[key] {
		t.Errorf("the child went back: %s", line)
	}
	dropped[key], *last = n, max(*last, n+1)
}

func checkCrash(t *testing.T, dir string, dropped map[string]int) (hits int) {
	t.Helper()
	d, err := Open(dir, Options{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range crashKeys {
		key := string(rune('a' + i))
		info, ok := d.Lookup(key)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(info.Version)
		if err != nil || n <= dropped[key] {
			t.Errorf("key %s: found version %q, dropped up to %d", key, info.Version, dropped[key])
		}
		want := crashData(key, n)
		for off := 0; off < len(want); off += 4096 {
			dst := make([]byte, min(4096, len(want)-off))
			if !d.Read(key, info.Version, int64(off), dst) {
				continue
			}
			hits++
			if !bytes.Equal(dst, want[off:off+len(dst)]) {
				t.Errorf("key %s version %d at %d: other bytes", key, n, off)
			}
		}
	}
	tiertest.WaitFor(t, "the index", func() bool { return d.Stats().Indexed })
	if s := d.Stats(); s.Damaged != 0 || s.Resets != 0 {
		t.Errorf("a kill damages nothing: %+v", s)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return hits
}

// The names that a killed process removed are gone for the kernel and perhaps not on the disk. Who records an orderly end after it makes them durable first,
// in whatever shards they were, indexed or not; after an orderly end there is nothing to be made durable.
func TestDiskCloseMakesDurableWhatAKilledProcessRemoved(t *testing.T) {
	dir, killed, another := t.TempDir(), t.TempDir(), t.TempDir()
	boot := func() string { return "A" }
	d := testTier(t, dir, Options{boot: boot})
	data := tiertest.Bytes(1, 10_000)
	mustPut(t, d, testInfo("k", "v", len(data)), 0, data)
	d.Drop("k")
	for _, to := range []string{killed, another} {
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	closeTier(t, d)
	shard := fmt.Sprintf("%02x", hashKey("k")[0])
	for _, c := range []struct {
		dir, name     string
		indexed, sync bool
	}{
		{killed, "killed, not indexed", false, true}, {another, "killed", true, true},
		{killed, "killed and closed", true, false}, {another, "killed and closed", true, false}, {dir, "closed", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			synced, refused := false, false
			d := testTier(t, c.dir, Options{boot: boot, Fault: func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				synced = synced || op == "fsync directory" && filepath.Base(name) == shard
				if op == "opendir" && name == shard && !c.indexed && !refused {
					refused = true // to the index, which waits until it has an end; the close asks next
					return syscall.EMFILE
				}
				return nil
			}})
			tiertest.WaitFor(t, "the index", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return refused || d.Stats().Indexed
			})
			closeTier(t, d)
			if synced != c.sync {
				t.Errorf("synced: %v, want %v", synced, c.sync)
			}
		})
	}
}
