// Package library is a folder of model files: what is in it, and which file a
// name means.
//
// A name is a file's name and never a path: no separators, no "..", nothing
// absolute. Files are reached through an os.Root and must be regular files,
// so neither a name nor a symbolic link leads out of the folder. Sub-folders
// are not looked into.
package library

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/fault"
)

// Library is one folder and the ending of the files in it that count.
type Library struct {
	root    *os.Root
	endings []string
	noun    string // how faults call an entry
}

// The endings of model files and of llamafiles. A GGUF may be in parts.
var (
	ggufEndings      = []string{".gguf"}
	llamafileEndings = []string{".llamafile", ".llamafile.exe"}
)

// OpenModels opens a folder of GGUF files and makes it when it is missing.
func OpenModels(dir string) (*Library, error) { return open(dir, ggufEndings, "model") }

// OpenLlamafiles opens a folder of llamafiles and makes it when it is missing.
func OpenLlamafiles(dir string) (*Library, error) { return open(dir, llamafileEndings, "llamafile") }

func open(dir string, endings []string, noun string) (*Library, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find %s folder: %w", noun, err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, fmt.Errorf("make %s folder: %w", noun, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open %s folder: %w", noun, err)
	}
	return &Library{root: root, endings: endings, noun: noun}, nil
}

// Close lets go of the folder.
func (l *Library) Close() error { return l.root.Close() }

// Dir is the folder's path. It is for messages to the operator and never for
// a tool's answer.
func (l *Library) Dir() string { return l.root.Name() }

// Root reaches the folder's files and nothing else.
func (l *Library) Root() *os.Root { return l.root }

// Entry is one model: one file, or the parts that make one up.
type Entry struct {
	ID       string // the file's name without its ending and part number
	Files    []string
	Size     int64 // in bytes, of all parts
	Modified time.Time
	// Parts is how many there should be: 1 for a file that is whole.
	Parts int
}

// Complete reports whether every part is there.
func (e Entry) Complete() bool { return len(e.Files) == e.Parts }

// Main is the file to give to a server: the whole model or its first part.
func (e Entry) Main() string { return e.Files[0] }

// part matches llama.cpp's names for the parts of a model.
var part = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})$`)

// List is what the folder holds, by id. Files that are no regular files, such
// as links, are left out.
func (l *Library) List() ([]Entry, error) {
	files, err := fs.ReadDir(l.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list %s folder: %w", l.noun, err)
	}
	byID := map[string]*Entry{}
	for _, f := range files { // sorted, so parts come in order
		stem, ok := l.stem(f.Name())
		if !ok || !f.Type().IsRegular() {
			continue
		}
		info, err := f.Info()
		if err != nil {
			continue // removed in the meantime
		}
		id, parts := stem, 1
		if m := part.FindStringSubmatch(stem); m != nil {
			n, _ := strconv.Atoi(m[3])
			id, parts = m[1], max(n, 1)
		}
		e := byID[id]
		if e == nil || e.Parts != parts { // a whole file and parts of the same name: the one seen last
			e = &Entry{ID: id, Parts: parts}
			byID[id] = e
		}
		e.Files = append(e.Files, f.Name())
		e.Size += info.Size()
		if info.ModTime().After(e.Modified) {
			e.Modified = info.ModTime()
		}
	}
	entries := make([]Entry, 0, len(byID))
	for _, e := range byID {
		entries = append(entries, *e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return entries, nil
}

func (l *Library) stem(name string) (string, bool) {
	for _, ending := range l.endings {
		if stem, ok := strings.CutSuffix(name, ending); ok && stem != "" && !strings.HasPrefix(name, ".") {
			return stem, true
		}
	}
	return "", false
}

// safe are the names that may be looked up or written: what model publishers
// use, and nothing that a file system or a command line reads specially.
var safe = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+@=-]{0,199}$`)

// CheckName refuses what is not a plain file name.
func CheckName(parameter, name string) error {
	switch {
	case name == "":
		return fault.Invalid(parameter, "%s must not be empty", parameter)
	case strings.ContainsAny(name, `/\:`) || strings.Contains(name, ".."):
		return fault.Invalid(parameter, "%s must be a plain name as the list shows it, not a path", parameter)
	case !safe.MatchString(name):
		return fault.Invalid(parameter, "%s may hold letters, digits and . _ + @ = - only, at most 200 of them, and begins with a letter or digit", parameter)
	}
	return nil
}

// Find is the entry of an id or of one of its files. parameter is the tool's
// argument, for the error: fault.Invalid for a bad name, fault.NotFound when
// there is none, fault.Conflict when parts are missing.
func (l *Library) Find(parameter, name string) (Entry, error) {
	if err := CheckName(parameter, name); err != nil {
		return Entry{}, err
	}
	entries, err := l.List()
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.ID != name && !slices.Contains(e.Files, name) {
			continue
		}
		if !e.Complete() {
			return Entry{}, fault.New(fault.Conflict, "%s %s is incomplete: %d of %d parts are here; download the rest", l.noun, e.ID, len(e.Files), e.Parts)
		}
		return e, nil
	}
	return Entry{}, fault.New(fault.NotFound, "no %s %s on this host; %s_list shows those there are", l.noun, name, l.noun)
}

// Path is where a file of an entry lies, for the server that reads it. It
// fails when the file is no longer a regular one.
func (l *Library) Path(file string) (string, error) {
	info, err := l.root.Lstat(file)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", l.noun, err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("look at " + l.noun + ": not a regular file")
	}
	return filepath.Join(l.root.Name(), file), nil
}

// Name is the id of what a name means, or the name itself where the file is
// gone: what was loaded from it can still be named. It fails with
// fault.Invalid for a bad name.
func (l *Library) Name(parameter, name string) (string, error) {
	if err := CheckName(parameter, name); err != nil {
		return "", err
	}
	entries, err := l.List()
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.ID == name || slices.Contains(e.Files, name) {
			return e.ID, nil
		}
	}
	return name, nil
}
