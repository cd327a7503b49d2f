package transfer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/retry"
)

// A Set that failed before its commit, or whose commit was refused, aborts its upload: once, and after its last part in flight has
// ended, which the service checks (rclone/rclone #3981).
func TestFailedUploadIsAbortedOnce(t *testing.T) {
	others := func(ctx context.Context, r request) error { // parts that end only when they are told to
		if r.verb == "part" {
			<-ctx.Done()
			return &blob.Error{Outcome: blob.NotApplied, Err: ctx.Err()}
		}
		return nil
	}
	for _, c := range []struct {
		what   string
		before func(context.Context, request) error
		src    blob.Source
		kind   error
		aborts int
	}{
		{"a refused part", func(ctx context.Context, r request) error {
			if r.part == 3 {
				return refusal(blob.ErrPermission)
			}
			return others(ctx, r)
		}, blob.Source{}, blob.ErrPermission, 1},
		{"a failing source", nil, blob.ReaderAt(badSource{230, errors.New("broken")}, 250), nil, 1},
		{"a panicking source", nil, blob.ReaderAt(badSource{at: 230}, 250), nil, 1},
		{"a refused commit", func(_ context.Context, r request) error {
			if r.verb == "commit" {
				return refusal(blob.ErrPrecondition)
			}
			return nil
		}, blob.Source{}, blob.ErrPrecondition, 1},
		{"aborts that fail at first", func(_ context.Context, r request) error {
			switch {
			case r.verb == "commit":
				return refusal(blob.ErrPrecondition)
			case r.verb == "abort" && r.nth < 3:
				return lost()
			}
			return nil
		}, blob.Source{}, blob.ErrPrecondition, 3},
		{"a refused begin", func(context.Context, request) error {
			return refusal(blob.ErrPermission)
		}, blob.Source{}, blob.ErrPermission, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serve(t, s3Like())
			s.before = c.before
			src := c.src
			if src.Size() == 0 {
				src = blob.Bytes(content(250))
			}
			st := open(t, s)
			_, err := set(st, src, nil)
			if wantKind(t, err, c.kind).Outcome != blob.NotApplied {
				t.Error(err)
			}
			if err := st.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := s.requests("abort"); got != c.aborts || s.openUploads() != 0 {
				t.Errorf("%d aborts, want %d; %d uploads left", got, c.aborts, s.openUploads())
			}
		})
	}
}

// The first failure is that of the Set, not that of the parts it has ended.
func TestFirstFailureOfAPartWins(t *testing.T) {
	for range 20 {
		s := serve(t, s3Like())
		var started sync.WaitGroup
		started.Add(3)
		s.before = func(ctx context.Context, r request) error {
			if r.verb != "part" {
				return nil
			}
			if r.part == 2 {
				started.Wait()
				return refusal(blob.ErrPermission)
			}
			started.Done()
			<-ctx.Done()
			return refusal(blob.ErrNotFound)
		}
		_, err := set(open(t, s), blob.Bytes(content(400)), nil)
		wantKind(t, err, blob.ErrPermission)
	}
}

// A cancelled Set ends with the context's error. Before the commit it is NotApplied and its upload is aborted, on a
// context that has not ended; with the commit on its way it is Unknown, and no abort may meet a commit that may yet land.
func TestCancelledSet(t *testing.T) {
	for _, c := range []struct {
		verb    string
		size    int
		outcome blob.Outcome
		aborts  int
	}{
		{"put", 10, blob.Unknown, 0},
		{"begin", 250, blob.NotApplied, 0},
		{"part", 250, blob.NotApplied, 1},
		{"commit", 250, blob.Unknown, 0},
	} {
		for _, o := range []blob.SetOptions{{}, {If: blob.IfAbsent()}} {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, s3Like())
				ctx, cancel := contextOf(t)
				s.before = func(ctx context.Context, r request) error {
					if r.verb == c.verb {
						cancel()
						return &blob.Error{Err: ctx.Err()} // on its way: the outcome is unknown
					}
					return nil
				}
				st := open(t, s)
				_, err := st.Set(ctx, "k", blob.Bytes(content(c.size)), &o)
				if e := wantKind(t, err, context.Canceled); e.Kind != nil || e.Outcome != c.outcome {
					t.Errorf("%s: %#v", c.verb, e)
				}
				synctest.Wait() // the abort does not wait for Close
				if got := s.requests("abort"); got != c.aborts {
					t.Errorf("%s: %d aborts, want %d", c.verb, got, c.aborts)
				}
				if err := st.Close(t.Context()); err != nil || s.requests("abort") != c.aborts {
					t.Error(c.verb, err)
				}
				if got := s.requests(c.verb); c.verb != "part" && got != 1 {
					t.Errorf("%s: %d requests after the cancel", c.verb, got)
				}
			})
		}
	}
}

