package blobtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// Config adapts the suite to a store. nil and the zero value are the
// defaults, which suit a store in memory.
type Config struct {
	// Deviations names the rules that the server behind the store breaks itself,
	// each with the reason. Such a rule runs all the same and must still fail: a deviation
	// that is gone fails the test. A name is that of a rule as in Rules, or of one of its cases
	// ("keys/round-trip/double-slash"). A panic or a rule that runs out of time is never excused.
	Deviations map[string]string

	// Pending names the rules, or cases, that the store does not keep yet, each with what will end that.
	// Such a rule runs all the same and must fail with blob.ErrUnsupported and nothing else.
	Pending map[string]string

	// Racy names the rules, or cases, that the server breaks itself only now and then, because of a race inside it, each with the
	// reason. Such a rule runs all the same; whether it held is logged and never asserted. A panic or a
	// rule that runs out of time still fails. Use Deviations wherever a rule fails each time.
	Racy map[string]string

	// PartSize is the size in bytes of the parts or segments in which the store moves large
	// objects: the suite tries sizes around its multiples. Give the store a small one. 0: 4 KiB.
	PartSize int64

	// LargeObject is the size in bytes of the largest object the suite writes. 0: the larger of
	// 1 MiB and three parts and a bit.
	LargeObject int64

	// ListKeys is how many keys a long listing has. It should be more than one page of
	// the store's listing. 0: 1100.
	ListKeys int

	// Racers is how many goroutines compete in rules about concurrency. 0: 8.
	Racers int

	// MaxKey and MaxKeySlashes are the longest key in bytes and the most slashes that Set
	// accepts, smaller than the limits of package blob in a view of a store under a prefix. 0: the limits of package blob.
	MaxKey        int
	MaxKeySlashes int

	// MaxGet returns a store like newStore's whose MaxGet is n bytes. nil: the rules about MaxGet do not run.
	MaxGet func(t *testing.T, n int64) blob.Blob

	// Foreign stores data under key past the store's own Set, as another program
	// would: key is one that blob.CheckKey refuses. nil: the rules about foreign keys do not run.
	Foreign func(t *testing.T, store blob.Blob, key string, data []byte)

	// Requests returns how many requests store has sent so far, retries included, for the rules about cost and about doing
	// no I/O. nil: the rules about cost do not run, and "no I/O" is checked by its effects alone.
	Requests func(store blob.Blob) int64

	// Timeout is how long one rule may take before it has failed. 0: 1 minute.
	Timeout time.Duration

	// Seed makes the contents and choices of a run the same again. 0: a random one, which is logged.
	Seed uint64
}

// settings are a Config with its defaults filled in.
type settings struct {
	Config
	newStore func(t *testing.T) blob.Blob
	run      string // begins every key of this run
}

func newSettings(t *testing.T, newStore func(t *testing.T) blob.Blob, c *Config) *settings {
	s := &settings{newStore: newStore}
	if c != nil {
		s.Config = *c
	}
	setDefault(&s.PartSize, 4<<10)
	setDefault(&s.LargeObject, max(1<<20, 3*s.PartSize+17))
	setDefault(&s.ListKeys, 1100)
	setDefault(&s.Racers, 8)
	setDefault(&s.MaxKey, blob.MaxKey)
	setDefault(&s.MaxKeySlashes, blob.MaxKeySlashes)
	setDefault(&s.Timeout, time.Minute)
	if s.Seed == 0 {
		s.Seed = rand.Uint64()
	}
	s.run = fmt.Sprintf("blobtest-%08x/", rand.Uint32()) // fresh even with an equal seed: runs may share a bucket
	t.Logf("blobtest: seed %d, keys under %q", s.Seed, s.run)
	return s
}

func setDefault[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

// excuses are the lists of rules that may fail, by the names of their fields.
func (s *settings) excuses() map[string]map[string]string {
	return map[string]map[string]string{"Deviations": s.Deviations, "Pending": s.Pending, "Racy": s.Racy}
}

// excused are all names in them.
func (s *settings) excused() []string {
	names := map[string]bool{}
	for _, m := range s.excuses() {
		for name := range m {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// mayFail reports whether the rule or case of that name may fail.
func (s *settings) mayFail(name string) bool {
	return s.Deviations[name] != "" || s.Pending[name] != "" || s.Racy[name] != ""
}

// checkNames finds the names in the lists that are no rule's, and those with two reasons or none. Cases are
// known once their rule runs: see runRule.
func (s *settings) checkNames(rules []rule) error {
	for _, name := range s.excused() {
		known := slices.ContainsFunc(rules, func(r rule) bool {
			return name == r.name || strings.HasPrefix(name, r.name+"/")
		})
		if !known {
			return fmt.Errorf("a deviation, pending or racy rule is named %q, which is no rule", name)
		}
		var in []string
		for field, m := range s.excuses() {
			if reason, ok := m[name]; ok {
				in = append(in, field)
				if reason == "" {
					return fmt.Errorf("%q is named without a reason", name)
				}
			}
		}
		if slices.Sort(in); len(in) > 1 {
			return fmt.Errorf("%q is named in more than one list: %s", name, strings.Join(in, ", "))
		}
	}
	return nil
}
