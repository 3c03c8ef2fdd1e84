package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/llama/gguf"
	"pawgate/internal/client/llama/gguf/gguftest"
)

func read(file []byte) (gguf.Header, error) {
	return gguf.Read(bytes.NewReader(file), int64(len(file)))
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		file []byte
		want gguf.Header
	}{
		{"tiny", gguftest.Tiny(), gguf.Header{Architecture: "llama", Name: "Tiny", Quantisation: "Q8_0", Parameters: 64*32 + 64,
			ContextLength: 2048, Layers: 4, CacheBytesPerToken: 4 * 2 * (16 + 16) * 2, WeightBytes: 2176 + 256, ChatTemplate: true}},
		{"heads_by_layer_and_their_width", gguftest.File(gguftest.Keys("general.architecture", "gemma3", "gemma3.block_count", uint32(3), "gemma3.attention.head_count_kv", []uint32{1, 2, 1}, "gemma3.attention.key_length", uint32(256), "gemma3.attention.value_length", uint32(128), "gemma3.context_length", uint64(32768)), []gguftest.Tensor{gguftest.T("a", 12, []uint64{256, 2}, 288)}), gguf.Header{Architecture: "gemma3", Quantisation: "Q4_K", Parameters: 512,
			ContextLength: 32768, Layers: 3, CacheBytesPerToken: 4 * (256 + 128) * 2, WeightBytes: 288}},
		{"embedding_model", gguftest.File(gguftest.Keys("general.architecture", "bert", "bert.pooling_type", uint32(2)), nil),
			gguf.Header{Architecture: "bert", Embedding: true}},
		{"long_template_is_only_noted", gguftest.File(gguftest.Keys("tokenizer.chat_template", strings.Repeat("x", 1<<17), "split.count", uint32(3)), nil),
			gguf.Header{ChatTemplate: true, Parts: 3}},
		{"type_of_the_future", gguftest.File(nil, []gguftest.Tensor{gguftest.T("a", 99, []uint64{8}, 32)}), gguf.Header{Parameters: 8}},
		{"nonsense_numbers", gguftest.File(gguftest.Keys("general.architecture", "x", "x.block_count", uint32(math.MaxUint32), "x.attention.head_count", uint32(math.MaxUint32), "x.embedding_length", uint64(math.MaxUint64)), nil),
			gguf.Header{Architecture: "x", Layers: math.MaxUint32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := read(c.file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
		})
	}
}

// patch changes a number at an offset: 8 is the count of tensors, 16 of keys.
func patch(offset int, n uint64) []byte {
	f := gguftest.Tiny()
	binary.LittleEndian.PutUint64(f[offset:], n)
	return f
}

func TestRead_refuses(t *testing.T) {
	t.Parallel()
	tiny := gguftest.Tiny()
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "does not begin"},
		{"something_else", []byte("\x7fELF, a program and no model at all"), "does not begin"},
		{"version_1", append([]byte("GGUF\x01\x00\x00\x00"), tiny[8:]...), "version 1"},
		{"other_byte_order", append([]byte("GGUF\x00\x00\x00\x03"), tiny[8:]...), "byte order"},
		{"cut_in_the_header", tiny[:100], ""},
		{"cut_in_the_weights", tiny[:len(tiny)-512], "cut off"},
		{"INF-10_tensors", patch(8, math.MaxUint64), "tensors, more than it can hold"},
		{"INF-10_tensors_signed", patch(8, math.MaxInt64), "tensors, more than it can hold"},
		{"INF-10_keys", patch(16, 1<<40), "keys, more than it can hold"},
		{"INF-10_key_length", patch(24, 1<<62), "more than it can hold"},
		{"INF-10_tensor_size", gguftest.File(nil, []gguftest.Tensor{gguftest.T("a", 0, []uint64{1 << 40, 1 << 40}, 32)}), "larger than any file"},
		{"INF-10_dimensions", gguftest.File(nil, []gguftest.Tensor{gguftest.T("a", 0, make([]uint64, 5), 32)}), "5 dimensions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := read(c.file)
			if !errors.Is(err, gguf.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// An array that claims more elements than memory, in a file of a few bytes.
func TestRead_INF_10_bounded_memory(t *testing.T) {
	file := gguftest.File(gguftest.Keys("tokens", []string{}), nil)
	at := bytes.Index(file, []byte("tokens")) + len("tokens") + 8 // after the types
	for _, n := range []uint64{1 << 31, 1 << 62, math.MaxUint64} {
		binary.LittleEndian.PutUint64(file[at:], n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(file)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, gguf.ErrCorrupt) {
			t.Errorf("%d elements: got %v", n, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%d elements: %d bytes allocated", n, grown)
		}
	}
}

// A real model, which "make real" names in PAWGATE_TEST_MODEL.
func TestReal_model(t *testing.T) {
	t.Parallel()
	path := os.Getenv("PAWGATE_TEST_MODEL")
	if path == "" {
		missing := t.Skip
		if os.Getenv("CI") == "true" {
			missing = t.Fatal
		}
		missing("PAWGATE_TEST_MODEL does not name a GGUF file; make real prepares one")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	h, err := gguf.Read(f, info.Size())
	if err != nil || h.Architecture == "" || h.Parameters < 1e8 || h.Quantisation == "" || h.CacheBytesPerToken == 0 || !h.ChatTemplate {
		t.Errorf("got %+v, %v", h, err)
	}
	if over := info.Size() - h.WeightBytes; over < 0 || over > 32<<20 {
		t.Errorf("%d bytes of weights in a file of %d", h.WeightBytes, info.Size())
	}
}

func FuzzRead(f *testing.F) {
	f.Add(gguftest.Tiny())
	f.Add(patch(8, 1<<33))
	f.Add(gguftest.File(gguftest.Keys("a", []string{"b"}, "c", true, "d", float32(1)), nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		if h, err := read(file); err == nil && (h.Parameters < 0 || h.WeightBytes < 0 || h.CacheBytesPerToken < 0) {
			t.Errorf("negative: %+v", h)
		}
	})
}
