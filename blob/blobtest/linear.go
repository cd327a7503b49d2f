package blobtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/wholeblob/wholeblob/blob"
)

// LinearOptions are the options of Linearizable. nil is the zero value.
type LinearOptions struct {
	Prefix  string // begins every key, which must be absent at first
	Keys    int    // 0: 3
	Clients int    // goroutines. 0: 6
	Ops     int    // operations of each client. 0: 40
	Size    int64  // bytes of the larger half of the objects. 0: 100
	Deletes bool   // delete too, with IfVersion

	// Tolerate takes errors of any kind for part of life, as under injected faults. What is checked then
	// is that their outcome is honest. False: a kind of error that no race explains fails.
	Tolerate bool

	Seed uint64 // of the clients' choices. 0: a random one, which is logged
}

// Linearizable lets clients read, and write on conditions, a few keys at once and checks that what they saw has an order
// in which every operation took effect at one moment between its call and its return. Clients are dealt to stores in
// turn: several handles of one store, even in decorators, are checked as one.
func Linearizable(t testing.TB, stores []blob.Blob, opts *LinearOptions) {
	t.Helper()
	o := LinearOptions{}
	if opts != nil {
		o = *opts
	}
	if o.Seed == 0 {
		o.Seed = RandomSeed(t)
	}
	if err := o.check(t.Context(), stores); err != nil {
		t.Error(err)
	}
}

// The operations of a history.
const (
	linGet     = "get"
	linCreate  = "set IfAbsent"
	linReplace = "set IfVersion"
	linDelete  = "delete IfVersion"
)

type linInput struct {
	op     string
	id     uint64 // content that is written
	expect uint64 // content whose version is the condition
}

type linResult uint8

const (
	linOK linResult = iota
	linRefused
	linUnknown
)

type linOutput struct {
	result linResult
	id     uint64 // content that was read, 0 if absent
}

// linRun is one run of clients.
type linRun struct {
	LinearOptions
	ctx   context.Context
	clock atomic.Int64 // orders calls and returns; real clocks may show two events at one time
	ids   atomic.Uint64

	mu struct {
		sync.Mutex
		history  map[string][]porcupine.Operation
		versions map[string]uint64 // of key and version: its content
		errs     []error
	}
}

func (o LinearOptions) check(ctx context.Context, stores []blob.Blob) error {
	setDefault(&o.Keys, 3)
	setDefault(&o.Clients, 6)
	setDefault(&o.Ops, 40)
	setDefault(&o.Size, 100)
	r := &linRun{LinearOptions: o, ctx: ctx}
	r.mu.history = map[string][]porcupine.Operation{}
	r.mu.versions = map[string]uint64{}
	var wg sync.WaitGroup
	for c := range o.Clients {
		wg.Go(func() { r.client(c, stores[c%len(stores)]) })
	}
	wg.Wait()
	if len(r.mu.errs) > 0 {
		return errors.Join(r.mu.errs...)
	}
	model := linModel()
	for key, h := range r.mu.history {
		switch porcupine.CheckOperationsTimeout(model, h, time.Minute) {
		case porcupine.Illegal:
			return fmt.Errorf("no order explains what %d clients saw of %q (seed %d):\n%s", o.Clients, key, o.Seed, describe(h))
		case porcupine.Unknown:
			return fmt.Errorf("the history of %q, of %d operations, is too long to be checked (seed %d)", key, len(h), o.Seed)
		}
	}
	return nil
}

// seen is the newest object of a key that a client knows of.
type seen struct {
	id      uint64
	version string
}

func (r *linRun) client(c int, store blob.Blob) {
	rnd := rand.New(rand.NewPCG(r.Seed, uint64(c)))
	known := map[string]seen{}
	for range r.Ops {
		if r.ctx.Err() != nil {
			return
		}
		key := fmt.Sprintf("%sregister-%d", r.Prefix, rnd.IntN(r.Keys))
		have := known[key]
		in := linInput{op: linGet}
		switch n := rnd.IntN(10); {
		case n < 2:
			in = linInput{op: linCreate, id: r.ids.Add(1)}
		case n < 6 && have.version != "":
			in = linInput{op: linReplace, id: r.ids.Add(1), expect: have.id}
		case n < 8 && have.version != "" && r.Deletes:
			in = linInput{op: linDelete, expect: have.id}
		}
		size := r.Size * rnd.Int64N(2)
		for range rnd.IntN(20) { // a store that never waits would let the clients run one after the other
			runtime.Gosched()
		}
		known[key] = r.step(c, store, key, in, have, size)
	}
}

