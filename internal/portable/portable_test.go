// Package portable checks that a run gives the same bytes on arm64 as on amd64.
//
// LLMSIM_ARM64=1 turns it on; with LLMSIM_ARM64=require it fails where qemu-aarch64-static, which
// runs the arm64 binary, is absent.
package portable

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const (
	root = "../.."
	qemu = "qemu-aarch64-static"
)

// build compiles the program for a processor.
func build(t *testing.T, arch string) string {
	t.Helper()
	if mode := os.Getenv("LLMSIM_ARM64"); mode == "" || mode == "0" {
		t.Skip("set LLMSIM_ARM64=1 to compare arm64 with amd64")
	}
	out := filepath.Join(t.TempDir(), "llmsim-"+arch)
	c := exec.Command("go", "build", "-o", out, "./cmd/llmsim")
	c.Dir = root
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build for %s: %v\n%s", arch, err, text)
	}
	return out
}

var (
	symbols = `^llmsim/(sim|workload|report|scenarios|plan|picture|validation|sweep|strict|experiment|check)[/.]`
	fused   = regexp.MustCompile(`\bF?N?M(ADD|SUB)[SD]\b`)
)

// A product that feeds a sum must be rounded in between, float64(a*b) + c: else a compiler for a
// machine that can do both at once rounds only the sum, and the last bit differs from amd64's.
func TestNoFusedProducts(t *testing.T) {
	binary := build(t, "arm64")
	c := exec.Command("go", "tool", "objdump", "-s", symbols, binary)
	text, err := c.Output()
	if err != nil {
		t.Fatalf("go tool objdump: %v", err)
	}
	symbol, count := "", 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "TEXT "); ok {
			symbol, _, _ = strings.Cut(name, "(SB)")
			count++
			continue
		}
		if isFused(line) {
			t.Errorf("%s fuses a product into a sum; write float64(a*b) + c: %s", symbol, strings.Join(strings.Fields(line), " "))
		}
	}
	if lines.Err() != nil || count < 100 {
		t.Errorf("objdump showed %d functions (%v), want the whole program's", count, lines.Err())
	}
}

// isFused reports whether a disassembled line is FMADD, FMSUB, FNMADD or FNMSUB; the integer
// MADD and MSUB are exact.
func isFused(line string) bool {
	m := fused.FindString(line)
	return strings.HasPrefix(m, "F")
}

func TestFusedIsRecognised(t *testing.T) {
	for line, want := range map[string]bool{
		"  roofline.go:49	0x10	0x1f400000	FMADDD F0, F1, F2, F3	":  true,
		"  roofline.go:49	0x10	0x1f608000	FNMSUBS F0, F1, F2, F3	": true,
		"  roofline.go:49	0x10	0x1e610800	FMULD F1, F2, F3	":       false,
		"  pool.go:41	0x10	0x9b000000	MADD R0, R1, R2, R3	":        false,
		"  pool.go:41	0x10	0x9b000000	MSUB R0, R1, R2, R3	":        false,
	} {
		if got := isFused(line); got != want {
			t.Errorf("isFused(%q) = %v, want %v", line, got, want)
		}
	}
}

// Summaries, per-request files and plans are equal to the byte.
func TestSameBytes(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skipf("compares with linux/amd64, runs on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	amd64, arm64 := build(t, "amd64"), build(t, "arm64")
	emulator, err := exec.LookPath(qemu)
	if err != nil {
		if os.Getenv("LLMSIM_ARM64") == "require" {
			t.Fatal(err)
		}
		t.Skipf("the arm64 binary is not run: %v", err)
	}
	const requestsOut = "requests.csv"
	run := func(command []string, args ...string) (out, requests []byte) {
		t.Helper()
		c := exec.Command(command[0], append(command[1:], args...)...)
		c.Dir = t.TempDir()
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil && c.ProcessState.ExitCode() != 1 { // 1: a plan's answer is no
			t.Fatalf("%v %v: %v\n%s", command, args, err, &stderr)
		}
		requests, _ = os.ReadFile(filepath.Join(c.Dir, requestsOut))
		return out, requests
	}
	simulate := func(args ...string) []string {
		return append([]string{"simulate", "--format", "json", "--requests-out", requestsOut}, args...)
	}
	for _, args := range [][]string{
		simulate("--scenario", "e1-uniform", "--requests", "1000"),
		simulate("--scenario", "e5"),
		simulate("--scenario", "e7", "--requests", "2000",
			"--set", "workload.arrivals={process: gamma, rate: 60, cv: 3}",
			"--set", "workload.prompt_tokens={lognormal: [400, 0.8]}",
			"--set", "workload.output_tokens={lognormal: [60, 0.7]}"),
		simulate("--scenario", "e7", "--requests", "2000", "--replicas", "3", "--rate", "200",
			"--set", "cluster.router=power-of-two-choices",
			"--set", "workload.prompt_tokens={normal: [500, 200]}",
			"--set", "cost.efficiency={compute: 0.7, memory: 0.83}"),
		simulate("--model", "qwen3-30b-a3b", "--gpu", "h100-sxm", "--tp", "2", "--policy", "vllm-v1", "--explain", "--rate", "20", "--requests", "1000"),
		simulate("--model", "deepseek-v3", "--gpu", "h200-sxm", "--tp", "8", "--policy", "vllm-v1", "--explain", "--rate", "5", "--requests", "200"),
		{"plan", "--format", "json", "--rate", "80"},
		{"sweep", "--format", "csv", "--over", "rate=20..60:20", "--over", "engine.max_num_seqs=8..64:x2", "--requests", "300", "--seeds", "3"},
	} {
		want, wantRequests := run([]string{amd64}, args...)
		got, gotRequests := run([]string{emulator, arm64}, args...)
		if !bytes.Equal(got, want) {
			t.Errorf("llmsim %s:\non arm64\n%s\non amd64\n%s", strings.Join(args, " "), got, want)
		}
		if !bytes.Equal(gotRequests, wantRequests) {
			t.Errorf("llmsim %s: %s differs between arm64 and amd64", strings.Join(args, " "), requestsOut)
		}
		if args[0] == "simulate" && len(wantRequests) == 0 {
			t.Errorf("llmsim %s: %s is empty", strings.Join(args, " "), requestsOut)
		}
	}
}
