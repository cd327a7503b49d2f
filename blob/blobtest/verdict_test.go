package blobtest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// expectation is one run of the suite and what it must come to. The runs that must fail run in a process of their
// own, this test binary again.
type expectation struct {
	name    string
	config  Config
	breakIt func(b *broken)
	rules   []string
	wants   []string // texts in the output of a run that fails; none: it passes
	logs    []string // texts in the output of a run that passes
}

func dropIf(b *broken) {
	b.setOptions(func(_ string, _ blob.Source, o *blob.SetOptions) { o.If = blob.Condition{} })
}

func verdicts() []expectation {
	const rule = "condition/if-absent"
	unsupported := func(b *broken) {
		b.set = func(_ context.Context, key string, _ blob.Source, _ *blob.SetOptions) (blob.Info, error) {
			return blob.Info{}, fails(blob.OpSet, key, blob.ErrUnsupported)
		}
	}
	return []expectation{
		{name: "a sound store passes", rules: []string{rule}},
		{name: "a broken rule is named with its sentence", rules: []string{rule}, breakIt: dropIf,
			wants: []string{"rule broken: condition/if-absent: Set with IfAbsent creates", "condition_rules.go:"}},
		{name: "a deviation passes", rules: []string{rule}, breakIt: dropIf, config: Config{Deviations: map[string]string{rule: "known"}}},
		{name: "a deviation that is gone fails", rules: []string{rule}, config: Config{Deviations: map[string]string{rule: "known"}},
			wants: []string{"condition/if-absent is listed as a deviation (known) but holds"}},
		{name: "a deviating case hides no other", rules: []string{"keys/round-trip"}, breakIt: renamed(foldSlashes), config: Config{Deviations: map[string]string{"keys/round-trip/double-slash": "known"}},
			wants: []string{"--- FAIL: TestVerdictChild/keys/round-trip/triple-slash", "--- PASS: TestVerdictChild/keys/round-trip/double-slash"}},
		{name: "a deviating case that is gone fails", rules: []string{"keys/round-trip"}, config: Config{Deviations: map[string]string{"keys/round-trip/double-slash": "known"}},
			wants: []string{"keys/round-trip/double-slash is listed as a deviation (known) but holds"}},
		{name: "a pending rule passes", rules: []string{rule}, breakIt: unsupported, config: Config{Pending: map[string]string{rule: "the next release"}}},
		{name: "a pending rule that holds fails", rules: []string{rule}, config: Config{Pending: map[string]string{rule: "the next release"}},
			wants: []string{"condition/if-absent is listed as pending (the next release) but holds"}},
		{name: "a pending rule that fails otherwise fails", rules: []string{rule}, breakIt: dropIf, config: Config{Pending: map[string]string{rule: "the next release"}},
			wants: []string{"may fail with ErrUnsupported only"}},
		{name: "a racy rule that is broken passes", rules: []string{rule}, breakIt: dropIf, config: Config{Racy: map[string]string{rule: "now and then"}},
			logs: []string{"racy: condition/if-absent: now and then: broken this time\n"}},
		{name: "a racy rule that holds passes", rules: []string{rule}, config: Config{Racy: map[string]string{rule: "now and then"}},
			logs: []string{"racy: condition/if-absent: now and then: held this time\n"}},
		{name: "a racy case hides no other", rules: []string{"keys/round-trip"}, breakIt: renamed(foldSlashes), config: Config{Racy: map[string]string{"keys/round-trip/double-slash": "now and then"}},
			wants: []string{"--- FAIL: TestVerdictChild/keys/round-trip/triple-slash", "--- PASS: TestVerdictChild/keys/round-trip/double-slash"}},
		{name: "a racy rule covers its cases", rules: []string{"keys/round-trip"}, breakIt: renamed(foldSlashes), config: Config{Racy: map[string]string{"keys/round-trip": "now and then"}},
			logs: []string{"racy: keys/round-trip: now and then: broken this time\n"}},
		{name: "an unknown racy name fails", rules: []string{rule}, config: Config{Racy: map[string]string{"condition/if-absnet": "typo"}},
			wants: []string{`"condition/if-absnet", which is no rule`}},
		{name: "an unknown racy case fails", rules: []string{rule}, config: Config{Racy: map[string]string{rule + "/large": "typo"}},
			wants: []string{`"condition/if-absent/large", but condition/if-absent has no such case`}},
		{name: "a racy name without a reason fails", rules: []string{rule}, config: Config{Racy: map[string]string{rule: ""}},
			wants: []string{"without a reason"}},
		{name: "a name in two lists fails", rules: []string{rule}, config: Config{Racy: map[string]string{rule: "sometimes"}, Deviations: map[string]string{rule: "always"}},
			wants: []string{`"condition/if-absent" is named in more than one list: Deviations, Racy`}},
		{name: "a racy rule that does not run fails", rules: []string{"cost/get"}, config: Config{Racy: map[string]string{"cost/get": "now and then"}},
			wants: []string{`"cost/get" is excused but does not run`}},
		{name: "a panic in a racy rule fails", rules: []string{rule}, config: Config{Racy: map[string]string{rule: "now and then"}}, breakIt: func(b *broken) {
			b.set = func(context.Context, string, blob.Source, *blob.SetOptions) (blob.Info, error) { panic("a bug") }
		}, wants: []string{"condition/if-absent: panic: a bug"}},
		{name: "a racy rule that hangs fails", rules: []string{rule}, config: Config{Racy: map[string]string{rule: "now and then"}, Timeout: 10 * time.Millisecond}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, _ blob.Source, _ *blob.SetOptions) (blob.Info, error) {
				<-ctx.Done()
				return blob.Info{}, &blob.Error{Op: blob.OpSet, Store: "memory", Key: key, Err: ctx.Err()}
			}
		}, wants: []string{"ran out of time"}},
		{name: "an unknown name fails", rules: []string{rule}, config: Config{Deviations: map[string]string{"condition/if-absnet": "typo"}},
			wants: []string{`"condition/if-absnet", which is no rule`}},
		{name: "an unknown case fails", rules: []string{rule}, config: Config{Pending: map[string]string{rule + "/large": "typo"}},
			wants: []string{`"condition/if-absent/large", but condition/if-absent has no such case`}},
		{name: "a name without a reason fails", rules: []string{rule}, config: Config{Deviations: map[string]string{rule: ""}},
			wants: []string{"without a reason"}},
		{name: "an excused rule that does not run fails", rules: []string{"cost/get"}, config: Config{Deviations: map[string]string{"cost/get": "known"}},
			wants: []string{`"cost/get" is excused but does not run`}},
		{name: "a panic is never excused", rules: []string{rule}, config: Config{Deviations: map[string]string{rule: "known"}}, breakIt: func(b *broken) {
			b.set = func(context.Context, string, blob.Source, *blob.SetOptions) (blob.Info, error) { panic("a bug") }
		}, wants: []string{"condition/if-absent: panic: a bug"}},
		{name: "a hang is never excused", rules: []string{rule}, config: Config{Deviations: map[string]string{rule: "known"}, Timeout: 10 * time.Millisecond}, breakIt: func(b *broken) {
			b.set = func(ctx context.Context, key string, _ blob.Source, _ *blob.SetOptions) (blob.Info, error) {
				<-ctx.Done()
				return blob.Info{}, &blob.Error{Op: blob.OpSet, Store: "memory", Key: key, Err: ctx.Err()}
			}
		}, wants: []string{"ran out of time"}},
		{name: "a store that ignores its context is given up", rules: []string{rule}, config: Config{Timeout: 10 * time.Millisecond}, breakIt: func(b *broken) {
			b.set = func(context.Context, string, blob.Source, *blob.SetOptions) (blob.Info, error) { select {} }
		}, wants: []string{"does not return when its context ends"}},
	}
}

