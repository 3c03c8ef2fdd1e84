package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// metadata holds the scalars and short texts of a header. Arrays are skipped,
// but for those that vary by layer, of which the sum is kept.
type metadata struct {
	texts   map[string]string
	numbers map[string]int64
	sums    map[string]int64 // sum of an integer array
}

// number is an integer of the header, 0 when it is missing or negative.
func (m metadata) number(key string) int64 { return max(m.numbers[key], 0) }

// The types of values (GGUF specification, gguf_metadata_value_type).
const (
	typeUint8 = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

func width(kind uint32) int64 {
	switch kind {
	case typeUint8, typeInt8, typeBool:
		return 1
	case typeUint16, typeInt16:
		return 2
	case typeUint32, typeInt32, typeFloat32:
		return 4
	case typeUint64, typeInt64, typeFloat64:
		return 8
	}
	return 0
}

func (r *reader) metadata(keys int64) (metadata, error) {
	m := metadata{texts: map[string]string{}, numbers: map[string]int64{}, sums: map[string]int64{}}
	for range keys {
		key, err := r.text(maxName)
		if err != nil {
			return m, err
		}
		kind, err := r.u32()
		if err != nil {
			return m, err
		}
		if err := r.value(m, key, kind); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (r *reader) value(m metadata, key string, kind uint32) error {
	switch {
	case kind == typeString:
		return r.keepText(m, key)
	case kind == typeArray:
		sum, err := r.array(0)
		m.sums[key] = sum
		return err
	case width(kind) > 0:
		n, err := r.scalar(kind)
		m.numbers[key] = n
		return err
	}
	return fmt.Errorf("a value is of the unknown type %d", kind)
}

// keepText keeps a short text, and of a long one, such as a chat template,
// only that there is one.
func (r *reader) keepText(m metadata, key string) error {
	n, err := r.count("bytes of text", 1, math.MaxInt64)
	if err != nil {
		return err
	}
	if n > maxText {
		m.texts[key] = "…"
		return r.skip(n)
	}
	b := make([]byte, n)
	for i := range b {
		if b[i], err = r.in.ReadByte(); err != nil {
			return err
		}
	}
	r.read += n
	m.texts[key] = string(b)
	return nil
}

// scalar reads a number; one that is no integer is rounded.
func (r *reader) scalar(kind uint32) (int64, error) {
	b, err := r.bytes(int(width(kind)))
	if err != nil {
		return 0, err
	}
	switch kind {
	case typeUint8, typeBool:
		return int64(b[0]), nil
	case typeInt8:
		return int64(int8(b[0])), nil
	case typeUint16:
		return int64(binary.LittleEndian.Uint16(b)), nil
	case typeInt16:
		return int64(int16(binary.LittleEndian.Uint16(b))), nil
	case typeUint32:
		return int64(binary.LittleEndian.Uint32(b)), nil
	case typeInt32:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	case typeUint64:
		return int64(min(binary.LittleEndian.Uint64(b), math.MaxInt64)), nil
	case typeInt64:
		return int64(binary.LittleEndian.Uint64(b)), nil
	}
	return 0, nil // no float is of interest
}

// array skips an array and gives the sum of its integers.
func (r *reader) array(depth int) (int64, error) {
	if depth == maxDepth {
		return 0, errors.New("its arrays are nested too deep")
	}
	kind, err := r.u32()
	if err != nil {
		return 0, err
	}
	least := width(kind)
	switch kind {
	case typeString:
		least = 8
	case typeArray:
		least = 12
	}
	if least == 0 {
		return 0, fmt.Errorf("an array is of the unknown type %d", kind)
	}
	n, err := r.count("array elements", least, math.MaxInt64)
	if err != nil {
		return 0, err
	}
	switch kind {
	case typeString:
		return 0, r.skipTexts(n)
	case typeArray:
		for range n {
			if _, err := r.array(depth + 1); err != nil {
				return 0, err
			}
		}
		return 0, nil
	case typeFloat32, typeFloat64:
		return 0, r.skip(n * least)
	}
	return r.sum(kind, n)
}

func (r *reader) skipTexts(n int64) error {
	for range n {
		length, err := r.count("bytes of text", 1, math.MaxInt64)
		if err != nil {
			return err
		}
		if err := r.skip(length); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) sum(kind uint32, n int64) (int64, error) {
	var sum int64
	for range n {
		v, err := r.scalar(kind)
		if err != nil {
			return 0, err
		}
		if v > 0 && sum < math.MaxInt64-v {
			sum += v
		}
	}
	return sum, nil
}
