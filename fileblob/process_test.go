//go:build linux || darwin

package fileblob

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
)

// childVar makes the test binary another process of a test: "role dir name".
const childVar = "FILEBLOB_TEST_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childVar); job != "" {
		if err := child(strings.Split(job, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const (
	increments = 50
	claims     = 40
)

// child runs in a process of its own.
func child(job []string) error {
	ctx := context.Background()
	role, dir, name := job[0], job[1], job[2]
	s, err := New(ctx, dir, &Options{Create: true, NoSync: true})
	if err != nil {
		return err
	}
	switch role {
	case "count":
		err = countUp(ctx, s)
	case "claim":
		err = claim(ctx, s, name)
	case "stall":
		_, err = s.Set(ctx, name, blob.Stream(&stalling{}, -1), nil)
	case "overwrite":
		err = overwrite(ctx, s, name)
	case "limited":
		err = setBeyondLimit(ctx, s, name)
	default:
		err = fmt.Errorf("role %q", role)
	}
	return errors.Join(err, s.Close(ctx))
}

// countUp increments a number by compare and swap.
func countUp(ctx context.Context, s *Store) error {
	for n := 0; n < increments; {
		o, err := s.Get(ctx, "counter", nil)
		if err != nil {
			return err
		}
		old, err := strconv.Atoi(string(o.Data))
		if err != nil {
			return err
		}
		_, err = s.Set(ctx, "counter", blob.Bytes([]byte(strconv.Itoa(old+1))), &blob.SetOptions{If: blob.IfVersion(o.Version)})
		switch {
		case err == nil:
			n++
		case !errors.Is(err, blob.ErrPrecondition):
			return err
		}
	}
	return nil
}

// claim prints the keys that it was the first to make.
func claim(ctx context.Context, s *Store, name string) error {
	for i := range claims {
		key := fmt.Sprintf("claims/%d/k", i) // a directory each, so that making it is part of the race
		_, err := s.Set(ctx, key, blob.Bytes([]byte(name)), &blob.SetOptions{If: blob.IfAbsent()})
		switch {
		case err == nil:
			fmt.Println(key)
		case !errors.Is(err, blob.ErrExists):
			return err
		}
	}
	return nil
}

// stalling is a source that says so on stdout when it has been read a little, and then never ends.
type stalling struct{ read int }

func (r *stalling) Read(p []byte) (int, error) {
	if r.read > 1<<20 {
		fmt.Println("stalled")
		select {}
	}
	r.read += len(p)
	return len(p), nil
}

// overwrite writes values that check themselves, for ever.
func overwrite(ctx context.Context, s *Store, key string) error {
	for i := 0; ; i++ {
		value := strings.Repeat(fmt.Sprintf("%09d\n", i), 1+i%5000)
		if _, err := s.Set(ctx, key, blob.Bytes([]byte(value)), nil); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

const fileLimit = 256 << 10

// setBeyondLimit runs in a child whose files may have fileLimit bytes.
func setBeyondLimit(ctx context.Context, s *Store, key string) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: fileLimit, Max: fileLimit}); err != nil {
		return err
	}
	_, err := s.Set(ctx, key, blob.Bytes(make([]byte, 2*fileLimit)), nil)
	if !errors.Is(err, syscall.EFBIG) || !errors.Is(err, blob.ErrTooLarge) || blob.OutcomeOf(err) != blob.NotApplied {
		return fmt.Errorf("Set: %w", err)
	}
	return nil
}

// process is a running child.
type process struct {
	*exec.Cmd
	out    *bufio.Scanner
	stderr *strings.Builder
}

func startChild(t *testing.T, role, dir, name string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(exe), stderr: &strings.Builder{}}
	p.Env = append(os.Environ(), childVar+"="+strings.Join([]string{role, dir, name}, "\n"))
	p.Stderr = p.stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return p
}

// lines reads what the child prints until it ends, which must be well.
func (p *process) lines(t *testing.T) (lines []string) {
	t.Helper()
	for p.out.Scan() {
		lines = append(lines, p.out.Text())
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("child: %v: %s", err, p.stderr)
	}
	return lines
}

// kill ends the child as kill -9 does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // it says that it was killed
}

