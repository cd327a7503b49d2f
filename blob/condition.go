package blob

import "fmt"

type conditionKind uint8

const (
	conditionNone conditionKind = iota
	conditionAbsent
	conditionVersion
)

// Condition says in what state of its key an operation may take effect. The
// zero Condition is none: the operation always takes effect.
type Condition struct {
	kind    conditionKind
	version string
}

// IfAbsent lets a Set take effect only if the key does not exist.
func IfAbsent() Condition { return Condition{kind: conditionAbsent} }

// IfVersion lets an operation take effect only if the key has exactly this
// version. The empty version is no version: the call that uses it fails with
// ErrInvalidOption and never runs unconditionally.
func IfVersion(v string) Condition { return Condition{kind: conditionVersion, version: v} }

// IsZero reports whether c is no condition at all.
func (c Condition) IsZero() bool { return c.kind == conditionNone }

// Absent reports whether c is IfAbsent.
func (c Condition) Absent() bool { return c.kind == conditionAbsent }

// Version returns the version that c asks for; ok is false unless c is IfVersion.
func (c Condition) Version() (v string, ok bool) { return c.version, c.kind == conditionVersion }

// Check returns an error that matches ErrInvalidOption for IfVersion("").
func (c Condition) Check() error {
	if c.kind == conditionVersion && c.version == "" {
		return fmt.Errorf("%w: IfVersion of an empty version", ErrInvalidOption)
	}
	return nil
}

// String returns the call that makes c, or "" for none.
func (c Condition) String() string {
	switch c.kind {
	case conditionAbsent:
		return "IfAbsent()"
	case conditionVersion:
		return fmt.Sprintf("IfVersion(%q)", c.version)
	default:
		return ""
	}
}
