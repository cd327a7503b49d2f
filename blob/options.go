package blob

import (
	"fmt"
	"hash/crc32"
	"unicode/utf8"
)

// GetOptions are the options of Get and GetRanges. nil is the zero value.
type GetOptions struct {
	// Range is the part to read. Zero: the whole object. Not for GetRanges.
	Range Range
	// If is IfVersion, to read that version or fail with ErrPrecondition, or zero.
	If Condition
	// Want is what the caller knows about the object, from its own manifest.
	Want Want
	// Dst is read into when len(Dst) is at least the number of bytes
	// asked for; Data is then a slice of it and no payload memory is allocated.
	// nil or too short: Data is allocated. Not for GetRanges.
	Dst []byte
	// SkipCache neither reads from a cache nor fills it.
	SkipCache bool
}

// Want is what the caller knows about the whole object. It is checked against what the
// store says and sends, and a known size can save a request.
type Want struct {
	Size      int64 // total bytes of the object, if HasSize
	HasSize   bool
	CRC32C    uint32 // Castagnoli of the whole object, if HasCRC32C; checked when the whole object is read
	HasCRC32C bool
}

// Check returns an error that matches ErrInvalidOption for a negative size, and for
// a value whose Has field is false, which would be ignored in silence.
func (w Want) Check() error {
	switch {
	case w.HasSize && w.Size < 0:
		return fmt.Errorf("%w: Want.Size is negative: %d", ErrInvalidOption, w.Size)
	case !w.HasSize && w.Size != 0:
		return fmt.Errorf("%w: Want.Size is %d but HasSize is false", ErrInvalidOption, w.Size)
	case !w.HasCRC32C && w.CRC32C != 0:
		return fmt.Errorf("%w: Want.CRC32C is set but HasCRC32C is false", ErrInvalidOption)
	}
	return nil
}

// Verify compares w with an object of total bytes of which data is the part that begins at off. An object
// smaller than Want.Size is ErrTruncated, a larger one or another checksum ErrCorrupt.
func (w Want) Verify(total, off int64, data []byte) error {
	if err := w.VerifySize(total); err != nil {
		return err
	}
	if w.HasCRC32C && off == 0 && int64(len(data)) == total {
		if got := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); got != w.CRC32C {
			return fmt.Errorf("%w: CRC32C is %08x, want %08x", ErrCorrupt, got, w.CRC32C)
		}
	}
	return nil
}

// VerifySize is the part of Verify that needs no data.
func (w Want) VerifySize(total int64) error {
	switch {
	case w.HasSize && total < w.Size:
		return fmt.Errorf("%w: the object has %d bytes, want %d", ErrTruncated, total, w.Size)
	case w.HasSize && total > w.Size:
		return fmt.Errorf("%w: the object has %d bytes, want %d", ErrCorrupt, total, w.Size)
	}
	return nil
}

// SetOptions are the options of Set. nil is the zero value.
type SetOptions struct {
	// If is IfAbsent, IfVersion, or zero to overwrite whatever is there.
	If Condition
	// Metadata are the caller's own entries, kept with the object and bound by the rules of CheckMetadata.
	Metadata map[string]string
	// ContentType is kept with the object. "": application/octet-stream.
	ContentType string
	// SHA256 computes the SHA-256 of the source before the first request, stores
	// it with the object and verifies it on whole reads.
	SHA256 bool
	// AtMostOnce stops after an attempt whose outcome is Unknown instead of
	// trying again, so that a late duplicate cannot undo a later write.
	AtMostOnce bool
}

// DefaultContentType is what Set stores for an empty ContentType, on every store.
const DefaultContentType = "application/octet-stream"

// DeleteOptions are the options of Delete. nil is the zero value.
type DeleteOptions struct {
	// If is IfVersion, or zero to delete whatever is there.
	If Condition
	// AtMostOnce is as in SetOptions.
	AtMostOnce bool
}

// ListOptions are the options of List. nil is the zero value.
type ListOptions struct {
	// StartAfter yields only what is greater, in byte order. "": from the beginning.
	StartAfter string
	// Delimiter folds keys that contain it after the prefix into common
	// prefixes. "": no folding.
	Delimiter string
}

