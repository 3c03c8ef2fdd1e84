package stdio

import (
	"bytes"
	"errors"
	"io"
)

// eventReader reads the data of server-sent events (WHATWG HTML, section
// 9.2.6). Event types, ids and retry times are not looked at: MCP gives every
// event one meaning, and the pump never reconnects.
type eventReader struct {
	lines *lineReader
	max   int
	queue [][]byte // lines split at a lone carriage return
	data  []byte
	some  bool
}

func newEventReader(r io.Reader, limit int) *eventReader {
	return &eventReader{lines: newLineReader(r, 4<<10, limit+len("data: ")), max: limit}
}

// next is the data of the next event that has any. An event cut off by the end
// of the stream is still given out: the reader of a message sees for itself
// whether it is whole. After errLineTooLong the stream is of no more use.
func (e *eventReader) next() ([]byte, error) {
	for {
		line, err := e.line()
		if errors.Is(err, io.EOF) && len(e.data) > 0 {
			return e.take(), nil
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if data := e.take(); len(data) > 0 {
				return data, nil
			}
			continue
		}
		if e.add(line); len(e.data) > e.max {
			return nil, errLineTooLong
		}
	}
}

// add takes one line of an event.
func (e *eventReader) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	if string(bytes.TrimPrefix(field, []byte("\xef\xbb\xbf"))) != "data" {
		return
	}
	if e.some {
		e.data = append(e.data, '\n')
	}
	e.some = true
	e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
}

func (e *eventReader) take() []byte {
	data := e.data
	e.data, e.some = nil, false
	return data
}

// line is the next line, where \n, \r\n and \r end one.
func (e *eventReader) line() ([]byte, error) {
	if len(e.queue) == 0 {
		line, err := e.lines.next()
		if err != nil {
			return nil, err
		}
		e.queue = bytes.Split(line, []byte("\r"))
	}
	line := e.queue[0]
	e.queue = e.queue[1:]
	return line, nil
}
