package picture

import (
	"bufio"
	_ "embed"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"

	"llmsim/report"
)

//go:embed page.css
var css string

//go:embed page.js
var script string

// A page is written from its head to its end, and keeps its first error.
type page struct {
	out   *bufio.Writer
	err   error
	drawn bool // a chart
}

// text writes what is markup already.
func (p *page) text(parts ...string) {
	for _, s := range parts {
		if p.err == nil {
			_, p.err = p.out.WriteString(s)
		}
	}
}

func esc(s string) string { return html.EscapeString(s) }

// newPage writes the head of a page that may load nothing: all it needs is in it.
func newPage(w io.Writer, title string) *page {
	p := &page{out: bufio.NewWriter(w)}
	p.text("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n",
		"<link rel=\"icon\" href=\"data:,\">\n<title>", esc(title), "</title>\n<style>\n", css, "</style>\n</head>\n<body>\n<main>\n")
	return p
}

// end writes the end of a page.
func (p *page) end(version string) error {
	hint := "."
	if p.drawn {
		hint = ". Drag across a chart over time to look closer, double-click to go back; click a name to hide its curve."
	}
	p.text("<footer>llmsim ", esc(version), hint, "</footer>\n",
		"</main>\n<script>\n", script, "</script>\n</body>\n</html>\n")
	if p.err != nil {
		return p.err
	}
	return p.out.Flush()
}

// heading opens a section.
func (p *page) heading(title, about string) {
	p.text("<h2>", esc(title), "</h2>\n")
	if about != "" {
		p.text("<p class=\"about\">", esc(about), "</p>\n")
	}
}

// A card is a figure that stands for itself.
type card struct{ name, value, unit, note string }

func (p *page) cards(all ...card) {
	p.text("<div class=\"cards\">\n")
	for _, c := range all {
		if c.value == "" {
			continue
		}
		p.text("<div class=\"card\"><span class=\"k\">", esc(c.name), "</span><span class=\"v\">", esc(c.value))
		if c.unit != "" {
			p.text("<small>", esc(c.unit), "</small>")
		}
		p.text("</span><span class=\"n\">", esc(c.note), "</span></div>\n")
	}
	p.text("</div>\n")
}

// A part is a piece of a bar.
type part struct {
	name   string
	value  float64
	label  string
	colour int // -1: nothing is there
}

// split draws one bar of parts that add up to a whole.
func (p *page) split(title, about string, parts []part) {
	whole := 0.0
	for _, x := range parts {
		whole += max(x.value, 0)
	}
	if whole <= 0 {
		return
	}
	p.text("<figure class=\"bars\"><figcaption><b>", esc(title), "</b> <span>", esc(about), "</span></figcaption>\n<div class=\"split\">")
	for _, x := range parts {
		if x.value <= 0 {
			continue
		}
		p.text("<div class=\"", colour(x.colour), "\" style=\"width:", percent(x.value/whole), "\" title=\"", esc(x.name+": "+x.label), "\"></div>")
	}
	p.text("</div>\n<ul class=\"key\">")
	for _, x := range parts {
		if x.value > 0 {
			p.text("<li><i class=\"", colour(x.colour), "\"></i>", esc(x.name), " <b>", esc(x.label), "</b></li>")
		}
	}
	p.text("</ul></figure>\n")
}

// A bar is one of several that are compared; from says where it starts.
type bar struct {
	name, label string
	value       float64
	colour      int
	limit       float64 // a line across the bar; 0: none
}

// bars draws bars below one another, to the right of zero or, below it, to the left.
func (p *page) bars(title, about string, all []bar) {
	if len(all) == 0 {
		return
	}
	lo, hi := 0.0, 0.0
	for _, b := range all {
		lo, hi = min(lo, b.value), max(hi, b.value, b.limit)
	}
	if hi == lo {
		hi = 1
	}
	at := func(v float64) float64 { return (v - lo) / (hi - lo) }
	p.text("<figure class=\"bars\"><figcaption><b>", esc(title), "</b> <span>", esc(about), "</span></figcaption>\n<div class=\"rows\">\n")
	for _, b := range all {
		left, right := at(min(b.value, 0)), at(max(b.value, 0))
		p.text("<span class=\"name\">", esc(b.name), "</span><span class=\"num\">", esc(b.label), "</span><span class=\"track\">")
		if right > left {
			p.text("<i class=\"", colour(b.colour), "\" style=\"left:", percent(left), ";width:", percent(max(right-left, 0.002)), "\"></i>")
		}
		if lo < 0 {
			p.text("<em style=\"left:", percent(at(0)), "\"></em>")
		}
		if b.limit > 0 {
			p.text("<u style=\"left:", percent(at(b.limit)), "\"></u>")
		}
		p.text("</span>\n")
	}
	p.text("</div></figure>\n")
}

