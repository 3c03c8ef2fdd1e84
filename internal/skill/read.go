package skill

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// ReadDir reads the files of a skill's folder: plain files alone. Anything
// else, a symbolic link above all, refuses the whole folder, and nothing is
// read behind it. Folders and files of version control and of the system are
// passed over; of those that hold what a program may run, an advice says so.
func ReadDir(dir fs.FS) ([]File, Problems) {
	var files []File
	var ps Problems
	total := 0
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case passedOver(d.Name()):
			if d.Name() != ".DS_Store" {
				p := problem(NotRead, name, "it is no part of the skill, and is not looked at; delete it where the folder is used as it is")
				p.Advice = true
				ps = append(ps, p)
			}
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			ps = append(ps, problem(NotAFile, name, "it is a link or another thing that is no plain file"))
			return nil
		case len(files) >= MaxFiles:
			ps = append(ps, problem(TooManyFiles, "", "there are more than %d files", MaxFiles))
			return fs.SkipAll
		}
		f, p := readFile(dir, name, d)
		if p != nil {
			ps = append(ps, *p)
			return nil
		}
		if total += len(f.Content); total > MaxTotal {
			ps = append(ps, problem(TotalTooLarge, "", "the files have more than %d bytes", MaxTotal))
			return fs.SkipAll
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		ps = append(ps, problem(NotAFile, "", "the folder cannot be read"))
	}
	return files, ps
}

// passedOver are names of version control, of the system and of what Python
// makes by itself.
func passedOver(name string) bool {
	return name == ".git" || name == ".DS_Store" || name == "__pycache__"
}

func readFile(dir fs.FS, name string, d fs.DirEntry) (File, *Problem) {
	fail := func(rule Rule, format string, args ...any) (File, *Problem) {
		p := problem(rule, name, format, args...)
		return File{}, &p
	}
	info, err := d.Info()
	if err != nil {
		return fail(NotAFile, "it cannot be read")
	}
	f, err := dir.Open(name)
	if err != nil {
		return fail(NotAFile, "it cannot be read")
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return fail(NotAFile, "it cannot be read")
	case len(content) > MaxFile:
		return fail(FileTooLarge, "the file has more than %d bytes", MaxFile)
	}
	return File{Path: name, Content: content, Executable: info.Mode()&0o111 != 0}, nil
}

// ReadZip reads a skill from a zip archive, as a skill is sent around: its
// files at the top, or in one folder whose name is given back. It expands into
// memory alone, counts what it expands rather than believe the archive's own
// sizes, and refuses the whole archive for one bad entry, before the caller
// has a file of it.
func ReadZip(r io.ReaderAt, size int64) (folder string, files []File, ps Problems) {
	archive, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // paths are judged below
		return "", nil, Problems{problem(ArchiveBroken, "", "it is no zip archive that can be read")}
	}
	if len(archive.File) > MaxFiles*2 {
		return "", nil, Problems{problem(TooManyFiles, "", "the archive has %d entries; at most %d files are taken", len(archive.File), MaxFiles)}
	}
	left := int64(MaxTotal)
	for _, entry := range archive.File {
		name := entry.Name
		mode := entry.Mode()
		if mode.IsDir() || strings.HasSuffix(name, "/") {
			if p, ok := checkPath(strings.TrimSuffix(name, "/")); !ok {
				return "", nil, Problems{p}
			}
			continue
		}
		if p, ok := checkPath(name); !ok {
			return "", nil, Problems{p}
		}
		if slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return passedOver(part) || part == "__MACOSX" }) {
			continue // what macOS and others put in; nothing of it is kept
		}
		if !mode.IsRegular() {
			return "", nil, Problems{problem(NotAFile, name, "it is a link or another thing that is no plain file")}
		}
		content, p := expand(entry, left)
		if p != nil {
			return "", nil, Problems{*p}
		}
		left -= int64(len(content))
		files = append(files, File{Path: name, Content: content, Executable: mode&0o111 != 0})
	}
	folder, files = unwrap(files)
	return folder, files, nil
}

func expand(entry *zip.File, left int64) ([]byte, *Problem) {
	fail := func(rule Rule, format string, args ...any) ([]byte, *Problem) {
		p := problem(rule, entry.Name, format, args...)
		return nil, &p
	}
	r, err := entry.Open()
	if err != nil {
		return fail(ArchiveBroken, "the entry cannot be expanded")
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, min(MaxFile, left)+1))
	switch {
	case int64(len(content)) > left:
		return fail(TotalTooLarge, "the archive expands to more than %d bytes", MaxTotal)
	case len(content) > MaxFile:
		return fail(FileTooLarge, "the file expands to more than %d bytes", MaxFile)
	case err != nil:
		return fail(ArchiveBroken, "the entry cannot be expanded, or its checksum is wrong")
	}
	return content, nil
}

// unwrap takes away the one folder that everything is in.
func unwrap(files []File) (string, []File) {
	if len(files) == 0 {
		return "", files
	}
	folder, _, inside := strings.Cut(files[0].Path, "/")
	if !inside {
		return "", files
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Path, folder+"/") {
			return "", files
		}
	}
	for i := range files {
		files[i].Path = strings.TrimPrefix(files[i].Path, folder+"/")
	}
	return path.Base(folder), files
}

// WriteZip is an archive of a skill that ReadZip reads back.
func WriteZip(files []File) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Path, Method: zip.Deflate}
		h.SetMode(0o644)
		if f.Executable {
			h.SetMode(0o755)
		}
		out, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := out.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
