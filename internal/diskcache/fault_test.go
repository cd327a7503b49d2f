//go:build linux || darwin

package diskcache

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// scenario is the life of a tier, with whatever faults its file system has: each hit must be right, what was dropped must not be found.
func scenario(t *testing.T, dir string, fault func(op, name string) error) {
	t.Helper()
	for round := range 2 {
		d, err := Open(dir, Options{Size: 1 << 20, Fault: fault})
		if err != nil {
			if !isDiskFault(err) {
				return // an operator's mistake, as far as anyone can tell
			}
			t.Fatalf("open: %v", err)
		}
		for i := range 6 {
			key := fmt.Sprint("k", i%3)
			data := tiertest.Bytes(uint64(10*round+i), 70_000)
			info := testInfo(key, fmt.Sprint(round, i), len(data))
			d.Drop(key)
			if _, ok := d.Lookup(key); ok {
				t.Errorf("%s found after drop", key)
			}
			d.Put(info, 0, data[:65536])
			d.Put(info, 65536, data[65536:])
			settle(t, d)
			dst := make([]byte, len(data))
			if d.Read(key, info.Version, 0, dst) && !bytes.Equal(dst, data) {
				t.Errorf("other bytes")
			}
		}
		d.Drop("k0")
		_ = d.Close(context.Background())
	}
	d, err := Open(dir, Options{Size: 1 << 20})
	if err != nil {
		t.Fatalf("the disk is well, the tier is not: %v", err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	if _, ok := d.Lookup("k0"); ok {
		t.Error("k0 was dropped and is back after a restart")
	}
	for i := range 2 {
		key, data := fmt.Sprint("k", i+1), tiertest.Bytes(uint64(10+4+i), 70_000)
		if info, ok := d.Lookup(key); ok {
			dst := make([]byte, len(data))
			if info.Version != fmt.Sprint(1, 4+i) {
				t.Errorf("%s has version %s", key, info.Version)
			} else if d.Read(key, info.Version, 0, dst) && !bytes.Equal(dst, data) {
				t.Errorf("other bytes")
			}
		}
	}
}

// Every operation on the file system fails once, in its turn, until a whole life passes without a fault.
func TestDiskSurvivesAFaultOfEachOperation(t *testing.T) {
	for op, errnos := range map[string][]syscall.Errno{
		"create": {syscall.ENOSPC, syscall.ENOENT}, "write": {syscall.ENOSPC, syscall.EIO}, "close": {syscall.EDQUOT}, "fsync": {syscall.EIO},
		"rename": {syscall.EIO, syscall.EROFS}, "remove": {syscall.EIO, syscall.EROFS}, "fsync directory": {syscall.EIO},
		"lock": {syscall.EIO}, "open": {syscall.EIO, syscall.EMFILE}, "read": {syscall.EIO}, "pread": {syscall.EIO},
		"mkdir": {syscall.ENOSPC}, "opendir": {syscall.EIO, syscall.EMFILE}, "readdir": {syscall.EIO}, "lstat": {syscall.EIO},
	} {
		for _, e := range errnos {
			t.Run(fmt.Sprint(op, "/", e), func(t *testing.T) {
				for i := int64(0); ; i++ {
					var calls atomic.Int64
					scenario(t, t.TempDir(), func(o, _ string) error {
						if o == op && calls.Add(1) == i+1 {
							return e
						}
						return nil
					})
					if t.Failed() {
						t.Fatalf("after a fault of call %d", i)
					}
					if calls.Load() <= i {
						return
					}
					i += i / 3 // later ones are more of the same
					if i > 2 { // each of the 256 shards is opened; in which of them it fails makes no difference
						switch op {
						case "mkdir", "opendir", "readdir":
							i += 70
						}
					}
				}
			})
		}
	}
}

// brokenTier fails operations while it is told to.
type brokenTier struct {
	errno atomic.Int64
	reads atomic.Bool // reads fail too
}

func (b *brokenTier) fault(op, _ string) error {
	e := syscall.Errno(b.errno.Load())
	if e == 0 {
		return nil
	}
	switch op {
	case "open", "pread", "read", "readdir", "lstat", "opendir":
		if !b.reads.Load() {
			return nil
		}
	}
	return e
}

// The tier turns itself off, says so once, still answers reads, and is back by itself.
func TestDiskTurnsItselfOffAndOnAgain(t *testing.T) {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.EDQUOT} {
		t.Run(e.Error(), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				broken := &brokenTier{}
				d, err := Open(dir, Options{Size: 8 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil)), Fault: broken.fault})
				if err != nil {
					t.Fatal(err)
				}
				data := tiertest.Bytes(1, 50_000)
				kept := testInfo("kept", "v", len(data))
				d.Put(kept, 0, data)
				synctest.Wait()
				broken.errno.Store(int64(e))
				for i := range 20 {
					d.Put(testInfo(fmt.Sprint(i), "v", len(data)), 0, data)
					synctest.Wait()
				}
				wantHit(t, d, kept, 0, data)
				if s := d.Stats(); !s.Off || s.TimesOff != 1 || s.SkippedFills != 20 || s.Fills != 1 || s.Faults == 0 {
					t.Errorf("%+v", s)
				}
				if n := strings.Count(log.String(), "level=WARN"); n != 1 {
					t.Errorf("%d lines:\n%s", n, log.String())
				}
				probes := d.Stats().Faults
				<-time.After(time.Hour)
				synctest.Wait()
				if n := d.Stats().Faults - probes; n < 12 || n > 30 { // 1 s, 2 s, 4 s ... 5 min
					t.Errorf("%d probes in an hour", n)
				}
				broken.errno.Store(0)
				<-time.After(lastProbe)
				synctest.Wait()
				if s := d.Stats(); s.Off {
					t.Errorf("off on a disk that is well: %+v", s)
				}
				again := testInfo("again", "v", len(data))
				d.Put(again, 0, data)
				synctest.Wait()
				wantHit(t, d, again, 0, data)
				wantHit(t, d, kept, 0, data)
				closeTier(t, d)
			})
		})
	}
}