func colour(c int) string {
	if c < 0 {
		return "none"
	}
	return "c" + strconv.Itoa(c)
}

func percent(share float64) string {
	return strconv.FormatFloat(100*share, 'f', 2, 64) + "%"
}

// table writes a table whose first column names the rows.
func (p *page) table(t report.Table) {
	if len(t.Rows) == 0 {
		return
	}
	p.text("<div class=\"scroll\"><table>\n<thead><tr>")
	for _, h := range t.Head {
		p.text("<th>", esc(h), "</th>")
	}
	p.text("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		p.text("<tr>")
		for _, cell := range row {
			p.text("<td>", esc(cell), "</td>")
		}
		p.text("</tr>\n")
	}
	p.text("</tbody></table></div>\n")
}

// charts writes charts side by side where there is room.
func (p *page) charts(all ...Chart) {
	p.text("<div class=\"grid\">\n")
	for i := range all {
		p.chart(&all[i])
	}
	p.text("</div>\n")
}

// extent is how many units a drawing has in both directions; its text stands outside of it, so that it is
// legible however the drawing is stretched.
const extent = 1000

// coordinate writes a place in a drawing.
func coordinate(share float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(share*extent, 'f', 1, 64), ".0")
}

func (a Axis) data() string {
	kind := "lin"
	if a.Log {
		kind = "log"
	}
	return fmt.Sprintf("%g,%g,%s,%s", a.Min, a.Max, kind, a.Unit)
}

func (p *page) chart(c *Chart) {
	if !c.drawn() {
		return
	}
	c.fit()
	p.drawn = true
	p.text("<figure class=\"chart\" data-x=\"", esc(c.X.data()), "\" data-y=\"", esc(c.Y.data()), "\"")
	if c.Zoom {
		p.text(" data-zoom")
	}
	if c.X.Names != nil {
		p.text(" data-names=\"", esc(strings.Join(c.X.Names, "\n")), "\"")
	}
	p.text("><figcaption><b>", esc(c.Title), "</b> <span>", esc(c.About), "</span></figcaption>\n<div class=\"legend\">")
	for i, s := range c.Series {
		kind := ""
		switch s.Style {
		case Dash:
			kind = " dash"
		case Dots:
			kind = " dots"
		}
		p.text("<button type=\"button\" data-s=\"", strconv.Itoa(i), "\" aria-pressed=\"true\"><i class=\"", colour(s.Colour), kind, "\"></i>", esc(s.Name), "</button>")
	}
	if c.Note != "" {
		p.text("<span class=\"sub\">", esc(c.Note), "</span>")
	}
	p.text("</div>\n<div class=\"yl\">", esc(c.Y.title()), "</div>\n<div class=\"plot\"><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
		esc(c.Title), "\">\n<path class=\"g\" d=\"")
	for _, v := range c.Y.ticks(5) {
		p.text("M0,", coordinate(1-c.Y.place(v)), "h1000")
	}
	p.text("\"/><path class=\"g gx\" d=\"")
	for _, v := range c.X.ticks(6) {
		p.text("M", coordinate(c.X.place(v)), ",0v1000")
	}
	p.text("\"/>\n")
	for _, m := range c.Marks {
		d := "M" + coordinate(c.X.place(m.At)) + ",0v1000"
		if m.Across {
			d = "M0," + coordinate(1-c.Y.place(m.At)) + "h1000"
		}
		p.text("<path class=\"", m.class(), "\" d=\"", d, "\"><title>", esc(m.Name), "</title></path>\n")
	}
	tops := c.tops()
	for i, s := range c.Series {
		below := []float64(nil)
		if s.Style == Stack && i > 0 {
			below = tops[i-1]
		}
		p.series(c, i, tops[i], below)
	}
	p.text("</svg>\n")
	for _, v := range c.Y.ticks(5) {
		p.text("<span class=\"y\" style=\"bottom:", percent(c.Y.place(v)), "\">", tick(v), "</span>")
	}
	for _, v := range c.X.ticks(6) {
		p.text("<span class=\"x\" style=\"left:", percent(c.X.place(v)), "\">", esc(c.X.tick(v)), "</span>")
	}
	row := 0
	for _, m := range c.Marks {
		if m.Across {
			p.text("<span class=\"", m.class(), "\" style=\"left:0;bottom:", percent(c.Y.place(m.At)), "\">", esc(m.Name), "</span>")
			continue
		}
		side, at := "left", c.X.place(m.At)
		if at > 0.6 {
			side, at = "right", 1-at
		}
		p.text("<span class=\"", m.class(), " up\" style=\"", side, ":", percent(at), ";top:", fmt.Sprintf("%.1fem", 1.35*float64(row)), "\">", esc(m.Name), "</span>")
		row++
	}
	p.labels(c)
	p.text("</div>\n<div class=\"xl\">", esc(c.X.title()), "</div></figure>\n")
}

