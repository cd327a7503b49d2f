package fileblob

import (
	"io"
	"os"
)

// directory and file are what the store asks of the file system. There is one implementation, on
// the system's own calls; tests put another around it that records calls and fails some. Errors are *fs.PathError with the
// system's error number inside.
//
// Every call is relative to an open directory and follows no symbolic link, so nothing outside the root is reached,
// and what happens to the path above an open directory does not matter to it.
type directory interface {
	// Dir opens the directory name.
	Dir(name string) (directory, error)
	Mkdir(name string) error
	Rmdir(name string) error
	// Open opens the regular file name for reading; anything else of that name is errForeign.
	Open(name string) (file, error)
	// Create makes the file name, which must not exist, for writing.
	Create(name string) (file, error)
	// OpenLock opens the file name to be locked; create makes it if there is none.
	OpenLock(name string, create bool) (file, error)
	// Rename moves the file name to another directory of the same file system, over what is there.
	Rename(name string, to directory, as string) error
	Remove(name string) error
	// Names calls visit with every name, in no order, until it returns false. Not for use by two goroutines at once.
	Names(visit func(name string) bool) error
	Sync() error
	Stat() (os.FileInfo, error)
	Close() error
}

type file interface {
	io.ReaderAt
	io.WriterAt
	Stat() (os.FileInfo, error)
	Sync() error
	// TryLock takes an exclusive lock on the file, shared by all who hold this open file and nobody else, in this process
	// or another. It reports false if someone else has it. Unlock or the end of the process gives it back.
	TryLock() (bool, error)
	Unlock() error
	Close() error
}