// A Set that is cancelled when all parts are there does not commit.
func TestCancelAfterTheLastPart(t *testing.T) {
	s := serve(t, s3Like())
	ctx, cancel := contextOf(t)
	s.after = func(_ context.Context, r request) error {
		if r.part == 3 {
			cancel()
		}
		return nil
	}
	st := open(t, s, concurrency(1))
	_, err := st.Set(ctx, "k", blob.Bytes(content(250)), nil)
	wantKind(t, err, context.Canceled)
	wantOutcome(t, err, blob.NotApplied)
	if err := st.Close(t.Context()); err != nil || s.requests("commit") != 0 || s.requests("abort") != 1 {
		t.Error(err, s.takeLog())
	}
}

// Close refuses what is new and waits for what is in flight, aborts too.
func TestCloseWaits(t *testing.T) {
	for _, verb := range []string{"part", "abort"} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, s3Like())
			goOn := make(chan struct{})
			s.before = func(_ context.Context, r request) error {
				if r.verb == verb {
					<-goOn
				}
				if r.verb == "part" && verb == "abort" {
					return refusal(blob.ErrPermission)
				}
				return nil
			}
			st := open(t, s)
			set := make(chan error, 1)
			go func() {
				_, err := st.Set(t.Context(), "k", blob.Bytes(content(250)), nil)
				set <- err
			}()
			synctest.Wait()
			closed := make(chan error, 1)
			go func() { closed <- st.Close(t.Context()) }()
			synctest.Wait()
			select {
			case err := <-closed:
				t.Errorf("%s: Close did not wait: %v", verb, err)
			default:
			}
			if err := getError(st, nil); !errors.Is(err, blob.ErrClosed) {
				t.Error(err)
			}
			if _, err := walk(t, st, "", nil); !errors.Is(err, blob.ErrClosed) {
				t.Error(err)
			}
			close(goOn)
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if err := <-set; (err == nil) != (verb == "part") {
				t.Error(err)
			}
			if s.openUploads() != 0 {
				t.Error("an upload is left")
			}
		})
	}
}

// wantOwed checks the error of a Close.
func wantOwed(t *testing.T, err, cause error, uploads ...string) {
	t.Helper()
	var owed *blob.OwedError
	if !errors.As(err, &owed) || !errors.Is(err, cause) {
		t.Fatalf("%v, want what is owed because of %v", err, cause)
	}
	wantKeys(t, owed.Uploads, uploads)
}

// failedUpload leaves an upload to abort.
func failedUpload(t *testing.T, st *Store) {
	t.Helper()
	if _, err := st.Set(t.Context(), "k", blob.Bytes(content(100)), &blob.SetOptions{If: blob.IfVersion("v0")}); err == nil {
		t.Fatal("the upload did not fail")
	}
}

