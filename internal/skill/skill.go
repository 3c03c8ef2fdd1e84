// Package skill reads, checks and compares skills in the Agent Skills format: a
// folder with a SKILL.md (YAML frontmatter, then instructions in Markdown) and,
// beside it, scripts, references and assets.
//
// The rules are those of the specification (agentskills.io/specification, read
// with its reference validator), each with a token and a sentence of its own.
// To them come bounds of size, and paths that are safe on every system a skill
// may be written to: a skill that breaks one of those is not read at all, so
// that nothing of it is ever written anywhere.
//
// The package does no I/O but on what it is handed, runs nothing, and says
// nothing of whether a skill is safe; package scan does.
package skill

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// Bounds of a skill. The largest file must fit an answer of a tool.
const (
	MaxFiles    = 200
	MaxFile     = 1 << 20   // bytes
	MaxTotal    = 4 << 20   // bytes of all files
	MaxMain     = 256 << 10 // bytes of SKILL.md
	MaxPath     = 200       // bytes
	MaxDepth    = 8         // folders and the file
	maxLines    = 500       // of SKILL.md, as the specification recommends
	maxHead     = 64 << 10  // bytes of the frontmatter
	maxName     = 64        // characters
	maxAbout    = 1024
	maxCompat   = 500
	maxMetadata = 64 // entries
)

// Main is the file that makes a folder a skill.
const Main = "SKILL.md"

// File is one file of a skill.
type File struct {
	Path       string // from the skill's folder, with slashes
	Content    []byte
	Executable bool
}

// Skill is a skill that was read. Its files are in the order of their paths.
type Skill struct {
	Name          string
	Description   string
	License       string
	Compatibility string
	AllowedTools  []string
	Metadata      map[string]string
	Body          string // the instructions, without the frontmatter
	Files         []File
}

// Tags are the words of the metadata's entry "tags", which the specification
// leaves to its users.
func (s Skill) Tags() []string {
	tags := []string{}
	for _, word := range strings.FieldsFunc(s.Metadata["tags"], func(r rune) bool { return strings.ContainsRune(", ;[]\"'、，", r) }) {
		if len(tags) < 20 && !slices.Contains(tags, word) {
			tags = append(tags, word)
		}
	}
	return tags
}

// Find gives the content of a file; nil when there is none.
func (s Skill) Find(path string) *File {
	for i := range s.Files {
		if s.Files[i].Path == path {
			return &s.Files[i]
		}
	}
	return nil
}

// Digest is the SHA-256 of a skill: of all paths, contents and execute bits,
// in the order of the paths. Two skills with one digest are the same.
func Digest(files []File) [sha256.Size]byte {
	ordered := slices.Clone(files)
	slices.SortFunc(ordered, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, f := range ordered {
		var head [9]byte // the path's length keeps a/bc and ab/c apart
		binary.BigEndian.PutUint64(head[:], uint64(len(f.Path)))
		if f.Executable {
			head[8] = 1
		}
		content := sha256.Sum256(f.Content)
		sum.Write(head[:])
		sum.Write([]byte(f.Path))
		sum.Write(content[:])
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// Hex is a digest as callers see it.
func Hex(digest [sha256.Size]byte) string { return hex.EncodeToString(digest[:]) }
