package picture

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	imagefont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Formats are those of WritePlot, as the names of files end.
var Formats = []string{"png", "svg", "pdf"}

// FormatOf is the format of a file by its name.
func FormatOf(path string) (string, error) {
	for _, f := range Formats {
		if strings.HasSuffix(strings.ToLower(path), "."+f) {
			return f, nil
		}
	}
	return "", fmt.Errorf("must end in .%s, is %s", strings.Join(Formats, ", ."), path)
}

// A sheet is two charts wide.
const (
	columns     = 2
	chartWidth  = 15 * vg.Centimeter
	chartHeight = 9 * vg.Centimeter
	padding     = 6 * vg.Millimeter
	headHeight  = 12 * vg.Millimeter
	dotsPerInch = 144
)

// palette is that of the pages on white.
var palette = []color.RGBA{
	{0x0b, 0x6f, 0xa4, 0xff}, {0xc8, 0x50, 0x0a, 0xff}, {0x0f, 0x8a, 0x5f, 0xff},
	{0xa3, 0x45, 0x8a, 0xff}, {0xb0, 0x7d, 0x00, 0xff}, {0x6b, 0x76, 0x80, 0xff},
}

var (
	limit = color.RGBA{0xb3, 0x26, 0x1e, 0xff}
	sans  = font.Font{Typeface: "Liberation", Variant: "Sans"}
)

// WritePlot writes charts on one sheet. The same charts give the same bytes. A PDF needs a place for temporary
// files.
func WritePlot(w io.Writer, format string, charts []Chart) (err error) {
	defer func() { // as the writer of PDF files panics without one
		if failed := recover(); failed != nil {
			err = fmt.Errorf("the plot can't be drawn: %v", failed)
		}
	}()
	charts = slices.DeleteFunc(slices.Clone(charts), func(c Chart) bool { return !c.drawn() })
	rows := max((len(charts)+columns-1)/columns, 1)
	width, height := columns*chartWidth, vg.Length(rows)*chartHeight
	var canvas vg.CanvasWriterTo
	weight := imagefont.WeightBold
	switch format {
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dotsPerInch))}
	case "svg":
		canvas = vgsvg.New(width, height)
	case "pdf":
		// A document has dates, which must not differ between runs.
		fpdf.SetDefaultCatalogSort(true)
		fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
		fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
		canvas = vgpdf.New(width, height)
		weight = imagefont.WeightNormal // its writer looks for bold fonts under names that they don't have
	default:
		return fmt.Errorf("a plot is written as one of %s, not %q", strings.Join(Formats, ", "), format)
	}
	sheet := draw.New(canvas)
	sheet.SetColor(color.White)
	sheet.Fill(sheet.Rectangle.Path())
	tiles := draw.Tiles{Cols: columns, Rows: rows, PadTop: padding, PadBottom: padding, PadLeft: padding, PadRight: padding, PadX: padding, PadY: padding}
	for i := range charts {
		p, err := charts[i].plot()
		if err != nil {
			return err
		}
		tile := tiles.At(sheet, i%columns, i/columns)
		height := headHeight + charts[i].head(tile, weight)
		p.Draw(draw.Crop(tile, 0, 0, 0, -height))
	}
	_, err = canvas.WriteTo(w)
	return err
}

// head writes a chart's title, and below it what its curves and marks are. It returns how much higher than
// headHeight it is.
func (c Chart) head(on draw.Canvas, weight imagefont.Weight) (more vg.Length) {
	style := draw.TextStyle{Color: color.Black, Font: font.From(sans, 12), Handler: plot.DefaultTextHandler}
	style.Font.Weight = weight
	at := vg.Point{X: on.Min.X, Y: on.Max.Y - 4*vg.Millimeter}
	on.FillText(style, at, c.Title)
	style.Font = font.From(sans, 8)
	at.Y -= 5 * vg.Millimeter
	entry := func(name string, ink color.Color, dashes []vg.Length) {
		const sample, row = 5 * vg.Millimeter, 4 * vg.Millimeter
		if at.X > on.Min.X && at.X+sample+vg.Millimeter+style.Width(name) > on.Max.X {
			at.X = on.Min.X
			at.Y -= row
			more += row
		}
		if ink == nil { // of a note
			on.FillText(style, at, name)
			return
		}
		y := at.Y + style.Font.Size/3
		on.StrokeLine2(draw.LineStyle{Color: ink, Width: 1.5, Dashes: dashes}, at.X, y, at.X+sample, y)
		at.X += sample + vg.Millimeter
		on.FillText(style, at, name)
		at.X += style.Width(name) + 4*vg.Millimeter
	}
	for _, s := range c.Series {
		entry(s.Name, palette[s.Colour%len(palette)], s.dashes())
	}
	for _, m := range c.Marks {
		entry(m.Name, limit, []vg.Length{4, 3})
	}
	if c.Note != "" {
		entry(c.Note, nil, nil)
	}
	return more
}

