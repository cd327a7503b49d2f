package s3blob_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakes3"
	"github.com/wholeblob/wholeblob/s3blob"
)

// sweepOp is an operation whose requests are made to fail one after the other.
type sweepOp struct {
	name  string
	so    fakes3.Options
	edit  func(*s3blob.Options)
	setup func(*fakes3.Server) error
	// run does it, and compares what a nil error came with: errWrong if that is not right.
	run func(ctx context.Context, srv *fakes3.Server, st *s3blob.Store) error
	// state is what the server holds now: before, after, or else a description of what must never be seen.
	state func(*fakes3.Server) string
	// commits are the requests that bring about the new state. None: the operation only reads.
	commits []string
	// once says that the operation must not be tried again after an outcome nobody knows.
	once bool
	// halfway says that the operation has several effects, so that one which fails later has an unknown outcome.
	halfway bool
	// restarts says that the operation gives up requests in flight and begins anew, whatever becomes of them.
	restarts bool
	// judge replaces the common rules about err and the state. nil: they hold.
	judge func(srv *fakes3.Server, err error, commitLost bool) error
}

const before, after = "before", "after"

var errWrong = errors.New("wrong result without an error")

var (
	sweepOld = content(3 * P)
	sweepNew = content(2*P + 1)
)

// holds returns the state of key k, which only ever is the object old or the object data.
func holds(data []byte) func(*fakes3.Server) string {
	return func(srv *fakes3.Server) string {
		obj, ok := srv.Object("b", "k")
		switch {
		case !ok:
			return "absent"
		case string(obj.Bytes()) == string(data) && obj.Metadata["of"] == "new":
			return after
		case string(obj.Bytes()) == string(sweepOld) && obj.Metadata["of"] == "":
			return before
		}
		return fmt.Sprintf("%d bytes with metadata %v", obj.Size, obj.Metadata)
	}
}

func putOld(srv *fakes3.Server) error {
	srv.PutObject("b", "k", inParts(sweepOld, P), nil)
	return nil
}

func unchanged(*fakes3.Server) string { return before }

func sweepOps() []sweepOp {
	return slices.Concat(sweepReads(), sweepSets(), sweepDeletes())
}

func sweepReads() []sweepOp {
	get := func(o *blob.GetOptions) func(context.Context, *fakes3.Server, *s3blob.Store) error {
		return func(ctx context.Context, _ *fakes3.Server, st *s3blob.Store) error {
			obj, err := st.Get(ctx, "k", o)
			if err != nil {
				return err
			}
			var r blob.Range
			if o != nil {
				r = o.Range
			}
			off, n, _ := r.Resolve(int64(len(sweepOld)))
			if string(obj.Data) != string(sweepOld[off:off+n]) || obj.Offset != off || obj.Size != int64(len(sweepOld)) {
				return errWrong
			}
			return nil
		}
	}
	ranges := func(o *s3blob.Options) { o.ReadRanges = true }
	known := &blob.GetOptions{Want: blob.Want{Size: int64(len(sweepOld)), HasSize: true}}
	read := func(name string, edit func(*s3blob.Options), o *blob.GetOptions) sweepOp {
		return sweepOp{name: name, edit: edit, setup: putOld, run: get(o), state: unchanged}
	}
	large := func(o *s3blob.Options) { o.Segment = 1 << 20 }
	return []sweepOp{
		read("get in one piece", func(o *s3blob.Options) { ranges(o); large(o) }, nil),
		read("get by parts", nil, nil),
		read("get by ranges", ranges, nil),
		read("get with its size known", ranges, known),
		read("get of a range", nil, &blob.GetOptions{Range: blob.Span(P/2, 2*P)}),
		read("get of the end", nil, &blob.GetOptions{Range: blob.Last(2*P + 5)}),
		read("get of nothing", nil, &blob.GetOptions{Range: blob.Span(5, 0)}),
		{
			name: "get without ranges", so: fakes3.Options{Knobs: fakes3.Knobs{Shape: fakes3.Shape{IgnoreRange: true, IgnorePartNumber: true}}},
			setup: putOld, run: get(nil), state: unchanged, restarts: true,
		},
		{name: "getranges", edit: func(o *s3blob.Options) { o.Gap = 10 }, setup: putOld, run: sweepGetRanges, state: unchanged},
		{name: "stat", setup: putOld, run: sweepStat, state: unchanged},
		{
			name: "list", so: fakes3.Options{Knobs: fakes3.Knobs{PageSize: 2}},
			setup: func(srv *fakes3.Server) error {
				for _, k := range sweepKeys {
					srv.PutObject("b", k, nil, nil)
				}
				return nil
			},
			run: sweepList, state: unchanged,
		},
	}
}

