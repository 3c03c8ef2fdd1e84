// Package gguftest makes small GGUF files for tests: whole ones, and broken
// ones by cutting or changing what it made.
package gguftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Tensor is one tensor; its data is zeros.
type Tensor struct {
	Name string
	Type uint32
	Dims []uint64
	Size int // bytes of data
}

// Key is one entry of the metadata: a string, uint32, uint64, float32, bool,
// []string or []uint32.
type Key struct {
	Name  string
	Value any
}

// Keys are names and values in turn.
func Keys(namesAndValues ...any) []Key {
	var keys []Key
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		keys = append(keys, Key{namesAndValues[i].(string), namesAndValues[i+1]})
	}
	return keys
}

// T is a tensor with size bytes of data.
func T(name string, kind uint32, dims []uint64, size int) Tensor {
	return Tensor{name, kind, dims, size}
}

// Tiny is a small model of the llama architecture, some kilobytes long.
func Tiny() []byte {
	return File([]Key{
		{"general.architecture", "llama"}, {"general.name", "Tiny"}, {"general.file_type", uint32(7)},
		{"llama.context_length", uint32(2048)}, {"llama.block_count", uint32(4)}, {"llama.embedding_length", uint32(64)},
		{"llama.attention.head_count", uint32(4)}, {"llama.attention.head_count_kv", uint32(2)},
		{"tokenizer.chat_template", "{{ messages }}"}, {"tokenizer.ggml.tokens", []string{"a", "b", "c"}},
	}, []Tensor{{"token_embd.weight", 8, []uint64{64, 32}, 2176}, {"output_norm.weight", 0, []uint64{64}, 256}})
}

// File encodes a file of version 3.
func File(keys []Key, tensors []Tensor) []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(3), uint64(len(tensors)), uint64(len(keys)))
	for _, k := range keys {
		text(&b, k.Name)
		value(&b, k.Value)
	}
	offset := uint64(0)
	for _, t := range tensors {
		text(&b, t.Name)
		put(&b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			put(&b, d)
		}
		put(&b, t.Type, offset)
		offset += uint64(pad(t.Size))
	}
	b.Write(make([]byte, pad(b.Len())-b.Len()))
	for _, t := range tensors {
		b.Write(make([]byte, pad(t.Size)))
	}
	return b.Bytes()
}

func pad(n int) int { return (n + 31) / 32 * 32 }

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(fmt.Sprintf("gguftest: %v", err))
		}
	}
}

func text(b *bytes.Buffer, s string) {
	put(b, uint64(len(s)))
	b.WriteString(s)
}

func value(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case string:
		put(b, uint32(8))
		text(b, v)
	case uint32:
		put(b, uint32(4), v)
	case uint64:
		put(b, uint32(10), v)
	case float32:
		put(b, uint32(6), v)
	case bool:
		put(b, uint32(7), v)
	case []string:
		put(b, uint32(9), uint32(8), uint64(len(v)))
		for _, s := range v {
			text(b, s)
		}
	case []uint32:
		put(b, uint32(9), uint32(4), uint64(len(v)), v)
	default:
		panic(fmt.Sprintf("gguftest: a key cannot be a %T", v))
	}
}
