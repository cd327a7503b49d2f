package blob

import (
	"errors"
	"testing"
)

func TestConditionSaysWhatItIs(t *testing.T) {
	for _, c := range []struct {
		cond         Condition
		zero, absent bool
		version      string
		hasVersion   bool
		text         string
	}{
		{cond: Condition{}, zero: true},
		{cond: IfAbsent(), absent: true, text: "IfAbsent()"},
		{cond: IfVersion("v\"1"), version: "v\"1", hasVersion: true, text: `IfVersion("v\"1")`},
		{cond: IfVersion(""), hasVersion: true, text: `IfVersion("")`},
	} {
		v, ok := c.cond.Version()
		if c.cond.IsZero() != c.zero || c.cond.Absent() != c.absent || v != c.version || ok != c.hasVersion || c.cond.String() != c.text {
			t.Errorf("%#v: zero %v, absent %v, version %q %v, text %q", c.cond, c.cond.IsZero(), c.cond.Absent(), v, ok, c.cond.String())
		}
	}
}

// A program that lost the version it meant to compare with must not overwrite blindly.
func TestEmptyVersionIsRefusedAndNeverNoCondition(t *testing.T) {
	c := IfVersion("")
	if c.IsZero() {
		t.Error("IfVersion of an empty version is no condition")
	}
	if err := c.Check(); !errors.Is(err, ErrInvalidOption) {
		t.Errorf("Check is %v", err)
	}
	for _, c := range []Condition{{}, IfAbsent(), IfVersion("v")} {
		if err := c.Check(); err != nil {
			t.Errorf("%v: Check is %v", c, err)
		}
	}
}