// step does one operation and notes it. It returns what the client knows afterwards.
func (r *linRun) step(c int, store blob.Blob, key string, in linInput, have seen, size int64) seen {
	call := r.clock.Add(1)
	var now seen
	var err error
	switch in.op {
	case linGet:
		now, err = r.get(store, key)
	case linCreate, linReplace:
		cond := blob.IfAbsent()
		if in.op == linReplace {
			cond = blob.IfVersion(have.version)
		}
		var info blob.Info
		info, err = store.Set(r.ctx, key, blob.Bytes(selfDescribing(in.id, size)), &blob.SetOptions{If: cond})
		now = seen{in.id, info.Version}
	case linDelete:
		err = store.Delete(r.ctx, key, &blob.DeleteOptions{If: blob.IfVersion(have.version)})
	}
	ret := r.clock.Add(1)
	out, counts := r.judge(in, err)
	if !counts {
		return have
	}
	if in.op == linGet {
		out.id = now.id
	}
	if out.result == linUnknown {
		ret = math.MaxInt64 // it may happen at any time from now on
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.history[key] = append(r.mu.history[key], porcupine.Operation{ClientId: c, Input: in, Call: call, Output: out, Return: ret})
	if err != nil {
		return have
	}
	if now.version != "" {
		name := key + "\x00" + now.version
		if was, ok := r.mu.versions[name]; ok && was != now.id {
			r.mu.errs = append(r.mu.errs, fmt.Errorf("version %q of %q names the contents %d and %d", now.version, key, was, now.id))
		}
		r.mu.versions[name] = now.id
	}
	return now
}

func (r *linRun) get(store blob.Blob, key string) (seen, error) {
	o, err := store.Get(r.ctx, key, nil)
	if errors.Is(err, blob.ErrNotFound) {
		return seen{}, nil
	}
	if err != nil {
		return seen{}, err
	}
	id, err := identify(o.Data)
	if err != nil {
		r.fail(fmt.Errorf("Get(%q): %w", key, err))
	}
	return seen{id, o.Version}, nil
}

func (r *linRun) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.errs = append(r.mu.errs, err)
}

// judge turns the error of an operation into its output. counts is false for an operation without effect
// that says nothing about the state.
func (r *linRun) judge(in linInput, err error) (out linOutput, counts bool) {
	kind := blob.KindOf(err)
	switch {
	case err == nil:
		return linOutput{result: linOK}, true
	case kind == blob.ErrConflict, kind == blob.ErrChanged && in.op == linGet:
		return out, false
	case in.op == linCreate && kind == blob.ErrExists, in.op != linCreate && in.op != linGet && kind == blob.ErrPrecondition:
		return linOutput{result: linRefused}, true
	case !r.Tolerate:
		r.fail(fmt.Errorf("%s: %w", in.op, err))
		return out, false
	case in.op == linGet, blob.OutcomeOf(err) == blob.NotApplied:
		return out, false
	}
	return linOutput{result: linUnknown}, true
}

// linModel is one key: its state is the id of its content, 0 if it is absent.
func linModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{uint64(0)} },
		Step: func(state, input, output any) []any {
			return linStep(state.(uint64), input.(linInput), output.(linOutput))
		},
	}
	return m.ToModel()
}

// linStep returns the states that may follow.
func linStep(s uint64, in linInput, out linOutput) []any {
	if in.op == linGet {
		if out.id == s {
			return []any{s}
		}
		return nil
	}
	var after uint64
	var holds bool
	switch in.op {
	case linCreate:
		holds, after = s == 0, in.id
	case linReplace:
		holds, after = s == in.expect, in.id
	case linDelete: // of a missing key it is no error
		holds, after = s == in.expect || s == 0, 0
	}
	switch {
	case out.result == linOK && holds:
		return []any{after}
	case out.result == linRefused && !holds:
		return []any{s}
	case out.result == linUnknown && holds && after != s:
		return []any{s, after}
	case out.result == linUnknown:
		return []any{s}
	}
	return nil
}

// describe writes a history as one line per operation.
func describe(h []porcupine.Operation) string {
	text := ""
	for _, op := range h {
		in, out := op.Input.(linInput), op.Output.(linOutput)
		ret := fmt.Sprint(op.Return)
		if op.Return == math.MaxInt64 {
			ret = "?"
		}
		text += fmt.Sprintf("  [%d, %s] client %d: %s content %d, expects %d: ", op.Call, ret, op.ClientId, in.op, in.id, in.expect)
		switch {
		case out.result == linUnknown:
			text += "unknown\n"
		case out.result == linRefused:
			text += "refused\n"
		case in.op == linGet:
			text += fmt.Sprintf("read %d\n", out.id)
		default:
			text += "done\n"
		}
	}
	return text
}
