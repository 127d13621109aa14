package report

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// A Table is cells under heads that name their units. Its first column names the rows; the others hold
// figures, which line up at their decimal points.
type Table struct {
	Head []string
	Rows [][]string
}

// WriteText writes the table for people: no rules, two spaces between columns.
func (t Table) WriteText(w io.Writer) error {
	var out bytes.Buffer
	table := tablewriter.NewTable(&out, t.config(tw.Padding{Right: gap, Overwrite: true}),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{
				Lines:      tw.Lines{ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.Off, ShowFooterLine: tw.Off},
				Separators: tw.Separators{ShowHeader: tw.Off, ShowFooter: tw.Off, BetweenRows: tw.Off, BetweenColumns: tw.Off},
			},
		})))
	if err := t.render(table, t.aligned()); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// WriteMarkdown writes the table as pipes and dashes.
func (t Table) WriteMarkdown(w io.Writer) error {
	table := tablewriter.NewTable(w, t.config(tw.Padding{Left: " ", Right: " ", Overwrite: true}),
		tablewriter.WithRenderer(renderer.NewMarkdown()))
	return t.render(table, t.Rows)
}

// Wide reports whether WriteText takes more columns than a table for people should.
func (t Table) Wide() bool { return t.width() > width }

// width is the number of columns that WriteText takes.
func (t Table) width() int {
	sum := 0
	rows := t.aligned()
	for i, h := range t.Head {
		widest := utf8.RuneCountInString(h)
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		sum += widest + len(gap)
	}
	return sum - len(gap)
}

const gap = "  "

func (t Table) config(padding tw.Padding) tablewriter.Option {
	align := make([]tw.Align, len(t.Head))
	for i := range align {
		align[i] = tw.AlignRight
	}
	if len(align) > 0 {
		align[0] = tw.AlignLeft
	}
	cell := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Padding:    tw.CellPadding{Global: padding},
		Alignment:  tw.CellAlignment{PerColumn: align},
	}
	return tablewriter.WithConfig(tablewriter.Config{
		Header: cell, Row: cell,
		Behavior: tw.Behavior{TrimSpace: tw.Off, AutoHide: tw.Off},
	})
}

func (t Table) render(table *tablewriter.Table, rows [][]string) error {
	head := make([]any, len(t.Head))
	for i, h := range t.Head {
		head[i] = h
	}
	table.Header(head...)
	for _, row := range rows {
		if err := table.Append(row); err != nil {
			return err
		}
	}
	return table.Render()
}

// aligned returns the rows with every figure padded on the right to its column's most decimals.
func (t Table) aligned() [][]string {
	decimals := func(cell string) int {
		point := strings.IndexByte(cell, '.')
		if point < 0 {
			return 0
		}
		return utf8.RuneCountInString(cell[point:])
	}
	widest := make([]int, len(t.Head))
	for _, row := range t.Rows {
		for i, cell := range row[1:] {
			widest[i+1] = max(widest[i+1], decimals(cell))
		}
	}
	rows := make([][]string, len(t.Rows))
	for k, row := range t.Rows {
		rows[k] = append(rows[k], row[0])
		for i, cell := range row[1:] {
			rows[k] = append(rows[k], cell+strings.Repeat(" ", widest[i+1]-decimals(cell)))
		}
	}
	return rows
}
