package blobtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// rule is one sentence of the contract of blob.Blob and its check.
type rule struct {
	name string // "group/rule", stable: users list it
	says string // the sentence, logged on failure
	run  func(e *env)

	own   bool                                           // gets a store of its own: it closes it, or uses keys of any shape
	needs func(c *Config, caps blob.Capabilities) string // why the rule does not apply, "" if it does; nil: always
}

func (r rule) group() string { g, _, _ := strings.Cut(r.name, "/"); return g }
func (r rule) short() string { _, s, _ := strings.Cut(r.name, "/"); return s }

// Rule is the name of a rule of the suite and the sentence it checks.
type Rule struct{ Name, Says string }

// Rules returns the rules of the suite, in the order in which Run checks them.
func Rules() []Rule {
	var list []Rule
	for _, r := range allRules() {
		list = append(list, Rule{r.name, r.says})
	}
	return list
}

// Run checks a store against every sentence of the contract of blob.Blob, each in a
// subtest of its own, named as in Rules.
//
// newStore is called a few dozen times, and all stores it has returned are closed by the suite. They may
// share a bucket or directory, which need not be empty but must not be used by others meanwhile; keys are
// unique to each run except in the group "keys", which needs keys of every shape, and are deleted at the end.
func Run(t *testing.T, newStore func(t *testing.T) blob.Blob, cfg *Config) {
	t.Helper()
	runRules(t, newStore, cfg, allRules())
}

func runRules(t *testing.T, newStore func(t *testing.T) blob.Blob, cfg *Config, rules []rule) {
	t.Helper()
	s := newSettings(t, newStore, cfg)
	if err := s.checkNames(rules); err != nil {
		t.Fatal("blobtest: ", err)
	}
	for len(rules) > 0 {
		name := rules[0].group()
		n := slices.IndexFunc(rules, func(r rule) bool { return r.group() != name })
		if n < 0 {
			n = len(rules)
		}
		members := rules[:n]
		t.Run(name, func(t *testing.T) { runGroup(t, s, name, members) })
		rules = rules[n:]
	}
}

// runGroup runs rules over one store that they share, each under its own prefix.
func runGroup(t *testing.T, s *settings, name string, rules []rule) {
	g := &group{settings: s, name: name, store: s.newStore(t)}
	g.caps = g.store.Capabilities()
	s.closeAtEnd(t, g.store, s.run+name+"/")
	for _, r := range rules {
		if r.needs != nil {
			if why := r.needs(&s.Config, g.caps); why != "" {
				t.Logf("not run: %s (%s): %s", r.name, r.says, why)
				for _, n := range s.excused() {
					if n == r.name || strings.HasPrefix(n, r.name+"/") {
						t.Errorf("%q is excused but does not run: %s", n, why)
					}
				}
				continue
			}
		}
		t.Run(r.short(), func(t *testing.T) { runRule(t, g, r) })
	}
}

// sweep deletes what rules left under prefix. It is a courtesy to the owner of the bucket and no
// check: a store that fails at it fails in the rules.
func sweep(ctx context.Context, store blob.Blob, prefix string) {
	var keys []string
	for info, err := range store.List(ctx, prefix, nil) {
		if err != nil || !strings.HasPrefix(info.Key, prefix) || len(keys) > 1<<20 {
			break
		}
		keys = append(keys, info.Key)
	}
	if len(keys) > 0 {
		_ = store.DeleteAll(ctx, keys)
	}
}

func allRules() []rule {
	return slices.Concat(
		capabilityRules(),
		getRules(), rangeRules(), getRangesRules(),
		setRules(), sourceRules(), streamRules(), conditionRules(), metadataRules(),
		statRules(), listRules(), delimiterRules(), deleteRules(), deleteAllRules(), restoreRules(),
		keyRules(), foreignRules(), errorRules(), contextRules(), sliceRules(), concurrencyRules(),
		linearRules(), costRules(), closeRules(),
	)
}
