package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// An AtomicFile is a file that appears under its path when it is complete, and not at all otherwise. What is
// not a regular file (a device, a pipe, /dev/stdout) is written directly. Its errors name the path as it was
// given, and never the temporary file beside it.
type AtomicFile struct {
	file   *os.File
	path   string // as given
	target string // what the path leads to; "": written directly
	kept   string // where the target's old content is while it may have to come back; "": nowhere
	shared bool   // a stream of the process, which stays open
	ended  bool
}

// CreateAtomic makes sure that the path can be written, before the work whose result goes there. The file must
// be ended with Commit or Abort.
func CreateAtomic(path string) (*AtomicFile, error) {
	f := &AtomicFile{path: path}
	// By name: opened anew, a stream that is redirected to a file would be written from its start.
	switch path {
	case "":
		return nil, errors.New("an output file needs a name")
	case "/dev/stdout":
		f.file, f.shared = os.Stdout, true
		return f, nil
	case "/dev/stderr":
		f.file, f.shared = os.Stderr, true
		return f, nil
	}
	if err := f.open(); err != nil {
		return nil, f.fault(err)
	}
	return f, nil
}

func (f *AtomicFile) open() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.target = follow(f.path)
		return f.openBeside(0o666) // less the umask
	}
	if err != nil {
		return err
	}
	// Replacing a file needs only a writable directory; a file that is write-protected means it.
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		f.file = file
		return nil
	}
	if err := file.Close(); err != nil {
		return err
	}
	if f.target, err = filepath.EvalSymlinks(f.path); err != nil { // a link stays, what it leads to is replaced
		return err
	}
	if err := f.openBeside(info.Mode().Perm()); err != nil {
		return err
	}
	if err := f.file.Chmod(info.Mode().Perm()); err != nil { // whatever the umask is
		f.Abort()
		return err
	}
	return nil
}

// openBeside opens a temporary file in the target's directory, so that it can be renamed to the target.
func (f *AtomicFile) openBeside(mode fs.FileMode) (err error) {
	directory, name := filepath.Split(f.target)
	for i := range 1000 {
		temporary := directory + fmt.Sprintf(".%s.%d-%d.part", name, os.Getpid(), i)
		f.file, err = os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return errors.New("a thousand unfinished files are in the way")
}

// fault names the path in an error of the file system, and leaves out what that calls it.
func (f *AtomicFile) fault(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("%s: %w", f.path, err)
}

// Write writes to the file, or to the temporary one beside it.
func (f *AtomicFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	if err != nil {
		err = f.fault(err)
	}
	return n, err
}

// Sync has what was written so far outlive a failure of the machine, where the file is one that can.
func (f *AtomicFile) Sync() error {
	if f.target == "" {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return f.fault(err)
	}
	return nil
}

// Commit makes what was written the content of the path. After an error nothing of it is left.
func (f *AtomicFile) Commit() error { return CommitAll(f) }

// CommitAll commits files together: after an error each path has the content it had before, or none if it had
// none. That does not hold for what is written directly, nor when the process is killed in the middle.
func CommitAll(files ...*AtomicFile) error {
	var err error
	for _, f := range files {
		err = errors.Join(err, f.close())
	}
	replaced := 0
	for err == nil && replaced < len(files) {
		// Nothing can fail after the last, whose old content therefore need not be kept.
		if err = files[replaced].replace(replaced < len(files)-1); err == nil {
			replaced++
		}
	}
	for i, f := range files {
		switch {
		case err == nil:
			f.forget()
		case i < replaced:
			err = errors.Join(err, f.restore())
		default:
			f.discard()
		}
	}
	return err
}

// close ends the writing.
func (f *AtomicFile) close() error {
	if f.ended {
		return f.fault(fs.ErrClosed)
	}
	f.ended = true
	if f.shared {
		return nil
	}
	if err := f.file.Close(); err != nil {
		return f.fault(err)
	}
	return nil
}

// replace puts what was written in the target's place, and may keep what was there. After an error the target
// is as it was.
func (f *AtomicFile) replace(keep bool) error {
	if f.target == "" {
		return nil
	}
	if keep {
		if err := f.keep(); err != nil {
			return f.fault(err)
		}
	}
	if err := os.Rename(f.file.Name(), f.target); err != nil {
		return errors.Join(f.fault(err), f.bringBack())
	}
	return nil
}

// keep gives a file that is in the target's place a second name or, where the file system has no such thing,
// another one.
func (f *AtomicFile) keep() error {
	if info, err := os.Lstat(f.target); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	kept := f.file.Name() + ".old"
	if os.Link(f.target, kept) != nil {
		if err := os.Rename(f.target, kept); err != nil {
			return err
		}
	}
	f.kept = kept
	return nil
}

// restore takes back a replacement.
func (f *AtomicFile) restore() error {
	if f.target == "" || f.kept != "" {
		return f.bringBack()
	}
	if err := os.Remove(f.target); err != nil {
		return f.fault(err)
	}
	return nil
}

// bringBack puts in the target's place what was kept of it.
func (f *AtomicFile) bringBack() error {
	if f.kept == "" {
		return nil
	}
	if err := os.Rename(f.kept, f.target); err != nil {
		return fmt.Errorf("%w; what was there is in %s", f.fault(err), f.kept)
	}
	f.forget() // a rename between two names of one file changes nothing
	return nil
}

// forget lets go of what was kept.
func (f *AtomicFile) forget() {
	if f.kept != "" {
		os.Remove(f.kept)
		f.kept = ""
	}
}

// discard removes the temporary file.
func (f *AtomicFile) discard() {
	if f.target != "" {
		os.Remove(f.file.Name())
	}
}

// Abort removes what was written; after Commit it does nothing, so that it can be deferred.
func (f *AtomicFile) Abort() {
	if !f.ended {
		f.close()
		f.discard()
	}
}

// SameOutput says whether what is written to two paths goes to one place, whether there is a file yet or not.
// Nothing is lost in /dev/null, which any number may share.
func SameOutput(a, b string) bool {
	if filepath.Clean(a) == os.DevNull || filepath.Clean(b) == os.DevNull {
		return false
	}
	if resolved(a) == resolved(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// follow returns where a path leads that may be a link to no file yet. It cleans nothing: .. behind a linked
// folder is not the folder that the link is in.
func follow(path string) string {
	for range 40 { // as many as Linux follows
		next, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			directory, _ := filepath.Split(path)
			next = directory + next
		}
		path = next
	}
	return path
}

// resolved is the one path of a file among those that lead to it, whether there is a file yet or not.
func resolved(path string) string {
	path = follow(path)
	if whole, err := filepath.EvalSymlinks(path); err == nil {
		path = whole
	} else {
		directory, name := filepath.Split(path)
		if directory, err = filepath.EvalSymlinks(cmp.Or(directory, ".")); err == nil {
			path = filepath.Join(directory, name)
		}
	}
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return filepath.Clean(path)
}