func TestConditionsHoldAcrossProcesses(t *testing.T) {
	const processes = 4
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	set(t, s, "counter", "0")

	t.Run("compare and swap", func(t *testing.T) {
		var children []*process
		for range processes {
			children = append(children, startChild(t, "count", dir, ""))
		}
		if err := countUp(t.Context(), s); err != nil { // and this process
			t.Error(err)
		}
		for _, c := range children {
			c.lines(t)
		}
		if got, want := get(t, s, "counter"), strconv.Itoa((processes+1)*increments); got != want {
			t.Errorf("counted to %s, want %s", got, want)
		}
	})

	t.Run("create if absent", func(t *testing.T) {
		var children []*process
		for i := range processes {
			children = append(children, startChild(t, "claim", dir, fmt.Sprint("process", i)))
		}
		owner := map[string]string{}
		for i, c := range children {
			for _, key := range c.lines(t) {
				if other, ok := owner[key]; ok {
					t.Errorf("%s: both %s and process%d made it", key, other, i)
				}
				owner[key] = fmt.Sprint("process", i)
			}
		}
		for i := range claims {
			key := fmt.Sprintf("claims/%d/k", i)
			if got := get(t, s, key); got == "" || got != owner[key] {
				t.Errorf("%s holds %q, made by %q", key, got, owner[key])
			}
		}
	})
}

// tempFiles returns the paths of the temporary files.
func tempFiles(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, hiddenDir, tempDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// google/go-cloud #1459: leftovers of a crash must neither show nor stay, and those of the living must.
func TestKilledWriterLeavesTheOldValueAndALeftoverThatIsSweptByAge(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	old := set(t, s, "a/k", "old")
	later := Options{NoSync: true, Now: func() time.Time { return time.Now().Add(2 * DefaultTempAge) }}

	c := startChild(t, "stall", dir, "a/k")
	if !c.out.Scan() || c.out.Text() != "stalled" {
		t.Fatalf("child: %q, %s", c.out.Text(), c.stderr)
	}
	if n := len(tempFiles(t, dir)); n != 1 {
		t.Fatalf("%d temporary files while one Set runs", n)
	}
	// Old by its time, but its writer lives: the lock tells.
	open(t, dir, later)
	if n := len(tempFiles(t, dir)); n != 1 {
		t.Fatal("the temporary file of a living writer was swept")
	}
	c.kill(t)

	check := func(when string) {
		t.Helper()
		var keys []string
		for info, err := range s.List(t.Context(), "", nil) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, info.Key)
		}
		o, err := s.Get(t.Context(), "a/k", nil)
		if err != nil || string(o.Data) != "old" || o.Version != old.Version || len(keys) != 1 {
			t.Errorf("%s: %q, %v, keys %q", when, o.Data, err, keys)
		}
	}
	check("after the kill")
	open(t, dir, Options{NoSync: true})
	if n := len(tempFiles(t, dir)); n != 1 {
		t.Errorf("a leftover younger than TempAge was swept")
	}
	open(t, dir, later)
	if n := len(tempFiles(t, dir)); n != 0 {
		t.Errorf("%d leftovers after the sweep", n)
	}
	check("after the sweep")
}

func TestKilledOverwriterLeavesAWholeValue(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{NoSync: true})
	for round := range 8 {
		c := startChild(t, "overwrite", dir, "k")
		last := -1
		for range 1 + 7*round {
			if !c.out.Scan() {
				t.Fatalf("child: %s", c.stderr)
			}
			last, _ = strconv.Atoi(c.out.Text())
		}
		c.kill(t)
		value := get(t, s, "k")
		line, _, _ := strings.Cut(value, "\n")
		n, err := strconv.Atoi(line)
		if err != nil || value != strings.Repeat(line+"\n", 1+n%5000) {
			t.Fatalf("round %d: %d bytes that begin with %q", round, len(value), line)
		}
		if n < last {
			t.Errorf("round %d: the value is %d, but %d was reported stored", round, n, last)
		}
	}
}

func TestWaitForALockOfAnotherProcessEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, Options{NoSync: true}), open(t, dir, Options{NoSync: true})
	unlock, err := a.locks.lock(t.Context(), "k") // an open file of its own: for b like another process
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Store{"goroutine": a, "process": b} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := s.Set(ctx, "k", blob.Bytes(nil), nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || blob.OutcomeOf(err) != blob.NotApplied {
			t.Errorf("%s: %v", name, err)
		}
	}
	unlock()
	set(t, b, "k", "")
	if n := len(tempFiles(t, dir)); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
}
