package picture

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"llmsim/sweep"
)

// swept is the result of a sweep whose every figure is the number of its point, or none if that says so.
func swept(fields []string, at [][]string, none func(point int) bool) sweep.Result {
	p := sweep.Part{Header: sweep.Header{Version: "x", Sweep: "sha256:0", Scenario: "<b>&\"", Fields: fields, Points: len(at), Seeds: 1}}
	for _, f := range sweep.Simulate.Figures {
		p.Header.Figures = append(p.Header.Figures, f.Name)
	}
	for i, values := range at {
		l := sweep.Line{Point: i, At: values}
		for range p.Header.Figures {
			y := float64(i)
			if none != nil && none(i) {
				y = math.NaN()
			}
			l.Figures = append(l.Figures, sweep.Number(y))
		}
		p.Lines = append(p.Lines, l)
	}
	return p.Result(sweep.Simulate, nil)
}

// Fields that move together are one dimension, and so are stops that share a value.
func TestDimensions(t *testing.T) {
	var at [][]string
	for _, together := range []string{"1:8", "2:4", "4:4"} {
		for _, rate := range []string{"60", "20"} {
			at = append(at, append(strings.Split(together, ":"), "fcfs", rate))
		}
	}
	all := dimensions(4, at)
	if len(all) != 3 || !slices.Equal(all[0].stops, []string{"1:8", "2:4", "4:4"}) || !slices.Equal(all[2].fields, []int{3}) {
		t.Fatalf("dimensions = %+v, want tp:replicas, order and rate", all)
	}
	charts := SweepCharts(swept([]string{"tp", "replicas", "order", "rate"}, at, nil), nil)
	if len(charts) != 3 || len(charts[0].Series) != 3 {
		t.Fatalf("%d charts, want 3 of 3 curves", len(charts))
	}
	s := charts[0].Series[2]
	if s.Name != "tp:replicas=4:4" || !slices.Equal(s.X, []float64{20, 60}) || !slices.Equal(s.Y, []float64{5, 4}) || charts[0].X.Log {
		t.Errorf("curve %+v, want that of 4:4 in the order of rates", s)
	}
}

// However large a sweep is, its page is not, and says what it leaves out.
func TestSweepPageIsBounded(t *testing.T) {
	var many, wide [][]string
	for i := range 20_000 {
		many = append(many, []string{fmt.Sprint(i + 1)})
	}
	for i := range 100 {
		wide = append(wide, []string{"1", fmt.Sprintf("<i>%d", i)}, []string{"2", fmt.Sprintf("<i>%d", i)})
	}
	for _, c := range []struct {
		r    sweep.Result
		want []string
	}{
		{swept([]string{"rate"}, many, nil), []string{"Of 20,000 values of rate one in 40 is drawn.", "The first 2,000 of 20,000 points.", "<td>2000</td>"}},
		{swept([]string{"rate", "seed"}, wide, nil), []string{"12 of 100 curves", "not drawn: seed=&lt;i&gt;12; ", "; and 68 more.", "&lt;b&gt;&amp;&#34;"}},
		{swept([]string{"rate"}, many[:3], func(int) bool { return true }), []string{"there is nothing to draw"}},
		{swept([]string{"rate"}, many[:3], func(i int) bool { return i == 1 }), []string{"<figure class=\"chart\""}},
		{swept([]string{"rate"}, many[:1], nil), []string{"<h1>1 point of scenario"}},
	} {
		var page, plot bytes.Buffer
		if err := WriteSweep(&page, c.r, nil); err != nil {
			t.Fatal(err)
		}
		if err := WritePlot(&plot, "svg", SweepCharts(c.r, nil)); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(page.String(), want) {
				t.Errorf("the page of %d points lacks %q", c.r.Points, want)
			}
		}
		for _, bad := range []string{"NaN", "Inf", "<i>1", "<td>2001</td>"} {
			if strings.Contains(page.String(), bad) || strings.Contains(plot.String(), bad) {
				t.Errorf("the page or the plot of %d points has %s", c.r.Points, bad)
			}
		}
		if page.Len() > 700_000 || plot.Len() > 700_000 {
			t.Errorf("%d points: %d bytes of page, %d of plot, want few", c.r.Points, page.Len(), plot.Len())
		}
	}
}

// Values that grow by a factor stand on a logarithmic axis, equal steps don't.
func TestSweepAxis(t *testing.T) {
	for text, want := range map[string]bool{"1,2,4,8,16,32": true, "1,11,21,31,41": false, "8,16": false, "0,1,10,100": false} {
		var at [][]string
		for v := range strings.SplitSeq(text, ",") {
			at = append(at, []string{v})
		}
		if l := layOut(swept([]string{"a.b"}, at, nil)); l.axis.Log != want || l.axis.Names != nil {
			t.Errorf("%s: axis %+v, want logarithmic %v", text, l.axis, want)
		}
	}
}
