package gguf

import (
	"errors"
	"fmt"
	"math"
)

// tensorSum is what all tensors of a file come to.
type tensorSum struct {
	count      int64
	parameters int64
	bytes      int64
	end        int64            // of the last one, from the start of the data
	byType     map[uint32]int64 // bytes
}

func (r *reader) tensors(n int64) (tensorSum, error) {
	sum := tensorSum{count: n, byType: map[uint32]int64{}}
	for range n {
		if err := r.tensor(&sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (r *reader) tensor(sum *tensorSum) error {
	if _, err := r.text(maxName); err != nil {
		return err
	}
	dims, err := r.u32()
	if err != nil {
		return err
	}
	if dims > maxDims {
		return fmt.Errorf("a tensor has %d dimensions", dims)
	}
	elements := uint64(1)
	for range dims {
		n, err := r.u64()
		if err != nil {
			return err
		}
		var ok bool
		if elements, ok = multiply(elements, n); !ok {
			return errors.New("a tensor is larger than any file")
		}
	}
	kind, err := r.u32()
	if err != nil {
		return err
	}
	offset, err := r.u64()
	if err != nil {
		return err
	}
	return sum.add(elements, kind, offset)
}

func (sum *tensorSum) add(elements uint64, kind uint32, offset uint64) error {
	bytes := uint64(0)
	if b, known := blocks[kind]; known { // a type newer than this table counts by its offset alone
		product, ok := multiply((elements+b.elements-1)/b.elements, b.bytes)
		if !ok {
			return errors.New("a tensor is larger than any file")
		}
		bytes = product
	}
	if offset > math.MaxInt64/2 || bytes > math.MaxInt64/2 || sum.bytes > math.MaxInt64/2 || sum.parameters > math.MaxInt64/2 || elements > math.MaxInt64/2 {
		return errors.New("its tensors are larger than any file")
	}
	sum.parameters += int64(elements)
	sum.bytes += int64(bytes)
	sum.end = max(sum.end, int64(offset+bytes))
	sum.byType[kind] += int64(bytes)
	return nil
}

// block is how many elements of a type share how many bytes.
type block struct {
	name            string
	elements, bytes uint64
}

// blocks are the tensor types of ggml (ggml.h, enum ggml_type).
var blocks = map[uint32]block{
	0: {"F32", 1, 4}, 1: {"F16", 1, 2}, 2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24},
	8: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 36}, 10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144},
	13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292}, 16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74},
	18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82},
	23: {"IQ4_XS", 256, 136}, 24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8},
	29: {"IQ1_M", 256, 56}, 30: {"BF16", 1, 2}, 34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36},
	41: {"Q1_0", 128, 18}, 42: {"Q2_0", 64, 18},
}

// fileTypes are the values of general.file_type (llama.h, enum llama_ftype).
var fileTypes = map[int64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L",
	14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
	23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M",
	32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}
