package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

var errLineTooLong = errors.New("line too long")

// lineReader splits a stream into lines and holds at most max bytes of one.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, buffer, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, buffer), max: limit}
}

// next is the next line without its ending; the caller owns it. The last line
// needs no ending. With errLineTooLong it returns the part read so far, and the
// rest of that line is still to come.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, bytes.TrimSuffix(part, []byte{'\n'})...)
		whole := bytes.TrimSuffix(line, []byte{'\r'})
		if len(whole) > l.max {
			if err == nil {
				// The whole line was read: give its end back as an empty rest.
				if err := l.r.UnreadByte(); err != nil {
					return nil, err
				}
			}
			return line, errLineTooLong
		}
		switch {
		case err == nil:
			return whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return whole, nil
		default:
			return nil, err
		}
	}
}

// skip reads on to the end of a line that was too long, keeping nothing of it
// but its id.
func (l *lineReader) skip(start []byte) (json.RawMessage, error) {
	var s idScanner
	s.feed(start)
	for {
		part, err := l.r.ReadSlice('\n')
		s.feed(part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF):
			return s.id(), nil
		default:
			return nil, err
		}
	}
}

// maxID is the longest id, in bytes as written, that the pump puts into an
// answer of its own; the router takes no longer ones either.
const maxID = 256

// idScanner finds the member "id" of one JSON object of any size in constant
// memory: a client whose message was refused for its length would otherwise
// wait for ever, because many write the id last.
type idScanner struct {
	depth    int
	inString bool
	escaped  bool
	inValue  bool // after the colon of a member of the outermost object
	isID     bool // that member is "id"
	key      []byte
	value    []byte
	found    int
}

// maxDepth is where encoding/json stops: a text nested deeper is no message,
// and its id is not looked for.
const maxDepth = 10_000

func (s *idScanner) feed(part []byte) {
	for len(part) > 0 && s.depth <= maxDepth {
		if s.inString && !s.escaped && !s.keeps() {
			// Most of a long message is long strings.
			part = part[plainRun(part):]
		}
		if len(part) > 0 {
			s.step(part[0])
			part = part[1:]
		}
	}
}

// plainRun is how far a string goes on without an end or an escape.
func plainRun(part []byte) int {
	for i, b := range part {
		if b == '"' || b == '\\' {
			return i
		}
	}
	return len(part)
}

// keeps reports whether what comes is part of an outermost key or of the id.
func (s *idScanner) keeps() bool {
	if s.inValue {
		return s.isID
	}
	return s.depth == 1
}

func (s *idScanner) step(b byte) {
	if s.inString {
		s.keep(b)
		switch {
		case s.escaped:
			s.escaped = false
		case b == '\\':
			s.escaped = true
		case b == '"':
			s.inString = false
		}
		return
	}
	switch b {
	case '"':
		s.inString = true
		if !s.inValue {
			s.key = s.key[:0]
		}
		s.keep(b)
		return
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	case ':':
		if s.depth == 1 && !s.inValue {
			s.begin()
			return
		}
	case ',':
		if s.depth == 1 {
			s.inValue, s.isID = false, false
		}
	}
	if s.inValue {
		s.keep(b)
	}
}

// begin starts the value of an outermost member.
func (s *idScanner) begin() {
	s.inValue, s.isID = true, string(s.key) == `"id"`
	if s.isID {
		s.found++
		s.value = s.value[:0]
	}
}

// keep remembers a byte of an outermost key or of the id's value, up to one
// byte past the limit so that an over-long one is recognised.
func (s *idScanner) keep(b byte) {
	switch {
	case !s.keeps():
	case s.inValue && s.depth > 0 && len(s.value) <= maxID:
		s.value = append(s.value, b)
	case !s.inValue && len(s.key) <= len(`"id"`):
		s.key = append(s.key, b)
	}
}

// id is the value found, or nil: none, two, or one that is no usable id.
func (s *idScanner) id() json.RawMessage {
	id := json.RawMessage(bytes.TrimSpace(s.value))
	if s.found != 1 || s.depth > maxDepth || !usableID(id) {
		return nil
	}
	return id
}

// usableID reports whether an id may stand in an answer that the pump words
// itself: a string of moderate length or an integer, as the schema of MCP has
// it. A huge or structured one is answered with id null and not repeated.
func usableID(id json.RawMessage) bool {
	switch {
	case len(id) == 0 || len(id) > maxID:
		return false
	case id[0] == '"':
		return utf8.Valid(id) && json.Valid(id)
	}
	return json.Valid(id) && len(bytes.Trim(id, "-0123456789")) == 0
}
