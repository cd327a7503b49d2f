package s3blob_test

import (
	"fmt"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// mishap is a way in which a request fails.
type mishap struct {
	name  string
	fault fakes3.Fault
	kinds []error // of the error, if it reaches the caller
	lost  bool    // whether nobody can know if the request was handled
	final bool    // whether no further attempt would help

	silent bool // takes time: for a clock that is not the real one
	mild   bool // may do no harm
}

func mishaps() []mishap {
	gone, cut := []error{blob.ErrUnavailable}, []error{blob.ErrUnavailable, blob.ErrTruncated}
	ms := []mishap{
		{name: "403", fault: reply(403, "", 0), kinds: []error{blob.ErrPermission}, final: true},
		{name: "500", fault: reply(500, "", 0), kinds: gone, lost: true},
		{name: "503", fault: reply(503, "SlowDown", 0), kinds: []error{blob.ErrThrottled}},
		{name: "503 with Retry-After", fault: reply(503, "SlowDown", time.Second), kinds: []error{blob.ErrThrottled}, silent: true},
		{name: "500 after it was done", fault: fakes3.Fault{Reply: &fakes3.Reply{Status: 500, Commit: true}}, kinds: gone, lost: true},
	}
	for _, how := range []struct {
		name   string
		ending fakes3.Ending
	}{{"close", fakes3.Close}, {"reset", fakes3.Reset}, {"silence", fakes3.Silence}} {
		silent := how.ending == fakes3.Silence
		ms = append(ms,
			mishap{name: how.name + " before", fault: fakes3.Fault{Before: how.ending}, kinds: gone, lost: true, silent: silent},
			mishap{name: how.name + " after", fault: fakes3.Fault{After: how.ending}, kinds: gone, lost: true, silent: silent},
		)
		for _, at := range []int64{0, 1, 100, P - 1} {
			ms = append(ms, mishap{
				name: fmt.Sprintf("%s at byte %d", how.name, at), fault: fakes3.Fault{Cut: &fakes3.Cut{At: at, How: how.ending}},
				kinds: cut, lost: true, silent: silent, mild: true,
			})
		}
	}
	return ms
}

func reply(status int, code string, retryAfter time.Duration) fakes3.Fault {
	return fakes3.Fault{Reply: &fakes3.Reply{Status: status, Code: code, RetryAfter: retryAfter}}
}
