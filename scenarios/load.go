package scenarios

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed *.yaml *.csv
var embedded embed.FS

// Names returns the embedded scenarios.
func Names() (names []string) {
	entries, _ := embedded.ReadDir(".")
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Question returns the question that an embedded scenario asks: its file's first comment.
func Question(name string) string {
	text, _ := embedded.ReadFile(name + ".yaml")
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(first, "# ")
}

// Load reads an embedded scenario by its name, or a file; a name with a slash or an ending is a
// file's. What it does not give is taken from the scenario base. Edits are made before anything is
// checked. The error is Faults: all there are.
func Load(nameOrFile string, edits []Edit) (*Scenario, error) {
	text, from, err := find(nameOrFile)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(from.where), filepath.Ext(from.where))
	s, err := read(text, from, name, edits)
	if s != nil {
		s.written = &written{text, from, name, slices.Clone(edits)}
	}
	return s, err
}

// written is what a scenario was read from.
type written struct {
	text  []byte
	from  *origin
	name  string
	edits []Edit
}

// With is the scenario as it would be with further edits after those it was loaded with. Files that
// were read for it are not read again. Of a scenario that Load did not make there is none.
func (s *Scenario) With(edits ...Edit) (*Scenario, error) {
	w := s.written
	if w == nil {
		return nil, errors.New("a scenario that was not loaded can't be edited")
	}
	all := slices.Concat(w.edits, edits)
	other, err := read(w.text, w.from, w.name, all)
	if err != nil {
		return nil, err
	}
	other.files, other.written = s.files, &written{w.text, w.from, w.name, all}
	return other, nil
}

func find(nameOrFile string) ([]byte, *origin, error) {
	from := &origin{layer: 1, where: nameOrFile}
	asFile := strings.ContainsAny(nameOrFile, `/\.`)
	if !asFile {
		if text, err := embedded.ReadFile(nameOrFile + ".yaml"); err == nil {
			from.where, from.place = "scenarios/"+nameOrFile+".yaml", place{".", true}
			if nameOrFile == "base" {
				from.layer = 0
			}
			return text, from, nil
		}
	}
	text, err := readFile(nameOrFile)
	if errors.Is(err, fs.ErrNotExist) {
		name := strings.TrimSuffix(filepath.Base(nameOrFile), filepath.Ext(nameOrFile))
		kind := "scenario or file"
		if asFile {
			kind = "file"
		}
		message := "no such " + kind
		if names := near(name, Names()); len(names) > 0 {
			message += ", did you mean " + strings.Join(names, " or ") + "?"
		}
		return nil, nil, Faults{{nameOrFile, "", message + " (embedded scenarios: " + strings.Join(Names(), ", ") + ")"}}
	}
	if err != nil {
		return nil, nil, Faults{{nameOrFile, "", reason(err).Error()}}
	}
	from.place.folder = filepath.Dir(nameOrFile)
	return text, from, nil
}

// reason is why a file can't be had, without its name.
func reason(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, errors.New("must be a file, is a folder")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// read checks a scenario's text laid over the base scenario, with edits laid over both.
func read(text []byte, from *origin, name string, edits []Edit) (*Scenario, error) {
	baseText, err := embedded.ReadFile("base.yaml")
	if err != nil {
		return nil, err
	}
	base, faults := parse(baseText, &origin{where: "scenarios/base.yaml", place: place{".", true}})
	file, bad := parse(text, from)
	faults = append(faults, bad...)
	over, bad := gather(edits)
	faults = append(faults, bad...)
	if file == nil || base == nil {
		return nil, faults
	}
	if !file.isMapping() {
		return nil, append(faults, file.fault("", fmt.Sprintf("must be a block of keys, is %s", show(file))))
	}
	if file.at("name") == nil {
		file.put("name", from.scalar("!!str", name))
	}
	root := overlay(base, file, "")
	if len(edits) > 0 {
		root = overlay(root, over, "")
	}
	r := &reading{root: root, faults: faults}
	s := &Scenario{files: new(files)}
	r.scenario(s)
	r.tellUnknown()
	if len(r.faults) == 0 && s.Mixed() {
		r.checkPools(s)
	} else if len(r.faults) == 0 {
		r.checkMemory(s)
	}
	if len(r.faults) > 0 {
		r.sort()
		return nil, r.faults
	}
	return s, nil
}

// sort puts faults in the order of a file's lines, then of the edits.
func (r *reading) sort() {
	line := func(f Fault) (n int) {
		if i := strings.LastIndexByte(f.Where, ':'); i >= 0 {
			if _, err := fmt.Sscanf(f.Where[i+1:], "%d", &n); err == nil {
				return n
			}
		}
		return maxFile
	}
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return cmp.Compare(line(a), line(b)) })
}
