package strict

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type garden struct {
	Name  string  `yaml:"name,required"`
	Area  float64 `yaml:"area"`
	Trees *int    `yaml:"trees"`
	Paths []string
	Rows  []string `yaml:"rows"`
	Beds  []bed    `yaml:"beds"`
	Line  int      `yaml:"-"`
}

type bed struct {
	Name  string `yaml:",key"`
	Plant string `yaml:"plant,required"`
	Line  int    `yaml:"-"`
}

func TestDecode(t *testing.T) {
	var g garden
	faults := Decode([]byte("name: back\narea: 3.5\ntrees: 2\nrows: one\nbeds:\n  sunny: {plant: sage}\n  dark: {plant: fern}\n"), "g.yaml", &g)
	if len(faults) > 0 || g.Name != "back" || g.Area != 3.5 || *g.Trees != 2 || len(g.Rows) != 1 || g.Line != 1 {
		t.Fatalf("Decode: %+v, %v", g, faults)
	}
	if len(g.Beds) != 2 || g.Beds[0] != (bed{"sunny", "sage", 6}) || g.Beds[1] != (bed{"dark", "fern", 7}) {
		t.Errorf("beds %+v, want sunny and dark in their order, with their lines", g.Beds)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		text  string
		wants []string
	}{
		{"nme: x\narea: y\ntrees: 1.5\n", []string{"g.yaml:1: nme: unknown key, did you mean name?", "g.yaml:2: area: must be a number, is \"y\"",
			"g.yaml:3: trees: must be a whole number, is 1.5", "g.yaml:1: name: is missing"}},
		{"name: [x]\nrows: {a: b}\nbeds: [1]\n", []string{"name: must be text, is a list", "rows: must be a list, is a block of keys", "beds: must be a block of keys, is a list"}},
		{"name: x\nbeds: {a: {}, a: {plant: x}, b: 3}\n", []string{"beds.a.plant: is missing", "beds.a: is given twice", "beds.b: must be a block of keys, is 3"}},
		{"name: &a x\nrows: [*a]\n", []string{"g.yaml:2: rows[0]: must be written out, is an alias"}},
		{"name:\narea: .nan\n", []string{"name: must be text, is empty", "area: must be a number, is .nan"}},
		{"name: \"\\e[2J\"\nbeds: {\"a\\e\": {plant: x}, \"a|b\": {plant: x}}\n",
			[]string{`name: must be without control characters, is "\x1b[2J"`, `beds: a key must be a name without control characters and bars, is "a\x1b"`, `is "a|b"`}},
		{"name: x\nname: y\n", []string{"g.yaml:2: name: is given twice"}},
		{"name: x\na: b: c", []string{"g.yaml:2: must be YAML: mapping values are not allowed in this context"}},
		{strings.Repeat("#", MaxFile+1), []string{"g.yaml: must be at most 1 MiB, is longer"}},
	} {
		var g garden
		got := Decode([]byte(c.text), "g.yaml", &g).Error()
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("Decode(%.40q) tells\n%s\nwant %q", c.text, got, want)
			}
		}
	}
}

func TestReadFile(t *testing.T) {
	folder := t.TempDir()
	if _, err := ReadFile(folder); err == nil || !strings.Contains(err.Error(), "must be a file, is a folder") {
		t.Errorf("a folder: %v", err)
	}
	path := filepath.Join(folder, "big")
	if err := os.WriteFile(path, make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || err.Error() != path+": must be at most 1 MiB, is longer" {
		t.Errorf("a large file: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: back\nbeds: {a: {plant: x}}\n"))
	f.Add([]byte("rows: [1, *a]\n--- {}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var g garden
		for _, fault := range Decode(text, "g.yaml", &g) {
			if !strings.HasPrefix(fault.Where, "g.yaml") || fault.Message == "" {
				t.Errorf("fault %q", fault)
			}
		}
	})
}
