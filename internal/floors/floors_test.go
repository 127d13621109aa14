// Package floors holds the packages to the order in which they may stand on one another.
package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "llmsim"
	root   = "../.."
)

// below names, for every package, those it may import. A leaf stands on nothing of the module; a
// package that is not here must find its floor first. docs/architecture.md draws the picture.
var below = map[string][]string{
	"sim/rng":     {},
	"sim/agenda":  {},
	"sim/kv":      {},
	"sim/cost":    {},
	"sim/vllmv1":  {},
	"sim/policy":  {"sim/kv", "sim/cost"},
	"workload":    {"sim/rng"},
	"sim":         core,
	"conformance": {"sim/vllmv1"},
	"scenarios":   with("sim"),

	"scenarios/experiments": {},
	"scenarios/expect":      {},

	"report":      with("sim"),
	"plan":        with("sim", "scenarios", "report"),
	"strict":      with("sim", "scenarios"),
	"experiment":  with("sim", "scenarios", "report", "strict", "scenarios/experiments"),
	"check":       with("sim", "scenarios", "report", "strict", "experiment", "scenarios/expect"),
	"sweep":       with("sim", "scenarios", "report", "plan"),
	"validation":  with("sim", "scenarios", "report"),
	"calibration": with("sim", "scenarios", "report", "validation"),
	"picture":     with("sim", "scenarios", "report", "plan", "sweep", "experiment"),
	"cmd/llmsim":  with("sim", "scenarios", "report", "plan", "picture", "sweep", "validation", "calibration", "sim/vllmv1", "conformance", "experiment", "check"),
}

var core = []string{"sim/agenda", "sim/kv", "sim/cost", "sim/policy", "sim/rng", "workload"}

func with(more ...string) []string { return slices.Concat(core, more) }

// pure are the packages in which virtual time is the only time, and nothing happens but what a
// caller asks for.
var pure = []string{"sim", "sim/agenda", "sim/kv", "sim/cost", "sim/policy", "sim/rng", "sim/vllmv1"}

// A source is a file of a package, its tests among them.
type source struct {
	pkg  string // relative to the module
	file string
	set  *token.FileSet
	tree *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.file, "_test.go") }

func (s source) at(n ast.Node) token.Position { return s.set.Position(n.Pos()) }

func (s source) imports() (paths []string) {
	for _, spec := range s.tree.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// sources parses the whole module.
func sources(t *testing.T) (all []source) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if base := e.Name(); relative != "." && (strings.HasPrefix(base, ".") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(filepath.Dir(relative)), relative, set, tree})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go file found")
	}
	return all
}

// A package imports only what stands below it; helpers of tests are imported by tests alone.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || strings.HasPrefix(s.pkg, "internal/") {
			continue
		}
		allowed, known := below[s.pkg]
		if !known {
			t.Errorf("%s: package %s has no floor", s.file, s.pkg)
			continue
		}
		for _, p := range s.imports() {
			inner, ours := strings.CutPrefix(p, module+"/")
			switch {
			case ours && !slices.Contains(allowed, inner):
				t.Errorf("%s imports %s, may import only %v", s.file, p, allowed)
			case !ours && s.pkg != "cmd/llmsim" && (p == "github.com/spf13/cobra" || p == "github.com/spf13/pflag"):
				t.Errorf("%s imports %s: only commands parse flags", s.file, p)
			case !ours && strings.Contains(p, ".") && (slices.Contains(pure, s.pkg) || s.pkg == "workload"):
				t.Errorf("%s imports %s: the core needs the standard library alone", s.file, p)
			}
		}
	}
}

// A library returns; it does not exit, log, or print.
func TestLibrariesAreSilent(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || strings.HasPrefix(s.pkg, "cmd/") {
			continue
		}
		s.refuseImports(t, "log", "log/slog")
		s.refuseCalls(t, "os.Exit", "fmt.Print", "fmt.Printf", "fmt.Println", "print", "println")
	}
}

// The core has no clock, file, goroutine, lock or logger in it, and chance only in rng.
func TestCoreIsPure(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || !slices.Contains(pure, s.pkg) {
			continue
		}
		s.refuseImports(t, "os", "os/*", "io", "io/*", "net", "net/*", "log", "log/*", "sync", "sync/*", "context", "runtime", "unsafe")
		if s.pkg != "sim/rng" {
			s.refuseImports(t, "math/rand", "math/rand/v2", "crypto/rand")
		}
		s.refuseCalls(t, "time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc",
			"time.Tick", "time.NewTimer", "time.NewTicker")
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v starts a goroutine", s.at(n))
			case *ast.ChanType:
				t.Errorf("%v has a channel", s.at(n))
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%v runs before main", s.at(n))
				}
			}
			return true
		})
	}
}

// refuseImports fails for imports that match a pattern as of path.Match.
func (s source) refuseImports(t *testing.T, patterns ...string) {
	t.Helper()
	for _, p := range s.imports() {
		for _, pattern := range patterns {
			if match, err := path.Match(pattern, p); match || err != nil {
				t.Errorf("%s imports %s, must not (%v)", s.file, p, err)
			}
		}
	}
}

// refuseCalls fails where a file names one of some functions, whatever it calls their package.
func (s source) refuseCalls(t *testing.T, functions ...string) {
	t.Helper()
	packages := map[string]string{} // by the name the file has for them
	for _, spec := range s.tree.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = p
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		var called string
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && packages[x.Name] != "" {
				called = packages[x.Name] + "." + n.Sel.Name
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok {
				called = f.Name
			}
		}
		if called != "" && slices.Contains(functions, called) {
			t.Errorf("%v uses %s, must not", s.at(n), called)
		}
		return true
	})
}
