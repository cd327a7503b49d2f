package blob

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// FS returns a read-only view of b as a file system whose names are its keys, with '/' between directories. Every request
// runs under ctx, since the methods of fs.FS have none of their own. Errors are *fs.PathError around the error of b.
//
// Only keys that fs.ValidPath accepts are visible: not "/a", "a//b" or "a/". A directory exists as long as some key lies
// below it, visible or not; the root always does. Where both "a" and "a/b" are keys, "a" is a file: "a/b" appears in
// no directory, though it can be opened by its name.
//
// A file has the size and version it had when it was opened, and is read when Read or ReadAt asks. If the object was replaced
// since, that is ErrPrecondition (on a store without versions only another size is noticed); if it was deleted, ErrNotFound.
// Files implement io.Seeker and io.ReaderAt too; several goroutines may call ReadAt at once, but not Read and Seek. Sys of a
// fs.FileInfo returns the Info.
//
// Cost: Open and Stat are one request for a file, two for a directory; ReadDir is one and the List, whose
// entries are held in memory; ReadFile is one. Read fetches FSReadAhead bytes at a time, or up to 8 MiB directly into a buffer
// at least that large. ReadAt is one request each, and ErrTooLarge above the MaxGet of b.
func FS(ctx context.Context, b Blob) fs.FS { return &blobFS{ctx: ctx, b: b} }

// FSReadAhead is how many bytes a file of FS reads at a time and keeps, to serve smaller reads from.
const FSReadAhead = 256 << 10

type blobFS struct {
	ctx context.Context
	b   Blob
}

var (
	_ fs.ReadDirFS  = (*blobFS)(nil)
	_ fs.StatFS     = (*blobFS)(nil)
	_ fs.ReadFileFS = (*blobFS)(nil)
)

var (
	errIsDir  = errors.New("is a directory")
	errNotDir = errors.New("not a directory")
)

// pathError returns err as a *fs.PathError, and nil as nil.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements fs.FS. The file is a fs.ReadDirFile or an io.ReaderAt and io.Seeker.
func (f *blobFS) Open(name string) (fs.File, error) {
	info, err := f.stat(name)
	switch {
	case err != nil:
		return nil, pathError("open", name, err)
	case info.IsDir():
		return &dirFile{fs: f, name: name}, nil
	default:
		return &file{fs: f, info: info}, nil
	}
}

// Stat implements fs.StatFS.
func (f *blobFS) Stat(name string) (fs.FileInfo, error) {
	info, err := f.stat(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return info, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *blobFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.readDir(name)
	return entries, pathError("readdir", name, err)
}

// ReadFile implements fs.ReadFileFS. The result is a copy, since Object.Data may be shared.
func (f *blobFS) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, pathError("readfile", name, fs.ErrInvalid)
	}
	if name == "." {
		return nil, pathError("readfile", name, errIsDir)
	}
	obj, err := f.b.Get(f.ctx, name, nil)
	if errors.Is(err, ErrNotFound) {
		if _, dirErr := f.statDir(name, err); dirErr == nil {
			err = errIsDir
		}
	}
	if err == nil {
		err = checkWhole(obj)
	}
	if err != nil {
		return nil, pathError("readfile", name, err)
	}
	return slices.Clone(obj.Data), nil
}

func (f *blobFS) stat(name string) (fileInfo, error) {
	if !fs.ValidPath(name) {
		return fileInfo{}, fs.ErrInvalid
	}
	if name == "." {
		return dirInfo(name), nil
	}
	info, err := f.b.Stat(f.ctx, name)
	if errors.Is(err, ErrNotFound) {
		return f.statDir(name, err)
	}
	return fileInfo{info}, err
}

// statDir returns the info of the directory name if there is one; otherwise the error is missing, or why that is not known.
func (f *blobFS) statDir(name string, missing error) (fileInfo, error) {
	for info, err := range f.b.List(f.ctx, name+"/", nil) {
		if err != nil {
			return fileInfo{}, err
		}
		if strings.HasPrefix(info.Key, name+"/") {
			return dirInfo(name), nil
		}
	}
	return fileInfo{}, missing
}

func (f *blobFS) readDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	if name == "." {
		entries, _, err := f.list("")
		return entries, err
	}
	_, missing := f.b.Stat(f.ctx, name)
	switch {
	case missing == nil:
		return nil, errNotDir
	case !errors.Is(missing, ErrNotFound):
		return nil, missing
	}
	entries, exists, err := f.list(name + "/")
	if err == nil && !exists {
		err = missing
	}
	return entries, err
}

// list returns what lies in the directory whose keys begin with prefix, sorted by name, which is not the order of the keys ("a-b"
// comes before "a/"), and whether there is any key, visible or not.
func (f *blobFS) list(prefix string) (entries []fs.DirEntry, exists bool, err error) {
	var infos []fileInfo
	for info, err := range f.b.List(f.ctx, prefix, &ListOptions{Delimiter: "/"}) {
		if err != nil {
			return nil, false, err
		}
		exists = true
		base := strings.TrimSuffix(info.Key[len(prefix):], "/")
		if base != "." && fs.ValidPath(base) {
			info.Key = prefix + base
			infos = append(infos, fileInfo{info})
		}
	}
	slices.SortStableFunc(infos, func(a, b fileInfo) int { return strings.Compare(a.Key, b.Key) })
	// Of the key "a" and the prefix "a/" the key was listed first, and stays.
	infos = slices.CompactFunc(infos, func(a, b fileInfo) bool { return a.Key == b.Key })
	entries = make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		entries[i] = fs.FileInfoToDirEntry(info)
	}
	return entries, exists, nil
}

// fileInfo is an Info as a fs.FileInfo; IsPrefix says that it is a directory.
type fileInfo struct{ Info }

func dirInfo(name string) fileInfo { return fileInfo{Info{Key: name, IsPrefix: true}} }

func (i fileInfo) Name() string       { return path.Base(i.Key) }
func (i fileInfo) Size() int64        { return i.Info.Size }
func (i fileInfo) ModTime() time.Time { return i.Info.ModTime }
func (i fileInfo) IsDir() bool        { return i.IsPrefix }
func (i fileInfo) Sys() any           { return i.Info }

func (i fileInfo) Mode() fs.FileMode {
	if i.IsPrefix {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
