package gguf

import "strings"

// describe turns what was read into what is shown.
func describe(m metadata, t tensorSum) Header {
	arch := m.texts["general.architecture"]
	key := func(name string) string { return arch + "." + name }
	h := Header{
		Architecture: arch, Name: m.texts["general.name"], Parameters: t.parameters, WeightBytes: t.bytes,
		ContextLength: m.number(key("context_length")), Layers: m.number(key("block_count")),
		Parts:        m.number("split.count"),
		ChatTemplate: m.texts["tokenizer.chat_template"] != "",
	}
	h.Quantisation = quantisation(m, t)
	h.CacheBytesPerToken = cachePerToken(m, key)
	_, pools := m.numbers[key("pooling_type")]
	h.Embedding = pools || strings.Contains(arch, "bert")
	return h
}

// quantisation is what the file calls itself, or the type that most of its
// bytes have.
func quantisation(m metadata, t tensorSum) string {
	if kind, said := m.numbers["general.file_type"]; said && fileTypes[kind] != "" {
		return fileTypes[kind]
	}
	var most int64
	name := ""
	for kind, bytes := range t.byType {
		if bytes > most {
			most, name = bytes, blocks[kind].name
		}
	}
	return name
}

// bytesPerValue is a value of the key-value cache at its default, f16.
const bytesPerValue = 2

// cachePerToken works out what one token of context takes: a key and a value
// for every layer and key-value head. Layers without attention make it less,
// never more.
func cachePerToken(m metadata, key func(string) string) int64 {
	layers, heads, width := m.number(key("block_count")), m.number(key("attention.head_count")), m.number(key("embedding_length"))
	all := m.sums[key("attention.head_count_kv")] // given by layer
	if all == 0 {
		kv := m.number(key("attention.head_count_kv"))
		if kv == 0 {
			kv = heads
		}
		if kv > 1<<16 || layers > 1<<16 {
			return 0
		}
		all = kv * layers
	}
	k, v := m.number(key("attention.key_length")), m.number(key("attention.value_length"))
	if heads > 0 {
		if k == 0 {
			k = width / heads
		}
		if v == 0 {
			v = width / heads
		}
	}
	if k > 1<<20 || v > 1<<20 || all > 1<<32 || all < 0 {
		return 0 // nonsense in the header
	}
	return all * (k + v) * bytesPerValue
}