var sweepKeys = []string{"a", "b", "c", "d", "e"}

func sweepGetRanges(ctx context.Context, _ *fakes3.Server, st *s3blob.Store) error {
	rs := []blob.Range{blob.Span(0, 100), blob.Span(105, 100), blob.Span(P, 2*P), blob.Last(7), blob.Span(10, 0)}
	objs, err := st.GetRanges(ctx, "k", rs, nil)
	if err != nil {
		return err
	}
	for i, r := range rs {
		off, n, _ := r.Resolve(int64(len(sweepOld)))
		if string(objs[i].Data) != string(sweepOld[off:off+n]) {
			return errWrong
		}
	}
	return nil
}

func sweepStat(ctx context.Context, _ *fakes3.Server, st *s3blob.Store) error {
	info, err := st.Stat(ctx, "k")
	if err == nil && info.Size != int64(len(sweepOld)) {
		return errWrong
	}
	return err
}

func sweepList(ctx context.Context, _ *fakes3.Server, st *s3blob.Store) error {
	var keys []string
	for info, err := range st.List(ctx, "", nil) {
		if err != nil {
			if !slices.Equal(keys, sweepKeys[:len(keys)]) {
				return errWrong
			}
			return err
		}
		keys = append(keys, info.Key)
	}
	if !slices.Equal(keys, sweepKeys) {
		return errWrong
	}
	return nil
}

func sweepSets() []sweepOp {
	var ops []sweepOp
	for _, size := range []int{100, len(sweepNew)} {
		data := sweepNew[:size]
		for _, source := range slices.Sorted(maps.Keys(sources)) {
			for _, cond := range []string{"", "IfAbsent", "IfVersion", "AtMostOnce"} {
				op := sweepOp{
					name: strings.TrimSpace(fmt.Sprintf("set %d %s %s", size, source, cond)),
					so:   fakes3.Options{MinPartSize: -1}, setup: putOld, state: holds(data),
					commits: []string{"PutObject", "CompleteMultipartUpload"}, once: cond != "",
				}
				if cond == "IfAbsent" {
					op.setup = nil
					op.state = func(srv *fakes3.Server) string {
						if s := holds(data)(srv); s != "absent" {
							return s
						}
						return before
					}
				}
				op.run = func(ctx context.Context, srv *fakes3.Server, st *s3blob.Store) error {
					o := &blob.SetOptions{Metadata: map[string]string{"of": "new"}, AtMostOnce: cond == "AtMostOnce"}
					switch cond {
					case "IfAbsent":
						o.If = blob.IfAbsent()
					case "IfVersion":
						obj, _ := srv.Object("b", "k")
						o.If = blob.IfVersion(strings.Trim(obj.ETag, `"`))
					}
					info, err := st.Set(ctx, "k", sources[source](data), o)
					if obj, ok := srv.Object("b", "k"); err == nil && (!ok || obj.ETag != `"`+info.Version+`"`) {
						return errWrong
					}
					return err
				}
				ops = append(ops, op)
			}
		}
	}
	forgets := ops[len(ops)/2]
	forgets.name += ", forgotten by the server"
	forgets.so.Knobs.ForgetUploads = true
	return append(ops, forgets)
}

func sweepDeletes() []sweepOp {
	gone := func(srv *fakes3.Server) string {
		if s := holds(nil)(srv); s != "absent" {
			return s
		}
		return after
	}
	remove := func(cond bool) func(context.Context, *fakes3.Server, *s3blob.Store) error {
		return func(ctx context.Context, srv *fakes3.Server, st *s3blob.Store) error {
			o := &blob.DeleteOptions{}
			if obj, ok := srv.Object("b", "k"); cond && ok {
				o.If = blob.IfVersion(strings.Trim(obj.ETag, `"`))
			}
			return st.Delete(ctx, "k", o)
		}
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("key %04d", i)
	}
	return []sweepOp{
		{name: "delete", setup: putOld, run: remove(false), state: gone, commits: []string{"DeleteObject"}},
		{name: "delete IfVersion", setup: putOld, run: remove(true), state: gone, commits: []string{"DeleteObject"}, once: true},
		deleteAllOp("deleteall", fakes3.Knobs{}, many),
		deleteAllOp("deleteall one by one", fakes3.Knobs{NoBatchDelete: true}, many[:5]),
		restoreOp(),
		sweepUploadsOp(),
	}
}

