package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// An AtomicFile is a file that appears under its path when it is complete, and not at all otherwise. What is
// not a regular file (a device, a pipe, /dev/stdout) is written directly.
type AtomicFile struct {
	file   *os.File
	target string // "": written directly
	shared bool   // a stream of the process, which stays open
	ended  bool
}

// CreateAtomic makes sure that the path can be written, before the work whose result goes there. The file must
// be ended with Commit or Abort.
func CreateAtomic(path string) (*AtomicFile, error) {
	// By name: opened anew, a stream that is redirected to a file would be written from its start.
	switch path {
	case "":
		return nil, errors.New("an output file needs a name")
	case "/dev/stdout":
		return &AtomicFile{file: os.Stdout, shared: true}, nil
	case "/dev/stderr":
		return &AtomicFile{file: os.Stderr, shared: true}, nil
	}
	mode, existing := fs.FileMode(0o666), false // a new file's mode is less the umask
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		// Replacing a file needs only a writable directory; a file that is write-protected means it.
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return &AtomicFile{file: file}, nil
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
		mode, existing = info.Mode().Perm(), true
		if path, err = filepath.EvalSymlinks(path); err != nil { // a link stays, what it leads to is replaced
			return nil, err
		}
	}
	directory, name := filepath.Split(path)
	for i := range 1000 {
		temporary := filepath.Join(directory, fmt.Sprintf(".%s.%d-%d.part", name, os.Getpid(), i))
		file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be written: %w", path, err)
		}
		f := &AtomicFile{file: file, target: path}
		if existing {
			if err := file.Chmod(mode); err != nil {
				f.Abort()
				return nil, err
			}
		}
		return f, nil
	}
	return nil, fmt.Errorf("%s: a thousand unfinished files are in the way", path)
}

// Write writes to the file, or to the temporary one beside it.
func (f *AtomicFile) Write(p []byte) (int, error) { return f.file.Write(p) }

// Commit makes what was written the content of the path. After an error nothing of it is left.
func (f *AtomicFile) Commit() error {
	if f.ended {
		return fs.ErrClosed
	}
	f.ended = true
	if f.shared {
		return nil
	}
	err := f.file.Close()
	if f.target == "" {
		return err
	}
	if err == nil {
		err = os.Rename(f.file.Name(), f.target)
	}
	if err != nil {
		os.Remove(f.file.Name())
	}
	return err
}

// Abort removes what was written; after Commit it does nothing, so that it can be deferred.
func (f *AtomicFile) Abort() {
	if f.ended {
		return
	}
	f.ended = true
	if f.shared {
		return
	}
	f.file.Close()
	if f.target != "" {
		os.Remove(f.file.Name())
	}
}