// The Check functions below validate the arguments of one call, the same for every
// implementation of Blob, before any I/O. They return the options by value (nil becomes
// the zero value) or a *Error that has Op, Key and Kind set and Store empty.

// CheckGet validates the arguments of Get.
func CheckGet(key string, opts *GetOptions) (GetOptions, error) {
	o := deref(opts)
	if err := checkGet(key, o); err != nil {
		return o, Invalid(OpGet, key, err)
	}
	return o, nil
}

// CheckGetRanges validates the arguments of GetRanges.
func CheckGetRanges(key string, rs []Range, opts *GetOptions) (GetOptions, error) {
	o := deref(opts)
	err := checkGet(key, o)
	switch {
	case err != nil:
	case !o.Range.IsWhole():
		err = fmt.Errorf("%w: GetRanges with Range %v in its options", ErrInvalidOption, o.Range)
	case o.Dst != nil:
		err = fmt.Errorf("%w: GetRanges with Dst in its options", ErrInvalidOption)
	}
	for i := 0; i < len(rs) && err == nil; i++ {
		err = rs[i].Check()
	}
	if err != nil {
		return o, Invalid(OpGetRanges, key, err)
	}
	return o, nil
}

func checkGet(key string, o GetOptions) error {
	if key == "" {
		return fmt.Errorf("%w: it is empty", ErrInvalidKey)
	}
	if o.If.Absent() {
		return fmt.Errorf("%w: a read with IfAbsent", ErrInvalidOption)
	}
	return firstError(o.Range.Check(), o.If.Check(), o.Want.Check())
}

// CheckSet validates the arguments of Set. It does not take a Stream's Reader.
func CheckSet(key string, src Source, opts *SetOptions) (SetOptions, error) {
	o := deref(opts)
	err := firstError(CheckKey(key), src.Check(), o.If.Check(), CheckMetadata(o.Metadata), checkContentType(o.ContentType))
	if err != nil {
		return o, Invalid(OpSet, key, err)
	}
	if o.ContentType == "" {
		o.ContentType = DefaultContentType
	}
	return o, nil
}

// CheckDelete validates the arguments of Delete.
func CheckDelete(key string, opts *DeleteOptions) (DeleteOptions, error) {
	o := deref(opts)
	err := o.If.Check()
	switch {
	case key == "":
		err = fmt.Errorf("%w: it is empty", ErrInvalidKey)
	case o.If.Absent():
		err = fmt.Errorf("%w: a delete with IfAbsent", ErrInvalidOption)
	}
	if err != nil {
		return o, Invalid(OpDelete, key, err)
	}
	return o, nil
}

// CheckDeleteAll validates the arguments of DeleteAll.
func CheckDeleteAll(keys []string) error {
	for i, k := range keys {
		if k == "" {
			return Invalid(OpDeleteAll, "", fmt.Errorf("%w: key %d of %d is empty", ErrInvalidKey, i, len(keys)))
		}
	}
	return nil
}

// CheckList validates the arguments of List.
func CheckList(prefix string, opts *ListOptions) (ListOptions, error) {
	o := deref(opts)
	for _, arg := range []struct{ name, value string }{{"prefix", prefix}, {"StartAfter", o.StartAfter}, {"Delimiter", o.Delimiter}} {
		if !utf8.ValidString(arg.value) {
			return o, Invalid(OpList, prefix, fmt.Errorf("%w: %s %q is not valid UTF-8", ErrInvalidOption, arg.name, arg.value))
		}
	}
	return o, nil
}

// CheckName validates the key of a Stat or Restore, whose name is op.
func CheckName(op, key string) error {
	if key == "" {
		return Invalid(op, key, fmt.Errorf("%w: it is empty", ErrInvalidKey))
	}
	return nil
}

// Invalid returns err, which matches one of the sentinels, as the *Error of an operation that
// was refused before any I/O: its Outcome is NotApplied.
func Invalid(op, key string, err error) error {
	return &Error{Op: op, Key: key, Kind: KindOf(err), Outcome: NotApplied, Err: err}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
