package report

import (
	"os"
	"strings"
	"testing"
)

func ExampleTable() {
	t := Table{Head: []string{"GPU", "rate (req/s)", "price ($/h)"}, Rows: [][]string{
		{"h100-80gb", Figure(80.93), "2.50"}, {"b200", Figure(1234.5), "12"}}}
	t.WriteText(os.Stdout)
	// Output:
	// GPU        rate (req/s)  price ($/h)
	// h100-80gb         80.93         2.50
	// b200           1,234           12
}

// Heads and cells appear as they were given, whatever is in them.
func TestTableLeavesTextAlone(t *testing.T) {
	table := Table{Head: []string{"kv_use.p99 / max", "n_a"}, Rows: [][]string{{"  a_b  c", "1"}, {"", "22"}, {"é", "3.5"}}}
	var got strings.Builder
	if err := table.WriteText(&got); err != nil {
		t.Fatal(err)
	}
	want := "kv_use.p99 / max   n_a\n  a_b  c           1\n                  22\né                  3.5\n"
	if got.String() != want {
		t.Errorf("WriteText wrote\n%q, want\n%q", got.String(), want)
	}
	got.Reset()
	if err := table.WriteMarkdown(&got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.String(), "| kv_use.p99 / max |") {
		t.Errorf("WriteMarkdown wrote\n%s", got.String())
	}
}

func TestTableWide(t *testing.T) {
	for columns, want := range map[int]bool{80: false, 81: true} {
		table := Table{Head: []string{"a", strings.Repeat("b", columns-len("a")-len(gap))}, Rows: [][]string{{"1", "2"}}}
		if got := table.Wide(); got != want {
			t.Errorf("Wide() of %d columns = %v, want %v", columns, got, want)
		}
	}
}

func TestWrapIndentsItems(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for line, want := range map[string]string{"- " + long: "\n  word", long: "\nword"} {
		if got := Wrap(line); !strings.Contains(got, want) {
			t.Errorf("Wrap(%q) = %q, which lacks %q", line, got, want)
		}
	}
}
