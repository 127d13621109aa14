package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A cursor walks once through a line of JSON that is known to be well-formed, and knows the way
// to where it is. What it meets must be what is asked for; the first that is not ends the walk.
type cursor struct {
	text []byte
	at   int
	way  []string
	err  *Fault
}

func (c *cursor) fail(format string, args ...any) {
	if c.err != nil {
		return
	}
	var field strings.Builder
	for i, w := range c.way {
		if i > 0 && w[0] != '[' {
			field.WriteByte('.')
		}
		field.WriteString(w)
	}
	c.err = &Fault{Field: clip(field.String()), Text: fmt.Sprintf(format, args...)}
}

// peek is the first byte of the next value, or what closes the list or object.
func (c *cursor) peek() byte {
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			c.at++
		default:
			return c.text[c.at]
		}
	}
	return 0
}

// want reports whether the next value starts as expected.
func (c *cursor) want(start byte, what string) bool {
	if c.err == nil && c.peek() != start {
		c.fail("must be %s, is %s", what, c.shown())
	}
	return c.err == nil
}

// shown is the next value as it is written, shortened.
func (c *cursor) shown() string {
	from := c.at
	switch c.peek() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		text := clip(string(c.quoted()))
		c.at = from
		return text
	}
	text := string(c.plain())
	c.at = from
	return clip(text)
}

// quoted passes a string and returns it with its quotes.
func (c *cursor) quoted() []byte {
	from := c.at
	for c.at++; c.text[c.at] != '"'; c.at++ {
		if c.text[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
	return c.text[from:c.at]
}

// plain passes a number or a word.
func (c *cursor) plain() []byte {
	from := c.at
	for c.at < len(c.text) && !bytes.ContainsRune([]byte(" \t\r\n,:]}"), rune(c.text[c.at])) {
		c.at++
	}
	return c.text[from:c.at]
}

// object hands over its keys; read must read the value, of one of the given keys. Keys are not
// repeated, and those not optional are there.
func (c *cursor) object(keys []string, optional map[string]bool, read func(key string)) {
	if !c.want('{', "an object") {
		return
	}
	c.at++
	seen := make(map[string]bool, len(keys))
	c.members(func(key string) {
		switch {
		case seen[key]:
			c.fail("is given twice")
		case !contains(keys, key):
			c.fail("is not a field here; these are: %s", strings.Join(keys, ", "))
		default:
			seen[key] = true
			read(key)
		}
	})
	for _, key := range keys {
		if c.err == nil && !seen[key] && !optional[key] {
			c.way = append(c.way, key)
			c.fail("is missing")
		}
	}
}

// table is an object with any keys, none repeated.
func (c *cursor) table(read func(key string)) {
	if !c.want('{', "an object") {
		return
	}
	c.at++
	c.members(read)
}

func (c *cursor) members(read func(key string)) {
	for c.err == nil && c.peek() != '}' {
		key, err := unquote(c.quoted())
		if err != nil {
			c.fail("%v", err)
			return
		}
		c.way = append(c.way, name(key))
		read(key)
		if c.err == nil {
			c.way = c.way[:len(c.way)-1]
		}
	}
	c.at++
}

// name is a key as a place in a way; a way's steps are not empty.
func name(key string) string {
	if key == "" || key[0] == '[' || strings.ContainsAny(key, ". \n\t") {
		return strconv.Quote(key)
	}
	return key
}

// list hands over the index of each element; read must read it.
func (c *cursor) list(read func(i int)) {
	if !c.want('[', "a list") {
		return
	}
	c.at++
	for i := 0; c.err == nil && c.peek() != ']'; i++ {
		c.way = append(c.way, index(i))
		read(i)
		if c.err == nil {
			c.way = c.way[:len(c.way)-1]
		}
	}
	c.at++
}

var indices = func() (text [256]string) {
	for i := range text {
		text[i] = "[" + strconv.Itoa(i) + "]"
	}
	return text
}()

func index(i int) string {
	if i < len(indices) {
		return indices[i]
	}
	return "[" + strconv.Itoa(i) + "]"
}

// tuple is a list of one element per read.
func (c *cursor) tuple(read ...func()) {
	n := 0
	c.list(func(i int) {
		if i >= len(read) {
			c.way = c.way[:len(c.way)-1]
			c.fail("must have %d elements, has more", len(read))
			return
		}
		n++
		read[i]()
	})
	if c.err == nil && n < len(read) {
		c.fail("must have %d elements, has %d", len(read), n)
	}
}

func (c *cursor) integer(least, most int) int {
	if c.err != nil {
		return 0
	}
	switch first := c.peek(); {
	case first == '-', '0' <= first && first <= '9':
	default:
		c.fail("must be an integer, is %s", c.shown())
		return 0
	}
	text := c.plain()
	n, err := strconv.Atoi(string(text))
	if err != nil || n < least || n > most {
		c.fail("must be an integer from %d to %d, is %s", least, most, clip(string(text)))
	}
	return n
}

func (c *cursor) number() float64 {
	if c.err != nil {
		return 0
	}
	switch first := c.peek(); {
	case first == '-', '0' <= first && first <= '9':
	default:
		c.fail("must be a number, is %s", c.shown())
		return 0
	}
	text := c.plain()
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		c.fail("must be a number, is %s", clip(string(text)))
	}
	return x
}

func (c *cursor) boolean() bool {
	if c.err != nil {
		return false
	}
	first := c.peek()
	if first != 't' && first != 'f' {
		c.fail("must be true or false, is %s", c.shown())
		return false
	}
	c.plain()
	return first == 't'
}

func (c *cursor) word() string {
	if !c.want('"', "a string") {
		return ""
	}
	text, err := unquote(c.quoted())
	if err != nil {
		c.fail("%v", err)
	}
	return text
}

// one is a string out of few.
func (c *cursor) one(of ...string) string {
	text := c.word()
	if c.err == nil && !contains(of, text) {
		c.fail("must be one of %s, is %s", strings.Join(of, ", "), clip(strconv.Quote(text)))
	}
	return text
}

func unquote(text []byte) (string, error) {
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return strings.ToValidUTF8(string(inner), "\uFFFD"), nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// clip shortens what a message quotes from a file.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