// Close names the uploads that it could not abort, by the caller's key, and goes on when called again.
func TestCloseNamesWhatItOwes(t *testing.T) {
	s := serve(t, s3Like())
	works := false
	s.before = func(_ context.Context, r request) error {
		if r.verb == "abort" && !works {
			return refusal(blob.ErrPermission)
		}
		return nil
	}
	st := open(t, s, func(o *Options) { o.Prefix = "p/" })
	failedUpload(t, st)
	for range 2 {
		wantOwed(t, st.Close(t.Context()), blob.ErrPermission, "k u1")
	}
	ctx, cancel := contextOf(t)
	cancel()
	wantOwed(t, st.Close(ctx), context.Canceled, "k u1")
	works = true
	for range 2 {
		if err := st.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if s.openUploads() != 0 {
		t.Error("an upload is left")
	}
}

// When the time of Close is over it names what is still being aborted too, and another Close waits on.
func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, s3Like())
		goOn := make(chan struct{})
		s.before = func(_ context.Context, r request) error {
			if r.verb == "abort" {
				<-goOn
			}
			return nil
		}
		st := open(t, s)
		failedUpload(t, st)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantOwed(t, st.Close(ctx), context.DeadlineExceeded, "k u1")
		close(goOn)
		if err := st.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := s.requests("abort"); got != 1 {
			t.Errorf("%d aborts", got)
		}
	})
}

// A call in flight when the time of Close is over is no upload to name; the next Close waits for it.
func TestCloseIsNotHeldUpByACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, s3Like())
		s.put("k", content(10))
		s.stuck = func(ReadRequest) bool { return true }
		st := open(t, s)
		reading, cancelRead := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := st.Get(reading, "k", nil)
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantOwed(t, st.Close(ctx), context.DeadlineExceeded)
		cancelRead()
		wantKind(t, <-done, context.Canceled)
		if err := st.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An abort that hangs is given up after its own time, and left to Close.
func TestHangingAbortIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, s3Like())
		hang := true // and no limit of one attempt ends it
		s.before = func(ctx context.Context, r request) error {
			if r.verb == "abort" && hang {
				<-ctx.Done()
				return &blob.Error{Err: ctx.Err()}
			}
			return nil
		}
		st := open(t, s, policy(retry.Off()))
		failedUpload(t, st)
		<-time.After(2 * abortTimeout)
		s.wantQuiet(t)
		hang = false
		if err := st.Close(t.Context()); err != nil || s.openUploads() != 0 {
			t.Error(err, s.openUploads())
		}
	})
}

// An upload whose commit may have happened is nobody's to abort, and not owed.
func TestUploadInDoubtIsLeftAlone(t *testing.T) {
	s := serve(t, s3Like())
	s.before = func(_ context.Context, r request) error {
		if r.verb == "commit" {
			return lost()
		}
		return nil
	}
	st := open(t, s)
	_, err := set(st, blob.Bytes(content(250)), nil)
	wantKind(t, err, blob.ErrUnavailable)
	wantOutcome(t, err, blob.Unknown)
	if err := st.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if s.requests("abort") != 0 || s.openUploads() != 1 {
		t.Error("aborted while its commit may land")
	}
}

// An abort whose reply was lost finds nothing the next time, which is what it was for.
func TestAbortAfterALostReply(t *testing.T) {
	s := serve(t, s3Like())
	s.after = func(_ context.Context, r request) error {
		if r.verb == "abort" && r.nth == 1 {
			return lost()
		}
		return nil
	}
	st := open(t, s)
	failedUpload(t, st)
	if err := st.Close(t.Context()); err != nil || s.requests("abort") != 2 {
		t.Error(err, s.takeLog())
	}
}

// Close waits for the last of many aborts.
func TestCloseWaitsForAllAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, s3Like())
		goOn := make(chan struct{})
		s.before = func(_ context.Context, r request) error {
			if r.verb == "abort" && r.what == "u2" {
				<-goOn
			}
			return nil
		}
		st := open(t, s)
		for range 3 {
			failedUpload(t, st)
		}
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- st.Close(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Error("Close did not wait:", err)
		default:
		}
		close(goOn)
		if err := <-closed; err != nil || s.openUploads() != 0 {
			t.Error(err)
		}
	})
}