const childEnv = "BLOBTEST_VERDICT"

func TestVerdicts(t *testing.T) {
	for _, v := range verdicts() {
		t.Run(strings.ReplaceAll(v.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVerdictChild$", "-test.v")
			cmd.Env = append(os.Environ(), childEnv+"="+v.name)
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != (len(v.wants) > 0) {
				t.Errorf("the run failed: %v, want %v\n%s", failed, len(v.wants) > 0, out)
			}
			for _, want := range slices.Concat(v.wants, v.logs) {
				if !strings.Contains(string(out), want) {
					t.Errorf("the output does not contain %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestVerdictChild is the run in the other process.
func TestVerdictChild(t *testing.T) {
	name := os.Getenv(childEnv)
	if name == "" {
		return // started by hand: TestVerdicts starts it as it should be
	}
	for _, v := range verdicts() {
		if v.name != name {
			continue
		}
		var rules []rule
		for _, r := range allRules() {
			for _, name := range v.rules {
				if r.name == name {
					rules = append(rules, r)
				}
			}
		}
		runRules(t, func(*testing.T) blob.Blob {
			b := newBroken(memblob.New(nil))
			if v.breakIt != nil {
				v.breakIt(b)
			}
			return b
		}, &v.config, rules)
	}
}

func TestRuleNamesAreUniqueAndGrouped(t *testing.T) {
	seen, groups, last := map[string]bool{}, map[string]bool{}, ""
	for _, r := range allRules() {
		if seen[r.name] || r.says == "" || r.short() == "" || strings.Contains(r.short(), "/") {
			t.Errorf("rule %q: used twice, or without a sentence, or not of the form group/name", r.name)
		}
		seen[r.name] = true
		if g := r.group(); g != last {
			if groups[g] {
				t.Errorf("group %q is in two pieces: its rules would share no store", g)
			}
			groups[g], last = true, g
		}
	}
}
