package faultsweep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/fakehttp"
)

// op is an operation whose requests are made to fail one after the other.
type op struct {
	name    string
	setup   Setup
	config  Config
	prepare func(context.Context, Service) error // nil: nothing is there
	// run does it, and compares what a nil error came with: errWrong if that is not right.
	run func(context.Context, Service, blob.Blob) error
	// state is what the server holds now: before, after, or else a description of what must never be seen.
	state func(Service) string
	// commits are the requests that bring about the new state. None: the operation only reads.
	commits []Kind
	// once says that the operation must not be tried again after an outcome nobody knows.
	once bool
	// halfway says that the operation has several effects, so that one which fails later has an unknown outcome.
	halfway bool
	// keeps says that what the service keeps of deleted objects belongs to the state.
	keeps bool
	// keys are what it is about. None: theKey.
	keys []string
	// restarts says that the operation gives up requests in flight and begins anew, whatever becomes of them.
	restarts bool
	// inBubble says that it is swept in a bubble only.
	inBubble bool
	// judge replaces the common rules about err and the state. nil: they hold.
	judge func(s Service, err error, commitLost bool) error
}

const (
	before, after = "before", "after"

	theKey  = "k"
	leftKey = "left"
)

var errWrong = errors.New("wrong result without an error")

func (target *Target) ops() []op {
	all := slices.Concat(target.reads(), target.sets(), target.deletes())
	return slices.DeleteFunc(all, func(o op) bool { return target.Only != "" && o.name != target.Only })
}

// data are the contents of the objects old and new.
type data struct {
	part     int
	old, new []byte
}

func (target *Target) data() data {
	p := target.PartSize
	return data{p, content(3 * p), content(2*p + 1)}
}

// holds returns the state of the key, which only ever is the object old or the object want.
func (d data) holds(want []byte) func(Service) string {
	return func(s Service) string {
		obj, ok := s.Object(theKey)
		switch {
		case !ok:
			return "absent"
		case string(obj.Data) == string(want) && obj.Metadata["of"] == "new":
			return after
		case string(obj.Data) == string(d.old) && obj.Metadata["of"] == "":
			return before
		}
		return fmt.Sprintf("%d bytes with metadata %v", len(obj.Data), obj.Metadata)
	}
}

func (d data) putOld(_ context.Context, s Service) error {
	s.Put(theKey, inParts(d.old, d.part), nil)
	return nil
}

func unchanged(Service) string { return before }

func (target *Target) reads() []op {
	d := target.data()
	p := int64(d.part)
	ranges := Config{ReadRanges: true}
	read := func(name string, c Config, o *blob.GetOptions) op {
		return op{name: name, config: c, prepare: d.putOld, run: d.get(o), state: unchanged}
	}
	ops := []op{
		read("get in one piece", Config{ReadRanges: true, Segment: 16 * p}, nil),
		read("get by ranges", ranges, nil),
		read("get with its size known", ranges, &blob.GetOptions{Want: blob.Want{Size: int64(len(d.old)), HasSize: true}}),
		read("get of a range", Config{}, &blob.GetOptions{Range: blob.Span(p/2, 2*p)}),
		read("get of the end", Config{}, &blob.GetOptions{Range: blob.Last(2*p + 5)}),
		read("get of nothing", Config{}, &blob.GetOptions{Range: blob.Span(5, 0)}),
		{
			name: "get without ranges", setup: Setup{Shape: fakehttp.Shape{IgnoreRange: true, IgnorePartNumber: true}},
			prepare: d.putOld, run: d.get(nil), state: unchanged, restarts: true,
		},
		{name: "getranges", config: Config{Gap: 10}, prepare: d.putOld, run: d.getRanges, state: unchanged},
		{name: "stat", prepare: d.putOld, run: d.stat, state: unchanged},
		{name: "list", setup: Setup{PageSize: 2}, prepare: putKeys, run: list, state: unchanged},
	}
	if target.PartReads {
		ops = append(ops, read("get by parts", Config{}, nil))
	}
	if target.Revalidates {
		ops = append(ops, op{name: "get of what another has replaced", prepare: d.putOld, run: d.getReplaced, state: unchanged})
	}
	return ops
}

// getReplaced reads what another process has replaced just before.
func (d data) getReplaced(ctx context.Context, s Service, st blob.Blob) error {
	s.Put(theKey, inParts(d.new, d.part), nil)
	part, err := st.Get(ctx, theKey, &blob.GetOptions{Range: blob.Span(5, 100)})
	if err != nil {
		return err
	}
	obj, err := st.Get(ctx, theKey, nil)
	if err == nil && (string(part.Data) != string(d.new[5:105]) || string(obj.Data) != string(d.new)) {
		err = errWrong
	}
	return err
}

func (d data) get(o *blob.GetOptions) func(context.Context, Service, blob.Blob) error {
	return func(ctx context.Context, _ Service, st blob.Blob) error {
		obj, err := st.Get(ctx, theKey, o)
		if err != nil {
			return err
		}
		var r blob.Range
		if o != nil {
			r = o.Range
		}
		off, n, _ := r.Resolve(int64(len(d.old)))
		if string(obj.Data) != string(d.old[off:off+n]) || obj.Offset != off || obj.Size != int64(len(d.old)) {
			return errWrong
		}
		return nil
	}
}

func (d data) getRanges(ctx context.Context, _ Service, st blob.Blob) error {
	p := int64(d.part)
	rs := []blob.Range{blob.Span(0, 100), blob.Span(105, 100), blob.Span(p, 2*p), blob.Last(7), blob.Span(10, 0)}
	objs, err := st.GetRanges(ctx, theKey, rs, nil)
	if err != nil {
		return err
	}
	for i, r := range rs {
		off, n, _ := r.Resolve(int64(len(d.old)))
		if string(objs[i].Data) != string(d.old[off:off+n]) {
			return errWrong
		}
	}
	return nil
}

func (d data) stat(ctx context.Context, _ Service, st blob.Blob) error {
	info, err := st.Stat(ctx, theKey)
	if err == nil && info.Size != int64(len(d.old)) {
		return errWrong
	}
	return err
}

var listKeys = []string{"a", "b", "c", "d", "e"}

func putKeys(_ context.Context, s Service) error {
	for _, k := range listKeys {
		s.Put(k, nil, nil)
	}
	return nil
}

func list(ctx context.Context, _ Service, st blob.Blob) error {
	var keys []string
	for info, err := range st.List(ctx, "", nil) {
		if err != nil {
			if !slices.Equal(keys, listKeys[:len(keys)]) {
				return errWrong
			}
			return err
		}
		keys = append(keys, info.Key)
	}
	if !slices.Equal(keys, listKeys) {
		return errWrong
	}
	return nil
}
