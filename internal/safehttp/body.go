package safehttp

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"
)

// A body that inflates more than maxRatio times, and past ratioFloor bytes or
// the cap, is a bomb: text rarely passes 20, gzip's own limit is about 1 030.
const (
	maxRatio   = 100
	ratioFloor = 1 << 20
)

var errBomb = errors.New("body inflates beyond reason")

// readBody reads at most limit decompressed bytes and tells whether there were
// more. With whole, more is an error.
func readBody(r *http.Response, limit int64, whole bool) ([]byte, bool, error) {
	host := r.Request.URL.Host
	if whole && r.ContentLength > limit {
		return nil, false, tooLarge(host, limit)
	}
	wire := &counter{r: bufio.NewReader(r.Body)}
	plain, err := decode(r, wire)
	if err != nil {
		return nil, false, err
	}
	out := &inflated{r: plain, wire: wire}
	body, err := io.ReadAll(io.LimitReader(out, limit+1))
	over := int64(len(body)) > limit
	switch {
	case errors.Is(err, errBomb), over && out.bomb():
		return nil, false, refuse(TooLarge, host, "%s sent a body that decompresses to more than %d times its size", host, maxRatio).because(err)
	case err != nil:
		return nil, false, err
	case over && whole:
		return nil, false, tooLarge(host, limit)
	case over:
		return body[:limit], true, nil
	}
	return body, false, nil
}

func tooLarge(host string, limit int64) *Error {
	return refuse(TooLarge, host, "%s sent more than %d bytes, the most that is taken", host, limit)
}

// decode undoes the Content-Encoding and removes it from the header, with the
// length that belonged to it.
func decode(r *http.Response, wire *counter) (io.Reader, error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")))
	if encoding == "" || encoding == "identity" {
		return wire, nil
	}
	start, err := wire.r.Peek(2)
	if len(start) == 0 && err == io.EOF {
		return wire, nil // an answer to HEAD, a 204 or 304: nothing to decode
	}
	r.Header.Del("Content-Encoding")
	r.Header.Del("Content-Length")
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(wire)
	case "deflate":
		// The standard means zlib (RFC 9110 §8.4.1.2); some servers send the bare stream.
		if len(start) == 2 && start[0]&0x0f == 8 && (int(start[0])<<8|int(start[1]))%31 == 0 {
			return zlib.NewReader(wire)
		}
		return flate.NewReader(wire), nil
	}
	host := r.Request.URL.Host
	return nil, refuse(BadResponse, host, "%s encoded its answer in a way that was not asked for", host)
}

// counter counts the bytes that were taken from the wire. It is an
// io.ByteReader so that decompressors do not read ahead of what they use.
type counter struct {
	r *bufio.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// inflated watches the ratio of what comes out to what came in.
type inflated struct {
	r    io.Reader
	wire *counter
	n    int64
}

func (i *inflated) bomb() bool { return i.n > i.wire.n*maxRatio }

func (i *inflated) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	i.n += int64(n)
	if i.n > ratioFloor && i.bomb() {
		return n, errBomb
	}
	return n, err
}
