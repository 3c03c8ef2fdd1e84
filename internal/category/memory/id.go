package memory

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"time"

	"pawgate/internal/terms"
)

// crockford sorts as the bytes do and has no letters that look alike.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID is a new memory's name: "m_" and the base32 of 48 bits of time, in
// milliseconds, and 32 bits of chance. Names sort by age.
func newID(now time.Time) string {
	var b [10]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails, see crypto/rand
	return "m_" + crockford.EncodeToString(b[:])
}

// digest is equal for contents that say the same in the same words: case,
// width, accents, composition and blanks make no difference, punctuation does.
// A fact has a digest of its own, because its content may hold more than once.
func (d draft) digest() []byte {
	text := terms.Fold(d.content)
	if d.fact != nil {
		text = d.id
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
