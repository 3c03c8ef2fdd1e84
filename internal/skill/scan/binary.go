package scan

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"pawgate/internal/skill"
)

// isText reports whether a file is text as it stands.
func isText(content []byte) bool {
	return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 && !bytes.HasPrefix(content, []byte("PK\x03\x04"))
}

// readable is what can be read of a file that is no text: UTF-16, another
// encoding, or what stands among the bytes. A shell reads such a file too.
func readable(content []byte) string {
	if text, ok := wide(content); ok {
		return text
	}
	text := strings.ReplaceAll(string(content), "\x00", "") // UTF-16 without a mark, for letters of ASCII
	return strings.ToValidUTF8(text, " ")
}

// wide decodes UTF-16 that says so by its first character.
func wide(content []byte) (string, bool) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return "", false
	}
	var units []uint16
	for i := 2; i+1 < len(content); i += 2 {
		units = append(units, order.Uint16(content[i:]))
	}
	return string(utf16.Decode(units)), true
}

// magic are the first bytes of files that nobody can read through.
var magic = []struct {
	bytes    string
	rule     string
	severity Severity
	what     string
}{
	{"\x7fELF", "file.program", High, "a compiled program"}, {"MZ", "file.program", High, "a compiled program"},
	{"\xcf\xfa\xed\xfe", "file.program", High, "a compiled program"}, {"\xce\xfa\xed\xfe", "file.program", High, "a compiled program"},
	{"\xca\xfe\xba\xbe", "file.program", High, "a compiled program"}, {"\x00asm", "file.program", High, "a compiled program"},
	{"\x1bLua", "file.program", High, "a compiled program"},
	{"PK\x03\x04", "file.archive", High, "an archive"}, {"PK\x05\x06", "file.archive", High, "an archive"}, {"PK\x07\x08", "file.archive", High, "an archive"},
	{"\x1f\x8b", "file.archive", High, "an archive"}, {"\x1f\x9d", "file.archive", High, "an archive"}, {"7z\xbc\xaf", "file.archive", High, "an archive"},
	{"Rar!", "file.archive", High, "an archive"}, {"\xfd7zXZ", "file.archive", High, "an archive"}, {"BZh", "file.archive", High, "an archive"},
	{"\x28\xb5\x2f\xfd", "file.archive", High, "an archive"}, {"\x04\x22\x4d\x18", "file.archive", High, "an archive"}, {"LZIP", "file.archive", High, "an archive"},
	{"MSCF", "file.archive", High, "an archive"}, {"xar!", "file.archive", High, "an archive"}, {"Cr24", "file.archive", High, "an archive"},
	{"!<arch>\n", "file.archive", High, "an archive"}, {"\xed\xab\xee\xdb", "file.archive", High, "an archive"},
}

// tarAt is where a tar file says what it is (POSIX ustar).
const tarAt = 257

// office are archives by their form that are documents by their use.
var office = map[string]bool{".docx": true, ".xlsx": true, ".pptx": true, ".odt": true, ".ods": true, ".odp": true, ".epub": true}

// documents are entries of which every office document and book has one
// (ECMA-376 part 2, OpenDocument 1.3 part 2, EPUB OCF 3.3).
var documents = []string{"[Content_Types].xml", "mimetype"}

// media are kinds of files that hold no text to look through.
var media = map[string]bool{".png": true, ".jpg": true, ".jpeg": true, ".gif": true, ".webp": true, ".ico": true, ".pdf": true, ".ttf": true, ".otf": true, ".woff": true,
	".woff2": true, ".mp3": true, ".mp4": true, ".wav": true, ".ogg": true, ".avif": true, ".bmp": true, ".tiff": true}

// mediaBytes are what such files begin with, whichever of them the name says.
var mediaBytes = []string{"\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF", "\x00\x00\x01\x00", "%PDF-", "\x00\x01\x00\x00", "true", "ttcf", "OTTO", "wOFF", "wOF2", "ID3",
	"\xff\xfb", "\xff\xfa", "\xff\xf3", "\xff\xf2", "OggS", "BM", "II*\x00", "MM\x00*"}

func isMedia(content []byte) bool {
	return len(content) >= 8 && string(content[4:8]) == "ftyp" ||
		slices.ContainsFunc(mediaBytes, func(m string) bool { return bytes.HasPrefix(content, []byte(m)) })
}

var programs = map[string]bool{".pyc": true, ".so": true, ".dll": true, ".jar": true, ".class": true, ".exe": true, ".dylib": true, ".node": true}

// kind judges what a file is that is no text. Its name says little: a shell
// runs a picture too.
func kind(f skill.File) []Finding {
	one := func(rule string, s Severity, message string) []Finding {
		return []Finding{{Rule: rule, Severity: s, Path: f.Path, Message: message}}
	}
	ext := strings.ToLower(path.Ext(f.Path))
	for _, m := range magic {
		if !bytes.HasPrefix(f.Content, []byte(m.bytes)) {
			continue
		}
		if m.rule == "file.archive" && office[ext] {
			return one(officeFile(f.Content))
		}
		return one(m.rule, m.severity, m.what+" cannot be looked through")
	}
	switch {
	case len(f.Content) > tarAt && bytes.HasPrefix(f.Content[tarAt:], []byte("ustar")), holdsArchive(f.Content):
		return one("file.archive", High, "an archive cannot be looked through")
	case scriptNames[ext] || ext == ".md" || ext == ".txt":
		return one("file.not_text", High, "a file that should be text is none, so it cannot be looked through")
	case programs[ext], f.Executable, bytes.HasPrefix(f.Content, []byte("#!")):
		return one("file.program", High, "a program that is no text cannot be looked through")
	case media[ext] && isMedia(f.Content):
		return nil
	case media[ext]:
		return one("file.disguised", High, "a file is named like a picture, a font or a recording, and is none")
	}
	return one("file.binary", Medium, "a file of an unknown kind cannot be looked through")
}

// holdsArchive reports whether a file ends in a zip archive, which is opened
// whatever stands before it.
func holdsArchive(content []byte) bool {
	const end = 22 + 1<<16 // the end record and its comment (APPNOTE.TXT 4.3.16)
	if !bytes.Contains(content[max(0, len(content)-end):], []byte("PK\x05\x06")) {
		return false
	}
	_, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	return err == nil
}

// officeFile judges an archive that is named like an office document: whether it
// is one, and whether there are programs in it.
func officeFile(content []byte) (string, Severity, string) {
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil && r == nil {
		return "file.archive", High, "an archive that is named like a document cannot be looked through"
	}
	is := false
	for _, entry := range r.File {
		name := strings.ToLower(entry.Name)
		if ext := path.Ext(name); scriptNames[ext] || programs[ext] || strings.Contains(name, "vbaproject") {
			return "file.document_code", High, "an office document has a program in it"
		}
		is = is || slices.Contains(documents, entry.Name)
	}
	if !is {
		return "file.archive", High, "an archive that is named like a document is none, and cannot be looked through"
	}
	return "file.document", Info, "an office document, which is not looked through"
}