// A chart's drawing, in the pixels of a window of middling width, and the size of a label's letter there.
const (
	nominalWidth, nominalHeight = 620.0, 220.0
	letterWidth, letterHeight   = 6.5, 13.0
)

// pixels is where a point of a series then is.
func pixels(c *Chart, s *Series, k int) (x, y float64) {
	return float64(c.X.place(s.X[k]) * nominalWidth), float64(c.Y.place(s.Y[k]) * nominalHeight)
}

// labels names dots, beside each where there is room; those before have the first choice.
func (p *page) labels(c *Chart) {
	type box struct{ left, right, bottom, top float64 }
	var taken []box
	for _, s := range c.Series {
		for k := range s.Labels {
			x, y := pixels(c, &s, k)
			taken = append(taken, box{x - 5, x + 5, y - 5, y + 5})
		}
	}
	for _, s := range c.Series {
		for k, label := range s.Labels {
			x, y := pixels(c, &s, k)
			width := float64(letterWidth * float64(len(label)))
			for i, dy := range []float64{0, 0, letterHeight, letterHeight, -letterHeight, -letterHeight} {
				b := box{x + 7, x + 7 + width, y - letterHeight/2 + dy, y + letterHeight/2 + dy}
				left := i%2 == 1
				if left {
					b.left, b.right = x-7-width, x-7
				}
				if b.left < 0 || b.right > nominalWidth || b.bottom < 0 || b.top > nominalHeight ||
					slices.ContainsFunc(taken, func(o box) bool {
						return b.left < o.right && o.left < b.right && b.bottom < o.top && o.bottom < b.top
					}) {
					continue
				}
				taken = append(taken, b)
				side, at := "left:", c.X.place(s.X[k])
				if left {
					side, at = "right:", 1-at
				}
				p.text("<span class=\"pt\" style=\"", side, percent(at), ";bottom:calc(", percent(c.Y.place(s.Y[k])), fmt.Sprintf(" + %.0fpx)\">", dy), esc(label), "</span>")
				break
			}
		}
	}
}

func (m Mark) class() string {
	if m.Warning {
		return "m warn"
	}
	return "m"
}

// series draws one curve on the tops of the one below it, or on zero.
func (p *page) series(c *Chart, i int, top, below []float64) {
	s := &c.Series[i]
	x := func(k int) string { return coordinate(c.X.place(s.X[k])) }
	y := func(v float64) string { return coordinate(1 - c.Y.place(v)) }
	name, id := colour(s.Colour), strconv.Itoa(i)
	if len(s.X) == 0 {
		return
	}
	if s.Style == Dots {
		for k := range s.X {
			p.text("<path class=\"dots ", name, "\" data-s=\"", id, "\" d=\"M", x(k), ",", y(top[k]), "h0\"><title>", esc(s.Labels[k]), ": ",
				report.Figure(s.X[k]), " ", esc(c.X.title()), ", ", report.Figure(s.Y[k]), " ", esc(c.Y.title()), "</title></path>\n")
		}
		return
	}
	var line, points strings.Builder
	for k := range s.X {
		letter := byte('L')
		if k == 0 {
			letter = 'M'
		}
		switch {
		case s.Style == Steps && k > 0:
			fmt.Fprintf(&line, "L%s,%sL%s,%s", x(k), y(top[k-1]), x(k), y(top[k]))
		default:
			line.WriteByte(letter)
			line.WriteString(x(k) + "," + y(top[k]))
		}
		points.WriteString("M" + x(k) + "," + y(top[k]) + "h0")
	}
	if s.Style == Area || s.Style == Stack || s.Style == Steps {
		var back strings.Builder
		if below == nil {
			back.WriteString("L" + x(len(s.X)-1) + "," + coordinate(1) + "L" + x(0) + "," + coordinate(1))
		}
		for k := len(below) - 1; k >= 0; k-- {
			back.WriteString("L" + x(k) + "," + y(below[k]))
		}
		p.text("<path class=\"f ", name, "\" data-s=\"", id, "\" d=\"", line.String(), back.String(), "Z\"/>\n")
	}
	style := map[Style]string{Dash: " dash", Steps: " steps", Stack: " stack"}[s.Style]
	p.text("<path class=\"l ", name, style, "\" data-s=\"", id, "\" d=\"", line.String(), "\"><title>", esc(s.Name), "</title></path>\n")
	if s.Errors != nil {
		var bars strings.Builder
		for k, e := range s.Errors {
			fmt.Fprintf(&bars, "M%s,%sV%s", x(k), y(top[k]-e), y(top[k]+e))
		}
		p.text("<path class=\"w ", name, "\" data-s=\"", id, "\" d=\"", bars.String(), "\"/>\n")
	}
	if s.Points {
		p.text("<path class=\"dots small ", name, "\" data-s=\"", id, "\" d=\"", points.String(), "\"/>\n")
	}
}
