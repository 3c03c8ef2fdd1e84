package page

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Pointer finds a value in a JSON document by a JSON Pointer (RFC 6901): "" is
// the whole document, "/items/0/name" a member of the first item. Numbers keep
// every digit. The error says how far the pointer leads.
func Pointer(document []byte, pointer string) (jsontext.Value, error) {
	value := jsontext.Value(bytes.TrimSpace(document))
	if !value.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, errors.New("the document is not valid JSON")
	}
	if pointer == "" {
		return value, nil
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, errors.New("a JSON Pointer begins with /, such as /items/0/name")
	}
	walked := ""
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		next, names, err := member(value, step)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return nil, fmt.Errorf("nothing is at %s/%s; %s there", walked, step, names)
		}
		value, walked = next, walked+"/"+step
	}
	return value, nil
}

// member is a member of an object or an element of an array; nil, with a
// description of what there is, when it does not exist.
func member(value jsontext.Value, step string) (found jsontext.Value, have string, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	open, err := dec.ReadToken()
	if err != nil {
		return nil, "", errors.New("the document is not valid JSON")
	}
	var names []string
	switch open.Kind() {
	case '{':
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, "", err
			}
			key := name.String()
			v, err := dec.ReadValue()
			if err != nil {
				return nil, "", err
			}
			if key == step {
				return v.Clone(), "", nil
			}
			names = append(names, line(key))
		}
		return nil, "the names are " + strings.Join(names[:min(len(names), 20)], ", "), nil
	case '[':
		index, err := strconv.Atoi(step)
		n := 0
		for ; dec.PeekKind() != ']'; n++ {
			v, readErr := dec.ReadValue()
			if readErr != nil {
				return nil, "", readErr
			}
			if err == nil && n == index {
				return v.Clone(), "", nil
			}
		}
		return nil, fmt.Sprintf("an array of %d elements is", n), nil
	}
	return nil, "a plain value is", nil
}
