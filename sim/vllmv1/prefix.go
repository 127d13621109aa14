package vllmv1

import "encoding/binary"

// A key stands for the tokens of a block and of all blocks before it; 0 stands for no block.
type key int

// keys gives equal prefixes equal keys, and no others: it numbers them instead of hashing them.
type keys struct {
	blockSize int
	known     map[link]key
	text      []byte // spare
}

type link struct {
	parent key
	tokens string // 8 bytes each
}

func newKeys(blockSize int) *keys { return &keys{blockSize: blockSize, known: map[link]key{}} }

// extend appends the keys of the full blocks that a request's tokens have gained.
func (k *keys) extend(r *request) {
	for (len(r.keys)+1)*k.blockSize <= len(r.tokens) {
		var parent key
		if n := len(r.keys); n > 0 {
			parent = r.keys[n-1]
		}
		k.text = k.text[:0]
		for _, t := range r.tokens[len(r.keys)*k.blockSize:][:k.blockSize] {
			k.text = binary.LittleEndian.AppendUint64(k.text, uint64(t))
		}
		l := link{parent, string(k.text)}
		id, ok := k.known[l]
		if !ok {
			id = key(len(k.known) + 1)
			k.known[l] = id
		}
		r.keys = append(r.keys, id)
	}
}
