package s3blob_test

import (
	"fmt"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
)

// A size that the caller knows lets all segments begin at once, none of them waiting for a first reply.
func TestKnownSizeStartsAllSegmentsAtOnce(t *testing.T) {
	const n = 5
	srv := fake(t, fakes3.Options{})
	data := content(n * P)
	srv.PutObject("b", "k", inParts(data, P), nil)
	in := srv.Inject(fakes3.Fault{Op: "GetObject", Times: -1, HoldBefore: true})
	go func() {
		_ = in.WaitFor(t.Context(), n) // all of them are there before one is answered
		in.Release()
	}()
	wantBytes(t, mustGet(t, openSmall(t, srv), "k", &blob.GetOptions{Want: blob.Want{Size: n * P, HasSize: true}}).Data, data)
	if got := len(srv.Log()); got != n {
		t.Errorf("%d requests, want %d:\n%s", got, n, srv.Log())
	}
}

// A manifest that is wrong about the size is told so, whatever the size really is; an object that is swapped meanwhile
// is never a blend; a server that ignores ranges is read all the same.
func TestKnownSizeIsChecked(t *testing.T) {
	for _, real := range []int{0, 1, P, 3*P - 1, 3*P + 1, 9 * P} {
		t.Run(fmt.Sprint(real), func(t *testing.T) {
			srv := fake(t, fakes3.Options{})
			srv.PutObject("b", "k", [][]byte{content(real)}, nil)
			want := blob.ErrCorrupt
			if real < 3*P {
				want = blob.ErrTruncated
			}
			wantKind(t, getError(openSmall(t, srv), "k", &blob.GetOptions{Want: blob.Want{Size: 3 * P, HasSize: true}}), want)
		})
	}
	t.Run("swapped", func(t *testing.T) {
		for nth := 1; nth <= 3; nth++ {
			srv := fake(t, fakes3.Options{})
			v1, v2 := content(3*P), content(6 * P)[3*P:]
			srv.PutObject("b", "k", [][]byte{v1}, nil)
			srv.Inject(fakes3.Fault{Op: "GetObject", Nth: nth, Then: func() { srv.PutObject("b", "k", [][]byte{v2}, nil) }})
			obj := mustGet(t, openSmall(t, srv), "k", &blob.GetOptions{Want: blob.Want{Size: 3 * P, HasSize: true}})
			if string(obj.Data) != string(v1) && string(obj.Data) != string(v2) {
				t.Errorf("swapped after request %d: a blend of both versions", nth)
			}
		}
	})
	t.Run("ranges ignored", func(t *testing.T) {
		srv := fake(t, fakes3.Options{Knobs: fakes3.Knobs{Shape: fakes3.Shape{IgnoreRange: true}}})
		srv.PutObject("b", "k", [][]byte{content(3 * P)}, nil)
		wantBytes(t, mustGet(t, openSmall(t, srv), "k", &blob.GetOptions{Want: blob.Want{Size: 3 * P, HasSize: true}}).Data, content(3*P))
	})
	t.Run("version asked for", func(t *testing.T) {
		srv := fake(t, fakes3.Options{})
		srv.PutObject("b", "k", [][]byte{content(3 * P)}, nil)
		st := openSmall(t, srv)
		want := blob.Want{Size: 3 * P, HasSize: true}
		info, err := st.Stat(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		mustGet(t, st, "k", &blob.GetOptions{Want: want, If: blob.IfVersion(info.Version)})
		wantKind(t, getError(st, "k", &blob.GetOptions{Want: want, If: blob.IfVersion("other")}), blob.ErrPrecondition)
	})
}