func (s *Series) dashes() []vg.Length {
	if s.Style == Dash {
		return []vg.Length{4, 2}
	}
	return nil
}

// plot is a chart as the plotting library has it.
func (c Chart) plot() (*plot.Plot, error) {
	c.fit()
	p := plot.New()
	style := func(t *draw.TextStyle, size vg.Length) { t.Font = font.From(sans, size) }
	p.X.Label.Text, p.Y.Label.Text = c.X.title(), c.Y.title()
	style(&p.X.Label.TextStyle, 9)
	style(&p.Y.Label.TextStyle, 9)
	style(&p.X.Tick.Label, 8)
	style(&p.Y.Tick.Label, 8)
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(c.X.marks()), plot.ConstantTicks(c.Y.marks())
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe6}, color.Gray{0xe6}
	p.Add(grid)
	tops := c.tops()
	for i, s := range c.Series {
		if err := c.draw(p, &s, tops, i); err != nil {
			return nil, err
		}
	}
	for _, m := range c.Marks {
		from, to := plotter.XY{X: m.At, Y: c.Y.Min}, plotter.XY{X: m.At, Y: c.Y.Max}
		if m.Across {
			from, to = plotter.XY{X: c.X.Min, Y: m.At}, plotter.XY{X: c.X.Max, Y: m.At}
		}
		line, err := plotter.NewLine(plotter.XYs{from, to})
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = limit, []vg.Length{4, 3}
		p.Add(line)
	}
	// What was added has widened the axes.
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = c.X.Min, c.X.Max, c.Y.Min, c.Y.Max
	if c.X.Log {
		p.X.Scale = plot.LogScale{}
	}
	if c.Y.Log {
		p.Y.Scale = plot.LogScale{}
	}
	return p, nil
}

// marks are an axis's ticks with their labels.
func (a Axis) marks() (all []plot.Tick) {
	for _, v := range a.ticks(6) {
		all = append(all, plot.Tick{Value: v, Label: a.tick(v)})
	}
	return all
}

func (c Chart) draw(p *plot.Plot, s *Series, tops [][]float64, i int) error {
	if len(s.X) == 0 {
		return nil
	}
	var points plotter.XYs
	for k := range s.X {
		x, y := s.X[k], tops[i][k]
		if c.X.Log {
			x = max(x, c.X.Min)
		}
		if c.Y.Log {
			y = max(y, c.Y.Min)
		}
		if s.Style == Steps && k > 0 {
			points = append(points, plotter.XY{X: x, Y: tops[i][k-1]})
		}
		points = append(points, plotter.XY{X: x, Y: y})
	}
	ink := palette[s.Colour%len(palette)]
	if s.Style == Area || s.Style == Stack || s.Style == Steps {
		outline := slices.Clone(points)
		if s.Style == Stack && i > 0 {
			for k := len(s.X) - 1; k >= 0; k-- {
				outline = append(outline, plotter.XY{X: s.X[k], Y: tops[i-1][k]})
			}
		} else {
			outline = append(outline, plotter.XY{X: points[len(points)-1].X, Y: c.Y.Min}, plotter.XY{X: points[0].X, Y: c.Y.Min})
		}
		fill, err := plotter.NewPolygon(outline)
		if err != nil {
			return err
		}
		pale := func(x uint8) uint8 { return uint8(255 - (255-int(x))/5) }
		fill.Color, fill.LineStyle.Width = color.RGBA{pale(ink.R), pale(ink.G), pale(ink.B), 0xff}, 0
		p.Add(fill)
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = ink, 1.2, s.dashes()
	p.Add(line)
	for k, e := range s.Errors {
		at := func(y float64) plotter.XY { return plotter.XY{X: points[k].X, Y: max(y, c.Y.Min)} }
		bar, err := plotter.NewLine(plotter.XYs{at(tops[i][k] - e), at(tops[i][k] + e)})
		if err != nil {
			return err
		}
		bar.Color = ink
		p.Add(bar)
	}
	if s.Points {
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: ink, Radius: 1.8, Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	return nil
}
