package skill_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"pawgate/internal/skill"
)

type entry struct {
	name, content string
	mode          fs.FileMode
}

func archive(t *testing.T, entries ...entry) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

func TestReadZip(t *testing.T) {
	t.Parallel()
	r := archive(t, entry{"pdf-forms/", "", fs.ModeDir}, entry{"pdf-forms/SKILL.md", good, 0}, entry{"pdf-forms/scripts/fill.py", "print()", 0o111})
	folder, files, ps := skill.ReadZip(r, r.Size())
	if len(ps) > 0 || folder != "pdf-forms" || len(files) != 2 {
		t.Fatalf("got %q, %d files, %v", folder, len(files), ps)
	}
	s, ps := skill.Parse(folder, files)
	if len(ps) > 0 || !s.Find("scripts/fill.py").Executable || s.Find("SKILL.md").Executable {
		t.Errorf("got %+v, %v", s, ps)
	}
	if broken := bytes.NewReader([]byte("no zip")); true {
		if _, _, ps := skill.ReadZip(broken, broken.Size()); !ps.Has(skill.ArchiveBroken) {
			t.Errorf("no archive: %v", ps)
		}
	}
}

func TestReadZip_refuses_the_whole_archive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		entries []entry
		want    skill.Rule
	}{
		"CTS-05 parent":            {[]entry{{"../x", "x", 0}}, skill.PathUnsafe},
		"CTS-05 parent of folder":  {[]entry{{"a/../../x/", "", fs.ModeDir}}, skill.PathUnsafe},
		"CTS-05 drive":             {[]entry{{"C:/x", "x", 0}}, skill.PathUnsafe},
		"CTS-05 backslash":         {[]entry{{`a\..\b`, "x", 0}}, skill.PathUnsafe},
		"CTS-05 absolute":          {[]entry{{"/etc/cron.d/x", "x", 0}}, skill.PathUnsafe},
		"CTS-05 expands":           {[]entry{{"zeros", strings.Repeat("\x00", 64<<20), 0}}, skill.FileTooLarge},
		"CTS-05 one large file":    {[]entry{{"zeros", strings.Repeat("\x00", skill.MaxFile+1), 0}}, skill.FileTooLarge},
		"CTS-05 expands in pieces": {[]entry{{"a", strings.Repeat("\x00", skill.MaxFile), 0}, {"b", strings.Repeat("\x00", skill.MaxFile), 0}, {"c", strings.Repeat("\x00", skill.MaxFile), 0}, {"d", strings.Repeat("\x00", skill.MaxFile), 0}}, skill.TotalTooLarge},
		"CTS-06 link and file":     {[]entry{{"out", "/etc", fs.ModeSymlink}, {"out/cron.d", "x", 0}}, skill.NotAFile},
		"CTS-06 link":              {[]entry{{"notes.md", "/etc/passwd", fs.ModeSymlink}}, skill.NotAFile},
		"device":                   {[]entry{{"pipe", "", fs.ModeNamedPipe}}, skill.NotAFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := archive(t, append([]entry{{"SKILL.md", good, 0}}, tc.entries...)...)
			_, files, ps := skill.ReadZip(r, r.Size())
			if !ps.Has(tc.want) || files != nil {
				t.Errorf("got %d files and %v, want none and %s", len(files), ps, tc.want)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	before := []skill.File{{Path: "SKILL.md", Content: []byte("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n")}, {Path: "gone", Content: []byte("x\n")}, {Path: "same", Content: []byte("s")}, {Path: "run.sh"}}
	after := []skill.File{{Path: "SKILL.md", Content: []byte("one\n2\nthree\nfour\nfive\nsix\nseven\neight\n9\nten\n")}, {Path: "new.bin", Content: []byte{0}}, {Path: "same", Content: []byte("s")}, {Path: "run.sh", Executable: true}}
	got := skill.Diff(before, after)
	want := map[string]string{
		"SKILL.md": "changed  one\n-two\n+2\n three\n four\n@ 2 equal lines\n seven\n eight\n-nine\n+9\n ten\n",
		"gone":     "removed -x\n", "new.bin": "added ", "run.sh": "mode ",
	}
	if len(got) != len(want) {
		t.Errorf("got %+v", got)
	}
	for _, c := range got {
		if c.Kind+" "+c.Diff != want[c.Path] {
			t.Errorf("%s: got %q, want %q", c.Path, c.Kind+" "+c.Diff, want[c.Path])
		}
	}
	long := []skill.File{{Path: "a", Content: []byte(strings.Repeat("line\n", 9000))}}
	if c := skill.Diff(nil, long); !c[0].Truncated || len(c[0].Diff) > 9<<10 {
		t.Errorf("a long diff has %d bytes, truncated %v", len(c[0].Diff), c[0].Truncated)
	}
	// An answer must not grow with the number of files.
	var many []skill.File
	for i := range skill.MaxFiles {
		many = append(many, skill.File{Path: fmt.Sprintf("f%03d", i), Content: []byte(strings.Repeat("line\n", 3000))})
	}
	total := 0
	changes := skill.Diff(nil, many)
	for _, c := range changes {
		total += len(c.Diff)
	}
	if last := changes[len(changes)-1]; len(changes) != skill.MaxFiles || total > 80<<10 || !last.Truncated || last.Kind != "added" {
		t.Errorf("%d changes, %d bytes, the last %+v", len(changes), total, last)
	}
}

// A skill as macOS packs it, and what an import makes of an archive of ours.
func TestReadZip_of_macOS(t *testing.T) {
	t.Parallel()
	r := archive(t, entry{"pdf-forms/SKILL.md", good, 0}, entry{"__MACOSX/pdf-forms/._SKILL.md", "\x00\x05\x16", 0}, entry{"pdf-forms/.DS_Store", "x", 0}, entry{"pdf-forms/__pycache__/a.pyc", "x", 0})
	folder, files, ps := skill.ReadZip(r, r.Size())
	if len(ps) > 0 || folder != "pdf-forms" || len(files) != 1 {
		t.Errorf("got %q, %v, %v", folder, files, ps)
	}
	r = archive(t, entry{"SKILL.md", good, 0}, entry{"../__MACOSX/x", "x", 0})
	if _, files, ps := skill.ReadZip(r, r.Size()); !ps.Has(skill.PathUnsafe) || files != nil {
		t.Errorf("CTS-05: %v, %v", files, ps)
	}
	want := []skill.File{{Path: "SKILL.md", Content: []byte(good)}, {Path: "a/run.sh", Content: []byte("x"), Executable: true}, {Path: "empty", Content: []byte{}}}
	packed, err := skill.WriteZip(want)
	if err != nil {
		t.Fatal(err)
	}
	if _, got, ps := skill.ReadZip(bytes.NewReader(packed), int64(len(packed))); len(ps) > 0 || skill.Digest(got) != skill.Digest(want) {
		t.Errorf("there and back: %v, %v", got, ps)
	}
}

// The largest skill fits a call of a function, which takes 6 MB, in base64 too.
func TestWriteZip_of_the_largest_skill(t *testing.T) {
	t.Parallel()
	rng := rand.NewChaCha8([32]byte{})
	var files []skill.File
	for i := range skill.MaxFiles {
		content := make([]byte, skill.MaxTotal/skill.MaxFiles)
		if _, err := rng.Read(content); err != nil {
			t.Fatal(err)
		}
		files = append(files, skill.File{Path: fmt.Sprintf("%03d", i) + strings.Repeat("x", skill.MaxPath-3), Content: content})
	}
	packed, err := skill.WriteZip(files)
	if err != nil {
		t.Fatal(err)
	}
	if n := base64.StdEncoding.EncodedLen(len(packed)); n > 6_000_000 {
		t.Errorf("%d bytes", n)
	}
}