// refusals are what a disk, a policy or a mount option may say to a change of a directory.
var refusals = []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.ENOSPC, syscall.EACCES, syscall.EPERM}

// refusing opens a tier in dir whose file system refuses op, or everything, with errno while on is set.
func refusing(t *testing.T, dir, op string, errno syscall.Errno) (d *Tier, on *atomic.Bool) {
	t.Helper()
	on = new(atomic.Bool)
	d, err := Open(dir, Options{Size: 8 << 20, Fault: func(o, _ string) error {
		if on.Load() && (o == op || op == "everything") {
			return errno
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return d, on
}

// A name that cannot be removed must not be found again, now or after a restart: all entries go instead, before drop returns, and on record unless that is
// refused too. Nothing is written then until a probe has found the disk well: it would refuse to remove that too, and again all would go.
func TestDiskDropThatIsRefusedGivesUpAllEntries(t *testing.T) {
	data := tiertest.Bytes(1, 50_000)
	one, two := testInfo("one", "v", len(data)), testInfo("two", "v", len(data))
	for _, op := range []string{"remove", "everything"} {
		for _, errno := range refusals {
			t.Run(fmt.Sprint(op, "/", errno), func(t *testing.T) {
				dir, killed := t.TempDir(), t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					d, on := refusing(t, dir, op, errno)
					d.Put(one, 0, data)
					d.Put(two, 0, data)
					synctest.Wait()
					on.Store(true)
					d.Drop("one")
					if err := os.CopyFS(killed, os.DirFS(dir)); err != nil { // what a process that was killed now would leave
						t.Fatal(err)
					}
					wantMiss(t, d, one, 0, 1)
					wantMiss(t, d, two, 0, 1)
					<-time.After(time.Minute) // for probes to fail
					for range 3 {
						if d.Put(two, 0, data) {
							t.Error("taken")
						}
						d.Drop("two")
					}
					if s := d.Stats(); s.Resets != 1 || !s.Off || s.TimesOff != 1 || s.Entries != 0 || s.Fills != 2 {
						t.Errorf("%+v", s)
					}
					on.Store(false)
					<-time.After(lastProbe)
					synctest.Wait()
					d.Put(two, 0, data)
					synctest.Wait()
					wantHit(t, d, two, 0, data)
					closeTier(t, d)
				})
				d := testTier(t, dir, Options{})
				if _, ok := d.Lookup("one"); ok {
					t.Error("back after a restart")
				}
				wantHit(t, d, two, 0, data)
				if op == "remove" {
					wantMiss(t, testTier(t, killed, Options{}), one, 0, 1)
				}
			})
		}
	}
}

// A damaged entry that nobody had the time to remove is removed by the close. If that is refused, too, all entries go, and the close ends.
func TestDiskCloseThatMayNotRemoveADamagedEntry(t *testing.T) {
	for _, errno := range refusals {
		t.Run(errno.Error(), func(t *testing.T) {
			dir := t.TempDir()
			d, on := refusing(t, dir, "remove", errno)
			data := tiertest.Bytes(1, 50_000)
			info := testInfo("k", "v", len(data))
			mustPut(t, d, info, 0, data)
			on.Store(true)
			g, hash := d.gen.Load(), hashKey("k")
			r, _ := g.shard(hash).any(hash)
			g.shard(hash).condemn(r) // as a reader does, but for the poke
			d.condemned.runs = append(d.condemned.runs, condemnedRun{g, r})
			closeTier(t, d)
			if s := d.Stats(); s.Resets != 1 {
				t.Errorf("%+v", s)
			}
			d = testTier(t, dir, Options{})
			if _, ok := d.Lookup("k"); ok {
				t.Error("still found")
			}
		})
	}
}

// Someone removes the directory, or what is in it, under a running tier.
func TestDiskDirectoryRemovedUnderARunningTier(t *testing.T) {
	for _, what := range []string{"all", "generation", "shards"} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			d := testTier(t, dir, Options{})
			data := tiertest.Bytes(1, 50_000)
			info := testInfo("k", "v", len(data))
			mustPut(t, d, info, 0, data)
			path := map[string]string{"all": dir, "generation": filepath.Dir(filepath.Dir(entryFiles(t, dir)[0])), "shards": filepath.Dir(entryFiles(t, dir)[0])}[what]
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			wantMiss(t, d, info, 0, 1)
			settle(t, d)
			d.Put(info, 0, data) // lost: it finds out
			settle(t, d)
			mustPut(t, d, info, 0, data)
			wantHit(t, d, info, 0, data)
			if s := d.Stats(); s.Resets != 1 || s.Off {
				t.Errorf("%+v", s)
			}
			closeTier(t, d)
			wantHit(t, testTier(t, dir, Options{}), info, 0, data)
		})
	}
}

