package azblob_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/wholeblob/wholeblob/azblob"
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakeaz"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

const certainly, perhaps = blob.NotApplied, blob.Unknown

// Each answer of the service means the same to each operation, HEAD among them, which has no body to read the code from.
func TestRepliesMeanTheSameToAll(t *testing.T) {
	for _, c := range []struct {
		status   int
		code     string
		kind     error
		outcome  blob.Outcome
		attempts int // of 3
	}{
		{404, "ContainerNotFound", blob.ErrNoContainer, certainly, 1},
		{409, "ContainerBeingDeleted", blob.ErrNoContainer, certainly, 1},
		{404, "ResourceNotFound", blob.ErrNoContainer, certainly, 1},
		{404, "-", blob.ErrUnavailable, certainly, 3}, // not from the service: no proof of absence
		{403, "AuthorizationPermissionMismatch", blob.ErrPermission, certainly, 1},
		{403, "AuthorizationFailure", blob.ErrPermission, certainly, 1},
		{403, "AuthenticationFailed", blob.ErrPermission, certainly, 1},
		{403, "InsufficientAccountPermissions", blob.ErrPermission, certainly, 1},
		{403, "-", blob.ErrPermission, certainly, 1},
		{401, "NoAuthenticationInformation", blob.ErrPermission, certainly, 1},
		{409, "PublicAccessNotPermitted", blob.ErrPermission, certainly, 1},
		{409, "BlobImmutableDueToPolicy", blob.ErrPermission, certainly, 1},
		{412, "LeaseIdMissing", blob.ErrConflict, certainly, 3},
		{409, "LeaseIdMismatchWithBlobOperation", blob.ErrConflict, certainly, 3},
		{409, "BlobBeingRehydrated", blob.ErrConflict, certainly, 3},
		{409, "PendingCopyOperation", blob.ErrConflict, certainly, 3},
		{409, "-", blob.ErrConflict, certainly, 3},
		{409, "BlobArchived", blob.ErrUnsupported, certainly, 1},
		{409, "InvalidBlobType", blob.ErrUnsupported, certainly, 1},
		{409, "SnapshotsPresent", blob.ErrUnsupported, certainly, 1},
		{409, "SomethingThatLasts", blob.ErrUnsupported, certainly, 1},
		{409, "AccountBeingCreated", blob.ErrUnavailable, certainly, 3},
		{400, "InvalidInput", blob.ErrInvalidOption, certainly, 1},
		{400, "InvalidResourceName", blob.ErrInvalidKey, certainly, 1},
		{413, "RequestBodyTooLarge", blob.ErrTooLarge, certainly, 1},
		{405, "UnsupportedHttpVerb", blob.ErrUnsupported, certainly, 1},
		{429, "-", blob.ErrThrottled, certainly, 3},
		{503, "ServerBusy", blob.ErrThrottled, certainly, 3},
		{503, "-", blob.ErrUnavailable, perhaps, 3},
		{500, "InternalError", blob.ErrUnavailable, perhaps, 3},
		{500, "OperationTimedOut", blob.ErrUnavailable, perhaps, 3},
		{502, "-", blob.ErrUnavailable, perhaps, 3},
	} {
		t.Run(fmt.Sprintf("%d-%s", c.status, c.code), func(t *testing.T) {
			srv := fake(t, fakeaz.Options{})
			srv.PutBlob("box", "k", content(10), nil)
			reply := fakehttp.Reply{Status: c.status, Code: c.code}
			if c.code == "-" {
				reply = fakehttp.Reply{Status: c.status, NoBody: true}
			}
			st := open(t, srv, small)
			for op, do := range map[string]func() error{
				"GetBlob":           func() error { return errOf(st.Get(t.Context(), "k", nil)) },
				"GetBlobProperties": func() error { return errOf(st.Stat(t.Context(), "k")) },
				"PutBlob":           func() error { return errOf(st.Set(t.Context(), "k", blob.Bytes(content(5)), nil)) },
				"PutBlock":          func() error { return errOf(st.Set(t.Context(), "k", blob.Bytes(content(smallPart)), nil)) },
				"DeleteBlob":        func() error { return st.Delete(t.Context(), "k", nil) },
				"ListBlobs":         func() error { return list(st, t, "") },
			} {
				srv.ResetLog()
				in := srv.Inject(fakehttp.Fault{Op: op, Times: -1, Reply: &reply})
				err := do()
				in.Remove()
				var e *blob.Error
				var sdk *azcore.ResponseError
				if !errors.As(err, &e) || !errors.As(err, &sdk) {
					t.Fatalf("%s: %T %v", op, err, err)
				}
				outcome := c.outcome
				if op != "PutBlob" && op != "DeleteBlob" {
					outcome = certainly
				}
				code := strings.TrimPrefix(c.code, "-")
				if e.Kind != c.kind || e.Outcome != outcome || e.Status != c.status || e.Code != code || sdk.ErrorCode != code {
					t.Errorf("%s: %v: kind %v, outcome %v, status %d, code %q; want %v, %v", op, err, e.Kind, e.Outcome, e.Status, e.Code, c.kind, outcome)
				}
				if n := srv.Log().Count(op); n != c.attempts {
					t.Errorf("%s: %d attempts, want %d", op, n, c.attempts)
				}
				if e.RequestID == "" || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "---") {
					t.Errorf("%s: request %q, text %q", op, e.RequestID, err)
				}
			}
		})
	}
}

