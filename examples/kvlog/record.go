package kvlog

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// A record is the key and the value, each with its length in front as a uvarint. The length of the value is one more than its bytes; 0 says
// that the key is deleted.

// found is where in a segment the value of a record lies.
type found struct {
	off, n  int64
	deleted bool
}

// encode returns a segment of records, in the order of their keys, and where each value lies in it.
func encode(records map[string][]byte) ([]byte, map[string]found) {
	var data []byte
	at := make(map[string]found, len(records))
	for _, key := range slices.Sorted(maps.Keys(records)) {
		value := records[key]
		data = append(binary.AppendUvarint(data, uint64(len(key))), key...)
		if value == nil {
			data = binary.AppendUvarint(data, 0)
			at[key] = found{deleted: true}
			continue
		}
		data = binary.AppendUvarint(data, uint64(len(value))+1)
		at[key] = found{off: int64(len(data)), n: int64(len(value))}
		data = append(data, value...)
	}
	return data, at
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