func deleteAllOp(name string, knobs fakes3.Knobs, keys []string) sweepOp {
	return sweepOp{
		name: name, so: fakes3.Options{FastETag: true, Knobs: knobs}, commits: []string{"DeleteObjects", "DeleteObject"},
		setup: func(srv *fakes3.Server) error {
			for _, k := range keys {
				srv.PutObject("b", k, nil, nil)
			}
			return nil
		},
		run: func(ctx context.Context, _ *fakes3.Server, st *s3blob.Store) error { return st.DeleteAll(ctx, keys) },
		judge: func(srv *fakes3.Server, err error, commitLost bool) error {
			failed := make(map[string]error)
			if de := (*blob.DeleteError)(nil); errors.As(err, &de) {
				for _, f := range de.Failed {
					if failed[f.Key] != nil {
						return fmt.Errorf("%q failed twice", f.Key)
					}
					failed[f.Key] = f.Err
				}
			} else if err != nil {
				return fmt.Errorf("no DeleteError: %w", err)
			}
			for _, k := range keys {
				_, there := srv.Object("b", k)
				unknown := failed[k] != nil && blob.OutcomeOf(failed[k]) == blob.Unknown
				if unknown && !commitLost || !unknown && there != (failed[k] != nil) {
					return fmt.Errorf("%q is there: %t, its error: %w", k, there, failed[k])
				}
			}
			return nil
		},
	}
}

// restoreOp undoes two deletes of the same object.
func restoreOp() sweepOp {
	return sweepOp{
		name: "restore", so: fakes3.Options{Versioned: true, Knobs: fakes3.Knobs{PageSize: 2}},
		edit: func(o *s3blob.Options) { o.Restore = true },
		setup: func(srv *fakes3.Server) error {
			srv.PutObject("b", "k", inParts(sweepNew, P), &fakes3.PutOptions{Metadata: map[string]string{"of": "new"}})
			srv.DeleteObject("b", "k")
			srv.DeleteObject("b", "k")
			return nil
		},
		run: func(ctx context.Context, _ *fakes3.Server, st *s3blob.Store) error {
			info, err := st.Restore(ctx, "k")
			if err == nil && info.Size != int64(len(sweepNew)) {
				return errWrong
			}
			return err
		},
		state: func(srv *fakes3.Server) string {
			if s := holds(sweepNew)(srv); s != "absent" {
				return s
			}
			if n := len(srv.Versions("b", "k")); n != 3 {
				return fmt.Sprintf("absent with %d versions", n) // one mark of two has been removed
			}
			return before
		},
		commits: []string{"DeleteObject"}, halfway: true,
	}
}

// sweepUploadsOp aborts three uploads that another process left.
func sweepUploadsOp() sweepOp {
	const n = 3
	return sweepOp{
		name: "sweep",
		so: fakes3.Options{
			Anonymous: true, Knobs: fakes3.Knobs{PageSize: 2},
			Now: func() time.Time { return time.Now().Add(-time.Hour) },
		},
		edit: func(o *s3blob.Options) { o.AllowWholeBucket = true },
		setup: func(srv *fakes3.Server) error {
			c := srv.Client()
			defer c.CloseIdleConnections()
			for range n {
				req, err := http.NewRequest(http.MethodPost, srv.URL()+"/b/left?uploads", http.NoBody) //nolint:noctx // a server in this process
				if err != nil {
					return err
				}
				reply, err := c.Do(req)
				if err != nil {
					return err
				}
				_ = reply.Body.Close()
			}
			return nil
		},
		run: func(ctx context.Context, srv *fakes3.Server, st *s3blob.Store) error {
			res, err := st.Sweep(ctx, time.Minute)
			if err == nil && (len(res.Aborted)+len(res.Failed) != n || res.Kept != 0 || len(srv.Uploads("b")) > len(res.Failed)) {
				return errWrong
			}
			return err
		},
		judge: func(*fakes3.Server, error, bool) error { return nil },
	}
}