// The settled refusals of conditions differ from those of operations in flight, for single requests and commits alike
// (apache/arrow-rs-object-store #852).
func TestRefusedConditions(t *testing.T) {
	for _, size := range []int{10, 3 * smallPart} {
		for _, c := range []struct {
			cond    blob.Condition
			replies []fakehttp.Reply
			kind    error
		}{
			{blob.IfAbsent(), []fakehttp.Reply{{Status: 409, Code: "BlobAlreadyExists"}}, blob.ErrExists},
			{blob.IfAbsent(), []fakehttp.Reply{{Status: 412, Code: "ConditionNotMet"}}, blob.ErrExists},
			{blob.IfAbsent(), []fakehttp.Reply{{Status: 412, Code: "LeaseIdMissing"}, {Status: 409, Code: "BlobAlreadyExists"}}, blob.ErrExists},
			{blob.IfAbsent(), []fakehttp.Reply{{Status: 412, Code: "LeaseIdMissing"}, {}}, nil},
			{blob.IfVersion("v"), []fakehttp.Reply{{Status: 412, Code: "ConditionNotMet"}}, blob.ErrPrecondition},
			{blob.IfVersion("v"), []fakehttp.Reply{{Status: 404, Code: "BlobNotFound"}}, blob.ErrPrecondition},
			{blob.IfVersion("v"), []fakehttp.Reply{{Status: 404, Code: "ContainerNotFound"}}, blob.ErrNoContainer},
			{blob.IfVersion("v"), []fakehttp.Reply{{Status: 503, Code: "ServerBusy"}, {}}, blob.ErrPrecondition},
		} {
			srv := fake(t, fakeaz.Options{})
			for _, op := range []string{"PutBlob", "PutBlockList"} {
				srv.Inject(fakehttp.Fault{Op: op, Replies: c.replies})
			}
			_, err := open(t, srv, small).Set(t.Context(), "k", blob.Bytes(content(size)), &blob.SetOptions{If: c.cond})
			if c.kind == nil {
				if err != nil {
					t.Errorf("%d bytes, %v: %v", size, c.cond, err)
				}
				continue
			}
			wantKind(t, err, c.kind)
			if blob.OutcomeOf(err) != blob.NotApplied {
				t.Errorf("%d bytes, %v: outcome of %v", size, c.cond, err)
			}
		}
	}
}

