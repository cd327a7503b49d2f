package kvlog

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
)

// A record is the key and the value, each with its length in front as a uvarint. The length of the value is one more than its bytes; 0 says
// that the key is deleted.

// found is where in a segment the value of a record lies.
type found struct {
	off, n  int64
	deleted bool
}

// batch is what goes into one segment, and where each value lies in it.
type batch struct {
	data  []byte
	found map[string]found
}

// encode returns records in the order of their keys, in batches of at most maxSegment bytes.
func encode(records map[string][]byte) ([]batch, error) {
	var batches []batch
	for _, key := range slices.Sorted(maps.Keys(records)) {
		value := records[key]
		head := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
		if value == nil {
			head = binary.AppendUvarint(head, 0)
		} else {
			head = binary.AppendUvarint(head, uint64(len(value))+1)
		}
		size := len(head) + len(value)
		if size > maxSegment {
			return nil, fmt.Errorf("kvlog: %w: key %.64q and its value take %d bytes, at most %d", blob.ErrTooLarge, key, size, maxSegment)
		}
		if last := len(batches) - 1; last < 0 || len(batches[last].data)+size > maxSegment {
			batches = append(batches, batch{found: make(map[string]found)})
		}
		b := &batches[len(batches)-1]
		b.data = append(b.data, head...)
		b.found[key] = found{off: int64(len(b.data)), n: int64(len(value)), deleted: value == nil}
		b.data = append(b.data, value...)
	}
	return batches, nil
}

// replay takes the records of a segment into the index. Its checksum has been compared, so what does not parse was written so.
func (db *DB) replay(name string, data []byte) error {
	at := make(map[string]found)
	for pos := 0; pos < len(data); {
		n, w := binary.Uvarint(data[pos:])
		if w <= 0 || n > uint64(len(data)-pos-w) {
			return fmt.Errorf("kvlog: segment %s: bad key at byte %d", name, pos)
		}
		pos += w
		key := string(data[pos : pos+int(n)])
		pos += int(n)
		n, w = binary.Uvarint(data[pos:])
		if w <= 0 || n > uint64(len(data)-pos-w)+1 {
			return fmt.Errorf("kvlog: segment %s: bad value at byte %d", name, pos)
		}
		pos += w
		if n == 0 {
			at[key] = found{deleted: true}
			continue
		}
		at[key] = found{off: int64(pos), n: int64(n - 1)}
		pos += int(n - 1)
	}
	db.apply(name, at)
	return nil
}

func (db *DB) apply(name string, at map[string]found) {
	for key, f := range at {
		if f.deleted {
			delete(db.index, key)
		} else {
			db.index[key] = location{name, f.off, f.n}
		}
	}
}
