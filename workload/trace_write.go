package workload

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// WriteTrace writes all requests of src in the llmsim format, and returns how many.
// Read back they are the same to the nanosecond, numbered from 0. Columns that no
// request needs are left out; to know which, a source that is no Replay is held in
// memory first, at 24 bytes a request. Of a Feedback source only the requests that it
// gives without an answer are written.
func WriteTrace(w io.Writer, src Source) (n int, err error) {
	if p, ok := src.(*Replay); ok {
		if n, err = write(w, p, p.trace.columns); err == nil {
			err = p.Err()
		}
		return n, err
	}
	held, used, err := holdSource(src)
	if err != nil {
		return 0, err
	}
	return write(w, &heldSource{rows: held}, used)
}

// heldSource replays held rows as they are.
type heldSource struct {
	rows  *rows
	index int
}

func (s *heldSource) Next() (Request, bool) {
	if s.index == len(s.rows.packed) {
		return Request{}, false
	}
	s.index++
	return s.rows.request(s.index-1, 0), true
}

func holdSource(src Source) (held *rows, used columns, err error) {
	held = &rows{}
	for q, ok := src.Next(); ok; q, ok = src.Next() {
		if err := writable(&q, len(held.packed)); err != nil {
			return nil, used, err
		}
		if len(held.packed) == mostRows || len(held.ids)+len(q.Prefix) > mostIDs {
			return nil, used, fmt.Errorf("a trace to write must have at most %d requests and %d prefix ids, has more", mostRows, mostIDs)
		}
		held.add(&row{
			at: int64(q.Arrival), prompt: int32(q.Prompt), output: int32(q.Output), priority: int32(q.Priority),
			session: q.Session, prefix: q.Prefix, block: int32(q.PrefixBlock),
		})
		used.priority = used.priority || q.Priority != 0
		used.session = used.session || q.Session != 0
		used.prefix = used.prefix || q.PrefixBlock != 0
	}
	return held, used, nil
}

// writable tells whether the format can hold a request.
func writable(q *Request, index int) error {
	switch {
	case q.Arrival < 0 || q.Arrival > maxInstant:
		return fmt.Errorf("request %d: Arrival: must be from 0 to %v, is %v", index, time.Duration(maxInstant), q.Arrival)
	case q.Prompt < 1 || q.Prompt > maxTokens:
		return fmt.Errorf("request %d: Prompt: must be from 1 to %d, is %d", index, maxTokens, q.Prompt)
	case q.Output < 1 || q.Output > maxTokens:
		return fmt.Errorf("request %d: Output: must be from 1 to %d, is %d", index, maxTokens, q.Output)
	case int(int32(q.Priority)) != q.Priority:
		return fmt.Errorf("request %d: Priority: must fit 32 bits, is %d", index, q.Priority)
	case q.PrefixBlock < 0 || q.PrefixBlock > maxTokens || q.PrefixBlock == 0 && len(q.Prefix) > 0:
		return fmt.Errorf("request %d: PrefixBlock: must be from 1 to %d, is %d", index, maxTokens, q.PrefixBlock)
	case len(q.Prefix)*21 > maxLine/2:
		return fmt.Errorf("request %d: Prefix: must have at most %d entries, has %d", index, maxLine/2/21, len(q.Prefix))
	}
	return nil
}

func write(w io.Writer, src Source, used columns) (n int, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	header := "arrival_s,input_tokens,output_tokens"
	for _, c := range [...]struct {
		used bool
		name string
	}{{used.priority, ",priority"}, {used.session, ",session"}, {used.prefix, ",prefix_hashes"}} {
		if c.used {
			header += c.name
		}
	}
	_, _ = out.WriteString(header + "\n")
	var line []byte
	last := time.Duration(0)
	for q, ok := src.Next(); ok; q, ok = src.Next() {
		if err := writable(&q, n); err != nil {
			return n, err
		}
		if q.Arrival < last {
			return n, fmt.Errorf("request %d: Arrival: must not be before the last one's %v, is %v", n, last, q.Arrival)
		}
		last = q.Arrival
		line = appendSeconds(line[:0], q.Arrival)
		line = strconv.AppendInt(append(line, ','), int64(q.Prompt), 10)
		line = strconv.AppendInt(append(line, ','), int64(q.Output), 10)
		if used.priority {
			line = strconv.AppendInt(append(line, ','), int64(q.Priority), 10)
		}
		if used.session {
			line = strconv.AppendInt(append(line, ','), q.Session, 10)
		}
		if used.prefix {
			line = appendPrefix(append(line, ','), &q)
		}
		// A bufio.Writer keeps its first error, and Flush returns it; stopping at it
		// saves reading the rest.
		if _, err := out.Write(append(line, '\n')); err != nil {
			return n, err
		}
		n++
	}
	return n, out.Flush()
}

// appendSeconds writes an instant as seconds with nine decimals, exactly.
func appendSeconds(b []byte, at time.Duration) []byte {
	b = strconv.AppendInt(b, int64(at/time.Second), 10)
	nanos := int64(at % time.Second)
	b = append(b, '.')
	for unit := int64(1e8); unit > 0; unit /= 10 {
		b = append(b, byte('0'+nanos/unit%10))
	}
	return b
}

// appendPrefix writes block ids, led by the tokens of a block unless they are the
// format's 16.
func appendPrefix(b []byte, q *Request) []byte {
	if q.PrefixBlock == 0 {
		return b
	}
	if q.PrefixBlock != 16 || len(q.Prefix) == 0 {
		b = append(strconv.AppendInt(b, int64(q.PrefixBlock), 10), ':')
	}
	for i, id := range q.Prefix {
		if i > 0 {
			b = append(b, ';')
		}
		b = strconv.AppendUint(b, id, 10)
	}
	return b
}
