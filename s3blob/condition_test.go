package s3blob_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// 409 means that nothing was decided: it is tried again, by a new upload where a commit got it, and never reported as "exists"; 412 and
// 404 are decisions (apache/arrow-rs-object-store #852).
func TestConflictInFlightIsTriedAgain(t *testing.T) {
	conflict := fakes3.Reply{Status: 409, Code: "ConditionalRequestConflict"}
	for _, size := range []int{10, 3 * P} {
		op := map[bool]string{true: "PutObject", false: "CompleteMultipartUpload"}[size < P]
		set := func(t *testing.T, c blob.Condition, replies ...fakes3.Reply) (*fakes3.Server, error) {
			srv := fake(t, fakes3.Options{MinPartSize: -1})
			times := len(replies)
			if times == 1 {
				times = -1
			}
			f := fakes3.Fault{Op: op, Times: times, Replies: replies}
			if times < 0 {
				f.Replies, f.Reply = nil, &replies[0]
			}
			srv.Inject(f)
			st := openSmall(t, srv)
			_, err := st.Set(t.Context(), "k", blob.Bytes(content(size)), &blob.SetOptions{If: c})
			if err == nil {
				wantBytes(t, mustGet(t, st, "k", nil).Data, content(size))
			}
			closed := st.Close(t.Context())
			if unknown := err != nil && blob.OutcomeOf(err) == blob.Unknown; !unknown && (closed != nil || len(srv.Uploads("b")) > 0) {
				t.Errorf("Close: %v, uploads left: %v", closed, srv.Uploads("b"))
			}
			return srv, err
		}
		t.Run(fmt.Sprintf("twice, then free/%d", size), func(t *testing.T) {
			srv, err := set(t, blob.IfAbsent(), conflict, conflict)
			if err != nil {
				t.Error(err)
			}
			if n := srv.Log().Count("CreateMultipartUpload"); size >= P && n != 3 {
				t.Errorf("%d uploads begun, want a new one for each commit", n)
			}
		})
		t.Run(fmt.Sprintf("once, then exists/%d", size), func(t *testing.T) {
			_, err := set(t, blob.IfAbsent(), conflict, fakes3.Reply{Status: 412})
			wantKind(t, err, blob.ErrExists)
		})
		t.Run(fmt.Sprintf("without end/%d", size), func(t *testing.T) {
			srv, err := set(t, blob.IfAbsent(), conflict)
			wantKind(t, err, blob.ErrConflict)
			if n := srv.Log().Count(op); n > 4 || blob.OutcomeOf(err) != blob.NotApplied {
				t.Errorf("%d attempts, outcome %v", n, blob.OutcomeOf(err))
			}
		})
		t.Run(fmt.Sprintf("version of a missing key/%d", size), func(t *testing.T) {
			_, err := set(t, blob.IfVersion("v"), fakes3.Reply{})
			wantKind(t, err, blob.ErrPrecondition)
		})
		t.Run(fmt.Sprintf("5xx is no decision/%d", size), func(t *testing.T) {
			_, err := set(t, blob.IfAbsent(), fakes3.Reply{Status: 500})
			wantKind(t, err, blob.ErrUnavailable)
			if blob.OutcomeOf(err) != blob.Unknown {
				t.Errorf("outcome %v, want unknown", blob.OutcomeOf(err))
			}
		})
	}
}

// An upload that somebody else aborted is begun again.
func TestUploadThatIsGoneIsBegunAgain(t *testing.T) {
	for _, op := range []string{"UploadPart", "CompleteMultipartUpload"} {
		srv := fake(t, fakes3.Options{MinPartSize: -1})
		srv.Inject(fakes3.Fault{Op: op, Reply: &fakes3.Reply{Status: 404, Code: "NoSuchUpload"}})
		if _, err := openSmall(t, srv).Set(t.Context(), "k", blob.Bytes(content(3*P)), nil); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// Absence hidden behind 403 is no absence; a bucket that is missing is no key that is missing; a bucket in another region is named with
// its region (aws/aws-cli #2041).
func TestRefusalsAreToldApart(t *testing.T) {
	srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{HidesMissing: true}})
	st := open(t, srv, nil)
	wantKind(t, getError(st, "missing", nil), blob.ErrPermission)
	if _, err := st.Stat(t.Context(), "missing"); err != nil {
		wantKind(t, err, blob.ErrPermission)
	}
	if n := len(srv.Log()); n != 2 {
		t.Errorf("%d requests, want no retries", n)
	}
	if _, err := st.Set(t.Context(), "missing", blob.Bytes(nil), &blob.SetOptions{If: blob.IfAbsent()}); err != nil {
		t.Errorf("create if absent: %v", err)
	}
	no, err := s3blob.New(t.Context(), "no-such-bucket", options(srv))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, no) })
	wantKind(t, getError(no, "k", nil), blob.ErrNoContainer)
	_, err = no.Set(t.Context(), "k", blob.Bytes(nil), nil)
	wantKind(t, err, blob.ErrNoContainer)

	srv.ResetLog()
	srv.Inject(fakes3.Fault{Times: -1, Reply: fakes3.WrongRegion("eu-west-7")})
	if err := getError(st, "k", nil); !strings.Contains(err.Error(), "eu-west-7") || len(srv.Log()) != 1 {
		t.Errorf("wrong region: %v after %d requests", err, len(srv.Log()))
	}
}
