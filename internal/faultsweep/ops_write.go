package faultsweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

var sources = map[string]func([]byte) blob.Source{
	"Bytes":    blob.Bytes,
	"ReaderAt": func(b []byte) blob.Source { return blob.ReaderAt(bytes.NewReader(b), int64(len(b))) },
}

func (target *Target) sets() []op {
	d := target.data()
	var ops []op
	for _, size := range []int{100, len(d.new)} {
		for _, source := range slices.Sorted(maps.Keys(sources)) {
			for _, cond := range []string{"", "IfAbsent", "IfVersion", "AtMostOnce"} {
				if target.Brief && source == "ReaderAt" && cond != "" {
					continue
				}
				ops = append(ops, d.set(d.new[:size], source, cond))
			}
		}
	}
	if target.Forgets {
		forgets := ops[len(ops)/2]
		forgets.name += ", forgotten by the server"
		forgets.setup.Forgets = true
		ops = append(ops, forgets)
	}
	return ops
}

func (d data) set(data []byte, source, cond string) op {
	o := op{
		name:    strings.TrimSpace(fmt.Sprintf("set %d %s %s", len(data), source, cond)),
		prepare: d.putOld, state: d.holds(data),
		commits: []Kind{Put, Commit}, once: cond != "", inBubble: source == "ReaderAt",
	}
	if cond == "IfAbsent" {
		o.prepare = nil
		o.state = func(s Service) string {
			if state := d.holds(data)(s); state != "absent" {
				return state
			}
			return before
		}
	}
	o.run = func(ctx context.Context, s Service, st blob.Blob) error {
		so := &blob.SetOptions{Metadata: map[string]string{"of": "new"}, AtMostOnce: cond == "AtMostOnce"}
		switch cond {
		case "IfAbsent":
			so.If = blob.IfAbsent()
		case "IfVersion":
			obj, _ := s.Object(theKey)
			so.If = blob.IfVersion(obj.Version)
		}
		info, err := st.Set(ctx, theKey, sources[source](data), so)
		if obj, ok := s.Object(theKey); err == nil && (!ok || obj.Version != info.Version) {
			return errWrong
		}
		return err
	}
	return o
}

func (target *Target) deletes() []op {
	d := target.data()
	gone := func(s Service) string {
		if state := d.holds(nil)(s); state != "absent" {
			return state
		}
		return after
	}
	remove := func(cond bool) func(context.Context, Service, blob.Blob) error {
		return func(ctx context.Context, s Service, st blob.Blob) error {
			o := &blob.DeleteOptions{}
			if obj, ok := s.Object(theKey); cond && ok {
				o.If = blob.IfVersion(obj.Version)
			}
			return st.Delete(ctx, theKey, o)
		}
	}
	many := make([]string, target.Batch+1)
	for i := range many {
		many[i] = fmt.Sprintf("key %04d", i)
	}
	few := []string{"a", "b", "c", "d", "e"}
	ops := []op{
		{name: "delete", prepare: d.putOld, run: remove(false), state: gone, commits: []Kind{Delete}},
		{name: "delete IfVersion", prepare: d.putOld, run: remove(true), state: gone, commits: []Kind{Delete}, once: true},
		deleteAll("deleteall one by one", Setup{NoBatch: true}, few),
	}
	if target.Batch > 0 {
		ops = append(ops, deleteAll("deleteall", Setup{}, many))
	}
	if target.Restore {
		ops = append(ops, d.restore())
	}
	if target.LeaveUploads != nil {
		ops = append(ops, target.sweepUploads())
	}
	return ops
}

func deleteAll(name string, setup Setup, keys []string) op {
	return op{
		name: name, setup: setup, commits: []Kind{Delete}, keys: []string{keys[0], keys[len(keys)/2], keys[len(keys)-1]},
		prepare: func(_ context.Context, s Service) error {
			for _, k := range keys {
				s.Put(k, nil, nil)
			}
			return nil
		},
		run: func(ctx context.Context, _ Service, st blob.Blob) error { return st.DeleteAll(ctx, keys) },
		judge: func(s Service, err error, commitLost bool) error {
			return judgeKeys(s, keys, err, commitLost)
		},
	}
}

// judgeKeys checks that the error of a DeleteAll says of every key what became of it.
func judgeKeys(s Service, keys []string, err error, commitLost bool) error {
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
		_, there := s.Object(k)
		unknown := failed[k] != nil && blob.OutcomeOf(failed[k]) == blob.Unknown
		if unknown && !commitLost || !unknown && there != (failed[k] != nil) {
			return fmt.Errorf("%q is there: %t, its error: %w", k, there, failed[k])
		}
	}
	return nil
}

// restore undoes two deletes of the same object.
func (d data) restore() op {
	return op{
		name: "restore", setup: Setup{Restore: true, PageSize: 2}, config: Config{Restore: true},
		prepare: func(_ context.Context, s Service) error {
			s.Put(theKey, inParts(d.new, d.part), map[string]string{"of": "new"})
			s.Remove(theKey)
			s.Remove(theKey)
			return nil
		},
		run: func(ctx context.Context, _ Service, st blob.Blob) error {
			info, err := st.Restore(ctx, theKey)
			if err == nil && info.Size != int64(len(d.new)) {
				return errWrong
			}
			return err
		},
		state: func(s Service) string {
			if state := d.holds(d.new)(s); state != "absent" {
				return state
			}
			return before
		},
		commits: []Kind{Revive}, halfway: true, keeps: true,
	}
}

// sweepUploads aborts three uploads that another process left.
func (target *Target) sweepUploads() op {
	const n = 3
	return op{
		name:    "sweep",
		setup:   Setup{PageSize: 2, Now: func() time.Time { return time.Now().Add(-time.Hour) }},
		config:  Config{SweepAll: true},
		prepare: func(ctx context.Context, s Service) error { return target.LeaveUploads(ctx, s, n) },
		run: func(ctx context.Context, s Service, st blob.Blob) error {
			res, err := target.Sweep(ctx, st, time.Minute)
			if err == nil && (len(res.Aborted)+len(res.Failed) != n || res.Kept != 0 || len(s.Uploads()) > len(res.Failed)) {
				return errWrong
			}
			return err
		},
		judge: func(Service, error, bool) error { return nil },
	}
}
