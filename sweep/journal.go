package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"time"
)

// A Journal is a part under way: a file to which every run is added when it ends, so that a sweep that was
// stopped goes on from there.
type Journal struct {
	Lines []Line // that it held when it was opened

	mu     sync.Mutex
	file   *os.File
	path   string
	synced time.Time
}

// JournalPath is where the journal of an output is kept until that is complete.
func JournalPath(out string) string { return out + ".partial" }

// OpenJournal opens the journal of a sweep, or begins one. What a process that was killed left of its last
// line is dropped. A journal of another sweep is an error and stays as it is.
func OpenJournal(path string, h Header) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fault(path, err)
	}
	j := &Journal{file: file, path: path, synced: time.Now()}
	if err := j.resume(h); err != nil {
		file.Close()
		return nil, err
	}
	return j, nil
}

func (j *Journal) resume(h Header) error {
	p, good, err := scan(j.file, j.path)
	if good == 0 && err != nil && !j.begins(h) {
		return fmt.Errorf("%w: remove it, or choose another output", err)
	}
	if good > 0 {
		if p.Sweep != h.Sweep {
			return fmt.Errorf("%s: is of sweep %.19s, must be of %.19s: remove it, or choose another output", j.path, p.Sweep, h.Sweep)
		}
		if !reflect.DeepEqual(p.Header, h) {
			return fmt.Errorf("%s: is of scenario %s and shard %s, must be of %s and %s: remove it, or choose another output",
				j.path, p.Scenario, p.Shard, h.Scenario, h.Shard)
		}
	}
	j.Lines = p.Lines
	if err := j.file.Truncate(good); err != nil {
		return fault(j.path, err)
	}
	if good == 0 {
		return j.write(h)
	}
	return nil
}

// begins says whether the file is a head that was cut off while it was written.
func (j *Journal) begins(h Header) bool {
	head, err := json.Marshal(h)
	text := make([]byte, len(head)+1)
	n, failed := j.file.ReadAt(text, 0)
	return err == nil && errors.Is(failed, io.EOF) && bytes.HasPrefix(head, text[:n])
}

// syncEvery bounds what a machine that fails can take with it; what a process wrote outlives the process.
const syncEvery = time.Second

// add writes a run; several goroutines may.
func (j *Journal) add(l *Line) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.write(l); err != nil {
		return err
	}
	if now := time.Now(); now.Sub(j.synced) >= syncEvery {
		j.synced = now
		return j.sync()
	}
	return nil
}

func (j *Journal) write(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(text, '\n')); err != nil {
		return fault(j.path, err)
	}
	return nil
}

func (j *Journal) sync() error {
	if err := j.file.Sync(); err != nil {
		return fault(j.path, err)
	}
	return nil
}

// Close keeps the journal for a later call.
func (j *Journal) Close() error { return errors.Join(j.sync(), j.file.Close()) }

// Remove ends a journal whose output is complete. After Close it does that, too.
func (j *Journal) Remove() error {
	j.file.Close()
	if err := os.Remove(j.path); err != nil {
		return fault(j.path, err)
	}
	return nil
}
