package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
)

// WriteJSON writes any plain data as indented JSON with a newline at its end.
func WriteJSON(w io.Writer, data any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(data)
}

// WriteCSV writes any plain data as rows of key,value under that head, with the keys of Flatten.
func WriteCSV(w io.Writer, data any) error {
	fields, err := Flatten(data)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	out.Write([]string{"key", "value"})
	for _, f := range fields {
		out.Write([]string{f.Key, f.Value})
	}
	out.Flush()
	return out.Error()
}

// A Field is one value of plain data and the way to it, as in latency_ms.ttft.p99; the elements of a list are
// counted from 0.
type Field struct{ Key, Value string }

// Flatten lists all values of plain data in the order of its JSON; null becomes the empty value.
func Flatten(data any) ([]Field, error) {
	var text bytes.Buffer
	if err := WriteJSON(&text, data); err != nil {
		return nil, err
	}
	d := json.NewDecoder(&text)
	d.UseNumber()
	return flatten(nil, d, "")
}

func flatten(fields []Field, d *json.Decoder, key string) ([]Field, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		for i := 0; d.More(); i++ {
			name := strconv.Itoa(i)
			if t == '{' {
				at, err := d.Token()
				if err != nil {
					return nil, err
				}
				name = at.(string) // a JSON object's keys are strings
			}
			if key != "" {
				name = key + "." + name
			}
			if fields, err = flatten(fields, d, name); err != nil {
				return nil, err
			}
		}
		_, err = d.Token() // the closing delimiter
		return fields, err
	case string:
		return append(fields, Field{key, t}), nil
	case json.Number:
		return append(fields, Field{key, t.String()}), nil
	case bool:
		return append(fields, Field{key, strconv.FormatBool(t)}), nil
	}
	return append(fields, Field{key, ""}), nil
}

// lines collects what is written and remembers the first error, so that only the end needs to look.
type lines struct {
	out *bufio.Writer
	err error
}

func newLines(w io.Writer) *lines { return &lines{out: bufio.NewWriter(w)} }

func (l *lines) text(s string) {
	if l.err == nil {
		_, l.err = l.out.WriteString(s)
	}
}

func (l *lines) do(write func(io.Writer) error) {
	if l.err == nil {
		l.err = write(l.out)
	}
}

func (l *lines) end() error {
	if l.err != nil {
		return l.err
	}
	return l.out.Flush()
}