// Someone has put a file where a directory of the tier is to be.
func TestDiskDirectoryTakenByAFile(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(1, 50_000)
	info := testInfo("k", "v", len(data))
	if err := os.WriteFile(filepath.Join(dir, d.gen.Load().name, fmt.Sprintf("%02x", hashKey("k")[0])), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.Put(info, 0, data) // lost: it finds out
	settle(t, d)
	mustPut(t, d, info, 0, data)
	wantHit(t, d, info, 0, data)
	if s := d.Stats(); s.Resets != 1 || s.Off {
		t.Errorf("%+v", s)
	}
}

// A full disk at the start is no error: the tier starts off.
func TestDiskStartsOffOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		broken := &brokenTier{}
		broken.errno.Store(int64(syscall.ENOSPC))
		d, err := Open(dir, Options{Size: 8 << 20, Fault: broken.fault})
		if err != nil {
			t.Fatal(err)
		}
		data := tiertest.Bytes(1, 50_000)
		info := testInfo("k", "v", len(data))
		if d.Put(info, 0, data) || !d.Stats().Off {
			t.Errorf("not off: %+v", d.Stats())
		}
		d.Drop("k")
		wantMiss(t, d, info, 0, 1)
		broken.errno.Store(0)
		<-time.After(firstProbe)
		synctest.Wait()
		d.Put(info, 0, data)
		synctest.Wait()
		wantHit(t, d, info, 0, data)
		closeTier(t, d)
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
