package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// The first request to fail ends the others, and its error is that of the read.
func TestFailingRequestCancelsTheOthers(t *testing.T) {
	for _, failing := range []string{"part 1", "part 3 of v1"} {
		s := serve(t, s3Like())
		s.put("k", content(400), 100, 100, 100, 100)
		s.stuck = func(r ReadRequest) bool { return describe(r) != failing }
		s.edit = func(r ReadRequest, rep *ReadReply) {
			if r.Part == 1 && failing == "part 1" {
				rep.replace(cutAfter(0))
			}
		}
		s.before = func(_ context.Context, r request) error {
			if what := describe(r.read); what == failing && r.read.Part > 1 || what == "0+100 of v1" {
				for range 3 { // the others are in the middle of their bodies
					<-s.reached
				}
				return refusal(blob.ErrPermission)
			}
			return nil
		}
		wantKind(t, getError(open(t, s), nil), blob.ErrPermission)
		if got := s.requests("read"); got > 5 {
			t.Errorf("%s: %d requests", failing, got)
		}
	}
}

// A cancelled read returns with the context's error, and nothing touches Dst from then on.
func TestCancelledReadLetsGoOfDst(t *testing.T) {
	for _, p := range []personality{s3Like(), azureLike()} {
		s := serve(t, p)
		s.put("k", content(400), 100, 100, 100, 100)
		s.stuck = func(ReadRequest) bool { return true }
		st := open(t, s)
		dst := make([]byte, 400)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for range 4 {
				<-s.reached
			}
			cancel(errors.New("the caller's own reason"))
		}()
		_, err := st.Get(ctx, "k", &blob.GetOptions{Dst: dst})
		copy(dst, bytes.Repeat([]byte{0x55}, 400)) // the race detector sees any other writer
		e := wantKind(t, err, context.Canceled)
		if e.Kind != nil || e.Outcome != blob.NotApplied || e.Exhausted {
			t.Errorf("%#v", e)
		}
		s.wantQuiet(t)
		wantBytes(t, dst, bytes.Repeat([]byte{0x55}, 400))
	}
}

// The deadline of the caller, and not a request's, ends a read in whatever it is doing.
func TestDeadlineEndsARead(t *testing.T) {
	for _, verb := range []string{"read", "head"} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, azureLike())
			s.put("k", content(400))
			s.before = func(ctx context.Context, r request) error {
				if r.verb == verb && r.read.Off != 0 || r.verb == "head" {
					<-ctx.Done()
					return &blob.Error{Outcome: blob.NotApplied, Err: ctx.Err()}
				}
				return nil
			}
			st := open(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			o := &blob.GetOptions{}
			if verb == "head" {
				o.Range = blob.Last(3)
			}
			began := time.Now()
			_, err := st.Get(ctx, "k", o)
			if e := wantKind(t, err, context.DeadlineExceeded); e.Kind != nil {
				t.Errorf("%#v", e)
			}
			if got := time.Since(began); got != time.Second {
				t.Errorf("after %v", got)
			}
		})
	}
}

// A read has as many requests in flight as it may, and never more; so have the ranges of a GetRanges together.
func TestRequestsInFlight(t *testing.T) {
	reads := map[string]func(*Store) error{
		"parts":  func(st *Store) error { return getError(st, nil) },
		"ranges": func(st *Store) error { return getError(st, &blob.GetOptions{Range: blob.From(1)}) },
		"by head": func(st *Store) error {
			return getError(st, &blob.GetOptions{Range: blob.Last(1900)})
		},
		"many ranges": func(st *Store) error {
			_, err := st.GetRanges(context.Background(), "k", []blob.Range{
				blob.Span(0, 1), blob.Span(100, 100), blob.Span(300, 5), blob.Span(400, 500), blob.Span(1000, 900), blob.Span(1910, 2), blob.Span(1990, 9),
			}, nil)
			return err
		},
		"few ranges": func(st *Store) error {
			_, err := st.GetRanges(context.Background(), "k", []blob.Range{blob.Span(0, 1), blob.Span(0, 900), blob.Span(900, 900)}, nil)
			return err
		},
		"one range": func(st *Store) error {
			_, err := st.GetRanges(context.Background(), "k", []blob.Range{{}}, nil)
			return err
		},
	}
	for _, c := range []int{1, 2, 4, 8} {
		for name, read := range reads {
			t.Run(fmt.Sprintf("%s at %d", name, c), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := s3Like()
					if name == "by head" {
						p = azureLike()
					}
					s := serve(t, p)
					s.put("k", content(2000), equal(2000)...)
					s.before = func(context.Context, request) error {
						<-time.After(time.Millisecond) // so that all that may overlap does
						return nil
					}
					s.edit = func(_ ReadRequest, rep *ReadReply) {
						rep.replace(func(r io.Reader) io.Reader { return io.MultiReader(lateReader{}, r) })
					}
					st := open(t, s, concurrency(c))
					if err := read(st); err != nil {
						t.Fatal(err)
					}
					peak := s.takePeak()
					if peak > c {
						t.Errorf("%d requests in flight, at most %d allowed", peak, c)
					}
					if peak < min(c, 6) && name != "few ranges" {
						t.Errorf("%d requests in flight, %d allowed", peak, c)
					}
				})
			})
		}
	}
}

// lateReader is empty, and takes its time to say so.
type lateReader struct{}

func (lateReader) Read([]byte) (int, error) {
	<-time.After(time.Second)
	return 0, io.EOF
}

// equal returns the sizes of the parts of an object of n bytes.
func equal(n int) (sizes []int) {
	for ; n > 0; n -= P {
		sizes = append(sizes, min(n, P))
	}
	return sizes
}