// A delete whose first reply was lost, and that then meets an absent key, has succeeded (thanos-io/objstore #261); so has one of a key that was
// never there. A moved version is a typed conflict.
func TestDeleteTwice(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	srv.PutBlob("box", "k", content(10), nil)
	st := open(t, srv, nil)
	srv.Inject(fakehttp.Fault{Op: "DeleteBlob", After: fakehttp.Reset})
	for range 2 {
		if err := st.Delete(t.Context(), "k", nil); err != nil {
			t.Error(err)
		}
	}
	wantLog(t, srv, strings.Repeat("DeleteBlob k snapshots=include -> 404\n", 2)+"DeleteBlob k snapshots=include -> none\n")
	info := set(t, st, "k", content(1), nil)
	set(t, st, "k", content(2), nil)
	wantKind(t, st.Delete(t.Context(), "k", &blob.DeleteOptions{If: blob.IfVersion(info.Version)}), blob.ErrPrecondition)
}

// How long to wait is read from all three headers.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{"x-ms-retry-after-ms": "1500"}, 1500 * time.Millisecond},
		{map[string]string{"retry-after-ms": "20"}, 20 * time.Millisecond},
		{map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{map[string]string{"Retry-After": "never", "x-ms-retry-after-ms": "-1"}, 0},
	} {
		srv := fake(t, fakeaz.Options{})
		srv.Inject(fakehttp.Fault{Reply: &fakehttp.Reply{Status: 503, Code: "ServerBusy", Header: c.header}})
		st := open(t, srv, func(o *azblob.Options) { o.Retry.Attempts = 1 })
		_, err := st.Stat(t.Context(), "k")
		var e *blob.Error
		if !errors.As(err, &e) || e.RetryAfter != c.want {
			t.Errorf("%v: %v", c.header, err)
		}
	}
}

// A read that is answered "not modified", which the SDK takes for a success, is none.
func TestNotModifiedIsNoContent(t *testing.T) {
	srv := fake(t, fakeaz.Options{})
	srv.PutBlob("box", "k", content(10), nil)
	srv.Inject(fakehttp.Fault{Op: "GetBlob", Times: -1, Reply: &fakehttp.Reply{Status: 304, Code: "ConditionNotMet", NoBody: true}})
	_, err := open(t, srv, nil).Get(t.Context(), "k", nil)
	wantKind(t, err, blob.ErrUnavailable)
}

// A refused signature names the clock if that is why.
func TestSkewedClockIsNamed(t *testing.T) {
	srv := fake(t, fakeaz.Options{Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	_, err := open(t, srv, nil).Stat(t.Context(), "k")
	wantKind(t, err, blob.ErrPermission)
	if err == nil || !strings.Contains(err.Error(), "clock differs from the service's by 1h0m") {
		t.Errorf("the error does not name the clock: %v", err)
	}
	if n := len(srv.Log()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// What is no listing is neither an empty nor the last page of one.
func TestForeignDocumentsAreNoListing(t *testing.T) {
	for _, body := range []string{
		"", "<html><body>Please log in</body></html>", `<?xml version="1.0"?><EnumerationResults><Blobs>`,
		`<?xml version="1.0"?><EnumerationResults></EnumerationResults>`,
		`<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>k</Name><Properties><Etag>e</Etag></Properties></Blob></Blobs><NextMarker /></EnumerationResults>`,
		`<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>k</Name></Blob></Blobs><NextMarker /></EnumerationResults>`,
	} {
		srv := fake(t, fakeaz.Options{Knobs: fakeaz.Knobs{Versioning: true}})
		srv.Inject(fakehttp.Fault{Op: "ListBlobs", Times: -1, Reply: &fakehttp.Reply{Status: http.StatusOK, Body: body, NoBody: body == ""}})
		st := open(t, srv, func(o *azblob.Options) { o.Restore = azblob.KeepsVersions })
		for _, delimiter := range []string{"", "/"} {
			if err := list(st, t, delimiter); err == nil {
				t.Errorf("%q is taken for a listing", body)
			}
		}
		if _, err := st.Restore(t.Context(), "x"); err == nil || errors.Is(err, blob.ErrNotFound) && !strings.Contains(body, "<NextMarker") {
			t.Errorf("%q: Restore: %v", body, err)
		}
	}
}
