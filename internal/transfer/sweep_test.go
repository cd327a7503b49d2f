package transfer

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// abandon leaves uploads in the service that no Store knows.
func (s *service) abandon(keys ...string) {
	for _, key := range keys {
		s.mu.Lock()
		s.mu.serial++
		id := fmt.Sprintf("u%d", s.mu.serial)
		s.mu.uploads[id] = &pending{key: key, parts: map[int][]byte{}}
		s.mu.Unlock()
	}
}

func uploadPage(token string, ups ...string) UploadPage {
	p := UploadPage{Token: token}
	for i := 0; i < len(ups); i += 2 {
		p.Uploads = append(p.Uploads, Upload{Key: ups[i], ID: ups[i+1], Started: time.Unix(1, 0)})
	}
	return p
}

// A Sweep that ends in an error tells what it has done before.
func TestSweepTellsWhatItDid(t *testing.T) {
	for what, c := range map[string]struct {
		second func() UploadPage
		refuse bool
		kind   error
	}{
		"the second page fails":     {nil, true, blob.ErrPermission},
		"pages in a circle":         {func() UploadPage { return uploadPage("2") }, false, blob.ErrCorrupt},
		"another program's uploads": {func() UploadPage { return uploadPage("", "q/x", "u9") }, false, blob.ErrCorrupt},
	} {
		s := serve(t, s3Like())
		s.abandon("p/a", "p/b")
		s.before = func(_ context.Context, r request) error {
			switch {
			case r.verb == "uploads" && r.nth == 2 && c.refuse, r.verb == "abort" && r.key == "p/b":
				return refusal(blob.ErrPermission)
			}
			return nil
		}
		s.uploads = func(token string) UploadPage {
			if token == "" {
				return uploadPage("2", "p/a", "u1", "p/b", "u2")
			}
			return c.second()
		}
		res, err := open(t, s, func(o *Options) { o.Prefix = "p/" }).Sweep(t.Context(), time.Hour)
		if e := wantKind(t, err, c.kind); e.Op != blob.OpSweep {
			t.Errorf("%#v", e)
		}
		wantKeys(t, res.Aborted, []string{"a u1"})
		wantKeys(t, res.Failed, []string{"b u2"})
		if n := s.requests("uploads"); n > 4 {
			t.Errorf("%s: %d requests", what, n)
		}
	}
}

// However young an upload may be that is to be swept, one that this Store is just beginning is left alone, though its id is not known
// yet; so is one in progress. When it has come to nothing it is no longer ours.
func TestSweepLeavesOwnUploadsAlone(t *testing.T) {
	for _, c := range []struct {
		verb   string
		loseIt bool
	}{{"begin", false}, {"begin", true}, {"part", false}, {"commit", false}} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, s3Like())
			s.abandon("other")
			goOn := make(chan struct{})
			s.after = func(_ context.Context, r request) error {
				if r.verb == c.verb && r.nth == 1 && r.verb != "commit" {
					<-goOn
				}
				if c.loseIt && r.verb == c.verb {
					return lost()
				}
				return nil
			}
			s.before = func(_ context.Context, r request) error {
				if r.verb == "commit" && c.verb == "commit" {
					<-goOn
				}
				return nil
			}
			st := open(t, s, func(o *Options) { o.SweepAll = true })
			done := make(chan error, 1)
			go func() {
				_, err := st.Set(t.Context(), "k", blob.Bytes(content(250)), nil)
				done <- err
			}()
			synctest.Wait()
			res, err := st.Sweep(t.Context(), 0)
			if err != nil || res.Kept != 1 {
				t.Errorf("%s: %+v, %v", c.verb, res, err)
			}
			wantKeys(t, res.Aborted, []string{"other u1"})
			close(goOn)
			if err := <-done; (err == nil) == c.loseIt {
				t.Error(err)
			}
			if c.loseIt { // nobody knows their ids: three attempts have begun three
				if res, err := st.Sweep(t.Context(), 0); err != nil || len(res.Aborted) != 3 {
					t.Errorf("%+v, %v", res, err)
				}
			}
			if len(st.clean.mu.begins)+len(st.clean.mu.active) > 0 {
				t.Error("something is remembered for ever")
			}
		})
	}
}
