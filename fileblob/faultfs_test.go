package fileblob

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
)

// probe stands between a store and the file system: it records the calls and fails some.
type probe struct {
	mu    sync.Mutex
	calls []string
	open  map[string]int // paths of open files and directories
	// fail returns the error of call i, "op path", or nil. after tells to make the call all the same, as when a reply is lost.
	fail func(i int, call string) (err error, after bool)
}

func (p *probe) reset(fail func(i int, call string) (error, bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.fail = nil, fail
}

// trace returns the calls recorded since the last reset, with random names replaced.
func (p *probe) trace() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var calls []string
	for _, c := range p.calls {
		var words []string
		for _, w := range strings.Fields(c) {
			if dir, name, ok := strings.Cut(w, "/tmp/"); ok && len(name) == 32 {
				w = dir + "/tmp/TEMP"
			}
			words = append(words, w)
		}
		calls = append(calls, strings.Join(words, " "))
	}
	return calls
}

func (p *probe) opened(path string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]int{}
	}
	p.open[path] += n
}

// openPaths returns how many files and directories are open.
func (p *probe) openPaths() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.open {
		n += k
	}
	return n
}

func (p *probe) do(op, path string, call func() error) error {
	line := op + " " + path
	p.mu.Lock()
	i := len(p.calls)
	p.calls = append(p.calls, line)
	var err error
	after := false
	if p.fail != nil {
		err, after = p.fail(i, line)
	}
	p.mu.Unlock()
	if err != nil {
		err = &fs.PathError{Op: op, Path: path, Err: err}
		if after || op == "close" { // a descriptor is gone whatever close says
			_ = call()
		}
		return err
	}
	return call()
}

// probedStore opens a store whose every call goes through the probe.
func probedStore(t testing.TB, dir string, o Options) (*Store, *probe) {
	t.Helper()
	p := &probe{}
	o.Create = true
	o, err := checkOptions(dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	root, err := openRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	p.opened("", 1)
	s, err := newStore(t.Context(), probedDir{root, p, ""}, o)
	if err != nil {
		t.Fatal(err)
	}
	p.reset(nil)
	return s, p
}

type probedDir struct {
	directory
	p    *probe
	path string
}

func (d probedDir) join(name string) string {
	if name == "." {
		return d.path
	}
	return strings.TrimPrefix(d.path+"/"+name, "/")
}

func (d probedDir) Dir(name string) (sub directory, err error) {
	path := d.join(name)
	err = d.p.do("opendir", path, func() error {
		inner, err := d.directory.Dir(name)
		if err == nil {
			d.p.opened(path, 1)
			sub = probedDir{inner, d.p, path}
		}
		return err
	})
	if err != nil && sub != nil {
		_ = sub.Close()
		sub = nil
	}
	return sub, err
}

func (d probedDir) file(op, name string, open func() (file, error)) (f file, err error) {
	path := d.join(name)
	err = d.p.do(op, path, func() error {
		inner, err := open()
		if err == nil {
			d.p.opened(path, 1)
			f = probedFile{inner, d.p, path}
		}
		return err
	})
	if pf, ok := f.(probedFile); ok && err != nil {
		d.p.opened(path, -1)
		_ = pf.file.Close()
		f = nil
	}
	return f, err
}

func (d probedDir) Open(name string) (file, error) {
	return d.file("open", name, func() (file, error) { return d.directory.Open(name) })
}

func (d probedDir) Create(name string) (file, error) {
	return d.file("create", name, func() (file, error) { return d.directory.Create(name) })
}

func (d probedDir) OpenLock(name string, create bool) (file, error) {
	return d.file("openlock", name, func() (file, error) { return d.directory.OpenLock(name, create) })
}

func (d probedDir) Mkdir(name string) error {
	return d.p.do("mkdir", d.join(name), func() error { return d.directory.Mkdir(name) })
}

func (d probedDir) Rmdir(name string) error {
	return d.p.do("rmdir", d.join(name), func() error { return d.directory.Rmdir(name) })
}

func (d probedDir) Remove(name string) error {
	return d.p.do("remove", d.join(name), func() error { return d.directory.Remove(name) })
}

func (d probedDir) Rename(name string, to directory, as string) error {
	dst := to.(probedDir)
	return d.p.do("rename", d.join(name)+" "+dst.join(as), func() error {
		return d.directory.Rename(name, dst.directory, as)
	})
}

func (d probedDir) Names(visit func(string) bool) error {
	return d.p.do("readdir", d.path, func() error { return d.directory.Names(visit) })
}

// Sync only records: no test here stops the machine, and a real one takes its time.
func (d probedDir) Sync() error { return d.p.do("fsync", d.path+"/", noSync) }
func noSync() error             { return nil }

func (d probedDir) Stat() (info os.FileInfo, err error) {
	err = d.p.do("stat", d.path+"/", func() error { info, err = d.directory.Stat(); return err })
	return info, err
}

func (d probedDir) Close() error {
	d.p.opened(d.path, -1)
	return d.directory.Close()
}

type probedFile struct {
	file
	p    *probe
	path string
}

// WriteAt writes half before it fails, as a full disk does.
func (f probedFile) WriteAt(b []byte, off int64) (n int, err error) {
	wrote := false
	err = f.p.do("write", f.path, func() error { wrote = true; n, err = f.file.WriteAt(b, off); return err })
	if !wrote {
		n, _ = f.file.WriteAt(b[:len(b)/2], off)
	}
	return n, err
}

func (f probedFile) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.p.do("read", f.path, func() error { n, err = f.file.ReadAt(b, off); return err })
	return n, err
}

func (f probedFile) Sync() error { return f.p.do("fsync", f.path, noSync) }
func (f probedFile) Stat() (info os.FileInfo, err error) {
	err = f.p.do("stat", f.path, func() error { info, err = f.file.Stat(); return err })
	return info, err
}

func (f probedFile) TryLock() (ok bool, err error) {
	err = f.p.do("lock", f.path, func() error { ok, err = f.file.TryLock(); return err })
	return ok, err
}

func (f probedFile) Unlock() error { return f.p.do("unlock", f.path, f.file.Unlock) }

func (f probedFile) Close() error {
	f.p.opened(f.path, -1)
	return f.p.do("close", f.path, f.file.Close)
}

// grep returns the calls that begin with one of the operations.
func grep(calls []string, ops ...string) (list []string) {
	for _, c := range calls {
		op, _, _ := strings.Cut(c, " ")
		for _, want := range ops {
			if op == want {
				list = append(list, c)
			}
		}
	}
	return list
}

func equalLines(t *testing.T, got, want []string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("calls:\n%s\nwant:\n%s", g, w)
	}
}

func lockOf(key string) string { return fmt.Sprintf(".wholeblob/locks/%02x", stripeOf(key)) }
