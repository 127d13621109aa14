package workload

import (
	"bytes"
	"errors"
	"fmt"
)

// spellOut reads the row's block ids, which a run of vLLM numbers in the order in which it first
// sees them, so that most prompts are one range: 7-9 12 stands for 7, 8, 9 and 12. A few bytes
// can ask for any number of ids, and get no more than the prompt has blocks.
func (d *csvDecoder) spellOut(r *row) error {
	block := d.format.block
	most := uint64((int64(r.prompt) + int64(block) - 1) / int64(block))
	fault := func(format string, args ...any) error {
		return fmt.Errorf("block_hash_ranges: %w, is %s", fmt.Errorf(format, args...), quote(d.ranges))
	}
	d.ids = d.ids[:0]
	for i, part := range bytes.Fields(d.ranges) {
		lo, hi, err := parseRange(part)
		if err != nil {
			return fault("range %d %w", i+1, err)
		}
		if hi-lo >= most-uint64(len(d.ids)) {
			return fault("must name at most the %d blocks of %d input tokens", most, r.prompt)
		}
		for id := lo; ; id++ {
			d.ids = append(d.ids, id)
			if id == hi {
				break
			}
		}
	}
	if len(d.ids) > 0 {
		r.prefix, r.block = d.ids, block
	}
	return nil
}

var errRange = errors.New("must be a whole number or two, LO-HI, with LO <= HI")

// parseRange reads a single number, or two of which the second is not less.
func parseRange(b []byte) (lo, hi uint64, err error) {
	first, second, two := bytes.Cut(b, []byte{'-'})
	if lo, err = parseUint(first); err != nil {
		return 0, 0, errRange
	}
	if hi = lo; two {
		if hi, err = parseUint(second); err != nil || hi < lo {
			return 0, 0, errRange
		}
	}
	return lo, hi, nil
}
