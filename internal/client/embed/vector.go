package embed

import "math"

// normalize makes a vector's length 1, so that a product of two is their
// cosine. A vector of zeros stays one.
func normalize(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		clear(v)
		return
	}
	length := float32(math.Sqrt(sum))
	for i := range v {
		v[i] /= length
	}
}

// Cosine is how alike two vectors of length 1 are, between -1 and 1; 0 for
// vectors that cannot be compared.
func Cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	sum := float32(0)
	for i := range a {
		sum += a[i] * b[i]
	}
	return float64(sum)
}

// Code is the sign of each dimension, as PostgreSQL writes a bit string.
// Vectors that mean much the same differ in few signs.
func Code(v []float32) string {
	code := make([]byte, len(v))
	for i, x := range v {
		code[i] = '0'
		if x > 0 {
			code[i] = '1'
		}
	}
	return string(code)
}
