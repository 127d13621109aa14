package measured

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
)

// table reads a CSV by the names of its columns.
func table(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, row map[string]string, name string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(row[name], 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return x
}

// A deviation gathers what is simulated less what was measured.
type deviation struct{ sum, abs, worst, n float64 }

func (d *deviation) add(x float64) {
	d.sum += x
	d.abs += math.Abs(x)
	d.worst = max(d.worst, math.Abs(x))
	d.n++
}

// mae is the mean absolute deviation.
func (d deviation) mae() float64 { return d.abs / d.n }

func (d deviation) String() string {
	return fmt.Sprintf("off by %.2f on average, %+.2f with its sign, %.1f at worst", d.mae(), d.sum/d.n, d.worst)
}
